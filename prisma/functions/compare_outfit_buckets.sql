-- Which of these buckets have another number of public and of private outfits than the table minus pending changes.
CREATE FUNCTION compare_outfit_buckets(of_ordering text, buckets outfit_bucket_ranges[])
RETURNS TABLE (ordering text, is_group boolean, from_value bigint, from_id integer, counted bigint[], found bigint[])
LANGUAGE sql STABLE AS $$
  SELECT b.ordering, b.is_group, b.from_value, b.from_id, ARRAY[b.public, b.private], ARRAY[c.public, c.private]
  FROM unnest(buckets) b JOIN recount_outfit_buckets(of_ordering, buckets) c USING (from_value, from_id)
  WHERE (b.public, b.private) <> (c.public, c.private)
$$;
