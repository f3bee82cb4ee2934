-- The search terms of a folded text:
-- - All trigrams of each word: a word of three or more characters is found by all its trigrams.
-- - In words that are not ASCII, also the last two characters and the last one: a shorter word is found as a prefix of a
--   term. Searches for fewer than three ASCII letters are refused.
-- PL/pgSQL, because a SQL function takes longer to start than to run here. High COST, so that the planner uses the index
-- instead of computing terms for the whole table.
CREATE FUNCTION outfit_terms(folded text) RETURNS tsvector
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 10000 AS $$
DECLARE
  terms text[] := '{}';
  word text;
  piece text;
  size integer;
BEGIN
  FOREACH word IN ARRAY string_to_array(translate(folded, E'\n\r\t', '   '), ' ') LOOP
    -- substr counts characters from the start (quadratic in the length), so a long word is processed in pieces.
    WHILE length(word) > 300 LOOP
      piece := left(word, 302);
      FOR place IN 1..300 LOOP
        terms := terms || substr(piece, place, 3);
      END LOOP;
      word := substr(word, 301);
    END LOOP;
    size := length(word);
    FOR place IN 1..CASE WHEN octet_length(word) = size THEN size - 2 ELSE size END LOOP
      terms := terms || substr(word, place, 3);
    END LOOP;
  END LOOP;
  RETURN array_to_tsvector(terms);
END $$;
