-- Replaces the buckets in ranges of an ordering by buckets of about outfit_bucket_size(), twice that at most. The first one
-- of a range begins with it, the others with the key of each outfit that is the last of so many public or private ones.
CREATE FUNCTION cut_outfit_buckets(of_ordering text, ranges outfit_bucket_ranges[]) RETURNS void
LANGUAGE plpgsql SET jit = off AS $$
DECLARE
  pieces outfit_bucket_ranges[];
BEGIN
  EXECUTE format($sql$
    WITH bounds AS (
      SELECT r.from_value, r.from_id, r.to_value, r.to_id FROM unnest($1) r
      UNION
      SELECT o.value, o.id, r.to_value, r.to_id
      FROM unnest($1) r CROSS JOIN LATERAL (
        SELECT o.%1$I AS value, o.id, row_number() OVER (ORDER BY o.%1$I, o.id) AS place FROM %2$I o
        WHERE NOT o.private AND (o.%1$I, o.id) >= (r.from_value, r.from_id) AND (o.%1$I, o.id) < (r.to_value, r.to_id)
        UNION ALL
        SELECT o.%1$I, o.id, row_number() OVER (ORDER BY o.%1$I, o.id) FROM %2$I o
        WHERE o.private AND (o.%1$I, o.id) >= (r.from_value, r.from_id) AND (o.%1$I, o.id) < (r.to_value, r.to_id)
      ) o
      WHERE o.place %% outfit_bucket_size() = 0
    )
    SELECT array_agg(ROW($2, false, from_value, from_id, 0, 0, lead_value, lead_id)::outfit_bucket_ranges)
    FROM (
      SELECT *, lead(from_value, 1, to_value) OVER list AS lead_value, lead(from_id::bigint, 1, to_id) OVER list AS lead_id
      FROM bounds WINDOW list AS (PARTITION BY to_value, to_id ORDER BY from_value, from_id)
    ) b
  $sql$, of_ordering, (SELECT o.table_name FROM outfit_orderings o WHERE o.ordering = of_ordering))
  INTO pieces USING ranges, of_ordering;
  DELETE FROM outfit_buckets b USING unnest(ranges) r
  WHERE b.ordering = of_ordering AND NOT b.is_group
    AND (b.from_value, b.from_id) >= (r.from_value, r.from_id) AND (b.from_value, b.from_id) < (r.to_value, r.to_id);
  INSERT INTO outfit_buckets SELECT p.ordering, p.is_group, p.from_value, p.from_id, 0, 0 FROM unnest(pieces) p;
  UPDATE outfit_buckets b SET public = c.public, private = c.private FROM recount_outfit_buckets(of_ordering, pieces) c
  WHERE b.ordering = of_ordering AND NOT b.is_group AND b.from_value = c.from_value AND b.from_id = c.from_id;
END $$;
