-- The number of public outfits, or of all.
CREATE FUNCTION count_outfits(with_private boolean) RETURNS bigint
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET jit = off AS $$
BEGIN
  RETURN (
    SELECT coalesce(sum(counted.public + CASE WHEN with_private THEN counted.private ELSE 0 END), 0)
    FROM (
      SELECT b.public, b.private FROM outfit_buckets b WHERE b.ordering = 'id' AND b.is_group
      UNION ALL
      SELECT m.public, m.private FROM pending_outfit_deltas('id') m
    ) counted
  );
END $$;
