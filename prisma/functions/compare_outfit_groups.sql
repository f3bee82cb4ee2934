-- Groups that have another number of public and of private outfits than their buckets. An ordering without the first
-- group or bucket, or with a group that does not begin with a bucket, counts as one of them.
CREATE FUNCTION compare_outfit_groups()
RETURNS TABLE (ordering text, is_group boolean, from_value bigint, from_id integer, counted bigint[], found bigint[])
LANGUAGE sql STABLE AS $$
  SELECT o.ordering, true, g.from_value, g.from_id, ARRAY[g.public, g.private], ARRAY[b.public, b.private]
  FROM outfit_orderings o
  LEFT JOIN outfit_bucket_ranges g ON g.ordering = o.ordering AND g.is_group
  CROSS JOIN LATERAL (
    SELECT sum(b.public) AS public, sum(b.private) AS private, min(b.from_value) AS from_value FROM outfit_buckets b
    WHERE b.ordering = o.ordering AND NOT b.is_group
      AND (b.from_value, b.from_id) >= (g.from_value, g.from_id) AND (b.from_value, b.from_id) < (g.to_value, g.to_id)
  ) b
  WHERE (g.public, g.private, g.from_value) IS DISTINCT FROM (b.public, b.private, b.from_value) OR g.from_value IS NULL
    OR NOT EXISTS (SELECT FROM outfit_buckets f WHERE f.ordering = o.ordering AND NOT f.is_group AND f.from_value = -9223372036854775808)
$$;
