-- The lowest key of the bucket where outfits of the value `before` would begin, and how many public outfits, or all, come
-- before that bucket.
CREATE FUNCTION rank_outfits(of_ordering text, with_private boolean, before bigint, OUT preceding bigint, OUT value bigint, OUT id integer)
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  containing record;
BEGIN
  SELECT b.from_value, b.from_id INTO containing FROM outfit_buckets b
  WHERE b.ordering = of_ordering AND b.is_group AND (b.from_value, b.from_id) <= (before, -2147483648)
  ORDER BY b.from_value DESC, b.from_id DESC LIMIT 1;
  SELECT b.from_value, b.from_id INTO value, id FROM outfit_buckets b
  WHERE b.ordering = of_ordering AND NOT b.is_group AND (b.from_value, b.from_id) <= (before, -2147483648)
  ORDER BY b.from_value DESC, b.from_id DESC LIMIT 1;
  preceding := (
    SELECT coalesce(sum(counted.public + CASE WHEN with_private THEN counted.private ELSE 0 END), 0)
    FROM (
      SELECT b.public, b.private FROM outfit_buckets b
      WHERE b.ordering = of_ordering AND b.is_group AND (b.from_value, b.from_id) < (containing.from_value, containing.from_id)
      UNION ALL
      SELECT b.public, b.private FROM outfit_buckets b
      WHERE b.ordering = of_ordering AND NOT b.is_group
        AND (b.from_value, b.from_id) >= (containing.from_value, containing.from_id) AND (b.from_value, b.from_id) < (rank_outfits.value, rank_outfits.id)
      UNION ALL
      SELECT m.public, m.private FROM pending_outfit_deltas(of_ordering) m WHERE (m.value, m.id) < (rank_outfits.value, rank_outfits.id)
    ) counted
  );
END $$;
