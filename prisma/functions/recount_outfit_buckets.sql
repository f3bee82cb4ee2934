-- How many public and private outfits of the table, minus pending changes, lie in these buckets. One statement, hence one
-- snapshot: a plain count would contain changes that are added to the buckets later.
CREATE FUNCTION recount_outfit_buckets(of_ordering text, buckets outfit_bucket_ranges[])
RETURNS TABLE (from_value bigint, from_id integer, public bigint, private bigint)
LANGUAGE plpgsql STABLE SET jit = off AS $$
BEGIN
  RETURN QUERY EXECUTE format($sql$
    WITH pending AS (
      SELECT b.from_value, b.from_id, sum(m.public) AS public, sum(m.private) AS private
      FROM pending_outfit_deltas($1) m
      CROSS JOIN LATERAL (
        SELECT b.from_value, b.from_id FROM outfit_buckets b
        WHERE b.ordering = $1 AND NOT b.is_group AND (b.from_value, b.from_id) <= (m.value, m.id)
        ORDER BY b.from_value DESC, b.from_id DESC LIMIT 1
      ) b
      GROUP BY 1, 2
    )
    SELECT b.from_value, b.from_id,
      (SELECT count(*) FROM %2$I o WHERE NOT o.private AND (o.%1$I, o.id) >= (b.from_value, b.from_id) AND (o.%1$I, o.id) < (b.to_value, b.to_id)) - coalesce(p.public, 0),
      (SELECT count(*) FROM %2$I o WHERE o.private AND (o.%1$I, o.id) >= (b.from_value, b.from_id) AND (o.%1$I, o.id) < (b.to_value, b.to_id)) - coalesce(p.private, 0)
    FROM unnest($2) b LEFT JOIN pending p ON p.from_value = b.from_value AND p.from_id = b.from_id
  $sql$, of_ordering, (SELECT o.table_name FROM outfit_orderings o WHERE o.ordering = of_ordering))
  USING of_ordering, buckets;
END $$;
