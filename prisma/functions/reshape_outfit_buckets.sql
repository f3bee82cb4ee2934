-- Cuts buckets that are too large, and groups whose buckets are too small, until about `budget` outfits have been read.
-- Then makes the groups anew where one has too many buckets, or where they are too many. Returns whether all is done.
CREATE FUNCTION reshape_outfit_buckets(budget bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  current text;
  ranges outfit_bucket_ranges[];
  buckets bigint;
  groups bigint;
  largest bigint;
BEGIN
  FOR current IN SELECT o.ordering FROM outfit_orderings o LOOP
    ranges := ARRAY(
      SELECT g FROM outfit_bucket_ranges g
      WHERE g.ordering = current AND g.is_group AND g.public + g.private < outfit_bucket_size() / 4 * (
        SELECT count(*) - 1 FROM outfit_buckets b
        WHERE b.ordering = current AND NOT b.is_group
          AND (b.from_value, b.from_id) >= (g.from_value, g.from_id) AND (b.from_value, b.from_id) < (g.to_value, g.to_id)
      )
    );
    IF cardinality(ranges) > 0 THEN
      PERFORM cut_outfit_buckets(current, ranges);
    END IF;
    ranges := ARRAY(
      SELECT b::outfit_bucket_ranges FROM (
        SELECT b, sum(b.public + b.private) OVER (ORDER BY b.from_value, b.from_id) - b.public - b.private AS before
        FROM outfit_bucket_ranges b
        WHERE b.ordering = current AND NOT b.is_group AND b.public + b.private > 2 * outfit_bucket_size()
      ) b WHERE b.before < budget
    );
    IF cardinality(ranges) > 0 THEN
      PERFORM cut_outfit_buckets(current, ranges);
      budget := budget - (SELECT sum(b.public + b.private) FROM unnest(ranges) b);
    END IF;
    SELECT sum(n), count(*), max(n) INTO buckets, groups, largest
    FROM (
      SELECT (SELECT count(*) FROM outfit_buckets b
        WHERE b.ordering = current AND NOT b.is_group
          AND (b.from_value, b.from_id) >= (g.from_value, g.from_id) AND (b.from_value, b.from_id) < (g.to_value, g.to_id)) AS n
      FROM outfit_bucket_ranges g WHERE g.ordering = current AND g.is_group
    ) g;
    IF greatest(groups, largest) > 2 * sqrt(buckets) + 1 THEN
      PERFORM group_outfit_buckets(current);
    END IF;
  END LOOP;
  RETURN budget > 0;
END $$;
