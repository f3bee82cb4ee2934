-- Patterns of LIKE for folded texts that contain these words.
CREATE FUNCTION outfit_patterns(words text[]) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT array_agg('%' || regexp_replace(outfit_unaccent(outfit_casefold(word)), '([\\%_])', '\\\1', 'g') || '%') FROM unnest(words) AS word
$$;
