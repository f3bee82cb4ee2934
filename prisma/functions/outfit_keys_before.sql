-- How many keys of two sorted arrays come before a key: width_bucket() counts the elements up to a value by binary search,
-- first the lower values, then the lower ids of those with this value. Null for null arrays. One expression, so that callers
-- contain it: a call of a function takes ten times as long.
CREATE FUNCTION outfit_keys_before(key_values bigint[], key_ids bigint[], value bigint, id bigint) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN key_values[1] < value THEN width_bucket(value - 1, key_values) ELSE 0 END + width_bucket(id - 1,
    key_ids[CASE WHEN key_values[1] < value THEN width_bucket(value - 1, key_values) ELSE 0 END + 1:width_bucket(value, key_values)])
$$;
