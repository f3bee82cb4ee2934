-- Leaves one empty bucket and one empty group in each ordering, from the lowest key on.
CREATE FUNCTION empty_outfit_buckets() RETURNS void
LANGUAGE sql AS $$
  DELETE FROM outfit_buckets;
  INSERT INTO outfit_buckets
  SELECT o.ordering, level.is_group, lowest_value, lowest_id, 0, 0
  FROM outfit_orderings o CROSS JOIN (VALUES (true), (false)) AS level (is_group) CROSS JOIN outfit_key_limits;
$$;
