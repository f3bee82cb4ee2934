-- Counts and pages of a range of the sort field, at the flat cost of the whole list: see
-- src/outfits/filters.md.

-- How many outfits sort before all with this value; of the public ones, unless `with_private`. Sums
-- the buckets below it, at most 64 of each level, and reads the index inside the last bucket only.
-- Each number of likes has a bucket of its own, so of those nothing else is read.
CREATE FUNCTION rank_outfits(ordering text, with_private boolean, value bigint) RETURNS bigint
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  first_level integer := CASE ordering WHEN 'created' THEN 10 WHEN 'likes' THEN 30 END;
  shifts integer[] := CASE ordering WHEN 'created' THEN '{50,44,38,32}'::integer[] ELSE '{12,6,0}'::integer[] END;
  low bigint := -9223372036854775808;
  high bigint;
  counted bigint;
  total bigint := 0;
BEGIN
  FOR step IN 1..cardinality(shifts) LOOP
    high := value >> shifts[step];
    SELECT coalesce(sum(c.public + CASE WHEN with_private THEN c.private ELSE 0 END), 0) INTO counted
    FROM outfit_counts c
    WHERE c.level = first_level + step - 1 AND c.bucket >= low AND c.bucket < high;
    total := total + counted;
    low := high << 6;
  END LOOP;
  IF ordering = 'created' THEN
    low := high << 32;
    SELECT count(*) INTO counted FROM outfits o
    WHERE NOT o.private AND o.created >= low AND o.created < value;
    total := total + counted;
    IF with_private THEN
      SELECT count(*) INTO counted FROM outfits o
      WHERE o.private AND o.created >= low AND o.created < value;
      total := total + counted;
    END IF;
  END IF;
  RETURN total;
END $$;
