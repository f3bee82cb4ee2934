-- Buckets and groups with another number of public and of private outfits than the table minus pending changes, or a group
-- than its buckets: none, unless triggers were disabled. An ordering without the first group or bucket, or with a group that
-- does not begin with a bucket, counts as one of them. Compares `sample` random buckets of each ordering, or all.
CREATE FUNCTION check_outfit_counts(sample integer DEFAULT NULL)
RETURNS TABLE (ordering text, is_group boolean, from_value bigint, from_id integer, counted bigint[], found bigint[])
LANGUAGE sql STABLE AS $$
  SELECT b.ordering, b.is_group, b.from_value, b.from_id, ARRAY[b.public, b.private], ARRAY[c.public, c.private]
  FROM outfit_orderings o
  CROSS JOIN LATERAL (
    SELECT array_agg(b) AS buckets
    FROM (SELECT b FROM outfit_bucket_ranges b WHERE b.ordering = o.ordering AND NOT b.is_group ORDER BY random() LIMIT sample) b
  ) sampled
  CROSS JOIN LATERAL unnest(sampled.buckets) b
  JOIN LATERAL recount_outfit_buckets(o.ordering, sampled.buckets) c USING (from_value, from_id)
  WHERE (b.public, b.private) <> (c.public, c.private)
  UNION ALL
  SELECT o.ordering, true, g.from_value, g.from_id, ARRAY[g.public, g.private], ARRAY[g.bucket_public, g.bucket_private]
  FROM outfit_orderings o LEFT JOIN outfit_groups g USING (ordering) CROSS JOIN outfit_key_limits l
  WHERE (g.public, g.private, g.from_value, true) IS DISTINCT FROM (g.bucket_public, g.bucket_private, g.first_value,
    EXISTS (SELECT FROM outfit_buckets f WHERE f.ordering = o.ordering AND NOT f.is_group AND f.from_value = l.lowest_value))
    OR g.from_value IS NULL
$$;
