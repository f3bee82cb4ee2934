-- How many keys of two sorted arrays come before a key: width_bucket() counts the elements up to a value by binary search.
-- Null for null arrays.
CREATE FUNCTION outfit_keys_before(key_values bigint[], key_ids bigint[], value bigint, id bigint) RETURNS TABLE (preceding integer)
LANGUAGE sql IMMUTABLE ROWS 1 AS $$
  SELECT lower + width_bucket(id - 1, key_ids[lower + 1:width_bucket(value, key_values)])
  FROM (SELECT CASE WHEN key_values[1] < value THEN width_bucket(value - 1, key_values) ELSE 0 END AS lower) AS values_before
$$;
