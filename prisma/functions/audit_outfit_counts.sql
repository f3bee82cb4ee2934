-- The same for a random bucket of each ordering, and all groups.
CREATE FUNCTION audit_outfit_counts()
RETURNS TABLE (ordering text, is_group boolean, from_value bigint, from_id integer, counted bigint[], found bigint[])
LANGUAGE sql STABLE AS $$
  SELECT wrong.*
  FROM outfit_orderings o
  CROSS JOIN LATERAL compare_outfit_buckets(o.ordering,
    ARRAY(SELECT b FROM outfit_bucket_ranges b WHERE b.ordering = o.ordering AND NOT b.is_group ORDER BY random() LIMIT 1)) AS wrong
  UNION ALL
  SELECT * FROM compare_outfit_groups()
$$;
