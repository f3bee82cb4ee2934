-- The searched text of an outfit, truncated: the terms of a longer text would exceed the size of a tsvector.
CREATE FUNCTION outfit_text(title text, description text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT left(outfit_unaccent(outfit_casefold(title || E'\n' || description)), 60000)
$$;
