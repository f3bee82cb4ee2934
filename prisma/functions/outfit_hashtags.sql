-- A tsquery for texts that contain at least one of these hashtags.
CREATE FUNCTION outfit_hashtags(hashtags text[]) RETURNS tsquery
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT string_agg(format('''###%s''', left(outfit_casefold(hashtag), 100)), ' | ')::tsquery
  FROM unnest(hashtags) AS hashtag
$$;
