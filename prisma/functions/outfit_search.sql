-- A tsquery for texts that contain all these words.
CREATE FUNCTION outfit_search(words text[]) RETURNS tsquery
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT string_agg(DISTINCT format('''%s''%s',
    replace(replace(term, '\', '\\'), '''', ''''''), CASE WHEN length(term) < 3 THEN ':*' END
  ), ' & ')::tsquery
  FROM (SELECT outfit_unaccent(outfit_casefold(word)) AS folded FROM unnest(words) AS word) w,
    generate_series(1, greatest(length(folded) - 2, 1)) AS place,
    substr(folded, place, 3) AS term
$$;
