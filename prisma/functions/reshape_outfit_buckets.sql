-- Cuts groups whose buckets are too small, then buckets that are too large, until about `budget` outfits have been read.
-- Then makes the groups anew where one has too many buckets, or where they are too many. Returns whether all is done.
CREATE FUNCTION reshape_outfit_buckets(budget bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  current text;
  of_groups boolean;
  ranges outfit_bucket_ranges[];
BEGIN
  FOR current IN SELECT o.ordering FROM outfit_orderings o LOOP
    FOREACH of_groups IN ARRAY '{true,false}'::boolean[] LOOP
      ranges := ARRAY(
        SELECT r::outfit_bucket_ranges
        FROM (
          SELECT r, sum(r.public + r.private) OVER (ORDER BY r.from_value, r.from_id) - r.public - r.private AS before
          FROM outfit_bucket_ranges r LEFT JOIN outfit_groups g USING (ordering, is_group, from_value, from_id)
          WHERE r.ordering = current AND r.is_group = of_groups AND CASE
            WHEN of_groups THEN r.public + r.private < outfit_bucket_size() / 4 * (g.buckets - 1)
            ELSE r.public + r.private > 2 * outfit_bucket_size() END
        ) r
        WHERE r.before < budget
      );
      IF cardinality(ranges) > 0 THEN
        PERFORM cut_outfit_buckets(current, ranges);
        budget := budget - (SELECT sum(r.public + r.private) FROM unnest(ranges) r);
      END IF;
    END LOOP;
    IF (SELECT greatest(count(*), max(g.buckets)) > 2 * sqrt(sum(g.buckets)) + 1 FROM outfit_groups g WHERE g.ordering = current) THEN
      PERFORM group_outfit_buckets(current);
    END IF;
  END LOOP;
  RETURN budget > 0;
END $$;
