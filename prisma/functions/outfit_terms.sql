-- The search terms of a folded text: all trigrams of each word, so a word of three or more characters is found by all its
-- trigrams. In words that are not ASCII, also the last two characters and the last one: a shorter word is found as a prefix
-- of a term. Searches for fewer than three ASCII letters are refused.
-- PL/pgSQL, because a SQL function takes longer to start than to run here. High COST, so that the planner uses the index
-- instead of computing terms for the whole table.
CREATE FUNCTION outfit_terms(folded text) RETURNS tsvector
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 10000 AS $$
DECLARE
  terms text[] := '{}';
  word text;
  letters text[];
BEGIN
  FOREACH word IN ARRAY string_to_array(translate(folded, E'\n\r\t', '   '), ' ') LOOP
    -- substr counts letters from the start, which is faster than an array in words that are short.
    letters := CASE WHEN length(word) > 100 THEN string_to_array(word, NULL) END;
    FOR place IN 1..length(word) - CASE WHEN octet_length(word) = length(word) THEN 2 ELSE 0 END LOOP
      IF letters IS NULL THEN
        terms := terms || substr(word, place, 3);
      ELSE
        terms := terms || concat(letters[place], letters[place + 1], letters[place + 2]);
      END IF;
    END LOOP;
  END LOOP;
  RETURN array_to_tsvector(terms);
END $$;
