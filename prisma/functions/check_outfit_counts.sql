-- Buckets and groups whose counts are wrong: none, unless triggers were disabled. Reads all outfits.
CREATE FUNCTION check_outfit_counts()
RETURNS TABLE (ordering text, is_group boolean, from_value bigint, from_id integer, counted bigint[], found bigint[])
LANGUAGE sql STABLE AS $$
  SELECT wrong.*
  FROM outfit_orderings o
  CROSS JOIN LATERAL compare_outfit_buckets(o.ordering,
    ARRAY(SELECT b FROM outfit_bucket_ranges b WHERE b.ordering = o.ordering AND NOT b.is_group)) AS wrong
  UNION ALL
  SELECT * FROM compare_outfit_groups()
$$;
