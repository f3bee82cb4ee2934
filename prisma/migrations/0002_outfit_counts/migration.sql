-- Exact counts and any page at a flat cost: src/outfits/counting.md explains the design.

-- How many outfits fall into each bucket of each ordering. A level is one division into buckets;
-- the tens of its number name the ordering.
CREATE TABLE "outfit_counts" (
    "level" SMALLINT NOT NULL,
    "bucket" BIGINT NOT NULL,
    "block" INTEGER NOT NULL,
    "slot" SMALLINT NOT NULL,
    "public" INTEGER NOT NULL,
    "private" INTEGER NOT NULL,

    CONSTRAINT "outfit_counts_pkey" PRIMARY KEY ("level", "bucket", "block", "slot")
);

-- The same rows are updated again and again: room in each page keeps that out of the index.
ALTER TABLE "outfit_counts" SET (fillfactor = 50);

-- Low bits of the id that do not count for an outfit's block among those with as many likes: the
-- more likes, the fewer outfits have just as many, and the wider the blocks can be.
CREATE FUNCTION outfit_block_bits(likes integer) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT 13 + width_bucket(likes, '{1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192,16384,32768,65536,131072}'::integer[])
$$;

-- The buckets that an outfit counts in. Each is a pure function of the sort key that keeps its
-- order, so none ever splits. `slots` rows share the writers of a bucket that many write to.
CREATE FUNCTION outfit_buckets(id integer, likes integer, created bigint, modified bigint)
RETURNS TABLE (level smallint, bucket bigint, block integer, slots integer)
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  VALUES
    (10::smallint, created >> 50, 0, 8), -- 36 years
    (11::smallint, created >> 44, 0, 8), -- 7 months
    (12::smallint, created >> 38, 0, 8), -- 3 days
    (13::smallint, created >> 32, 0, 8), -- 72 minutes
    (20::smallint, (id >> 22)::bigint, 0, 8),
    (21::smallint, (id >> 16)::bigint, 0, 8),
    (22::smallint, (id >> 10)::bigint, 0, 8),
    (30::smallint, (likes >> 12)::bigint, 0, 8),
    (31::smallint, (likes >> 6)::bigint, 0, 8),
    (32::smallint, likes::bigint, 0, CASE WHEN likes < 16 THEN 8 ELSE 1 END),
    (33::smallint, likes::bigint, id >> outfit_block_bits(likes), CASE WHEN likes < 8 THEN 4 ELSE 1 END),
    (40::smallint, modified >> 50, 0, 8),
    (41::smallint, modified >> 44, 0, 8),
    (42::smallint, modified >> 38, 0, 8),
    (43::smallint, modified >> 32, 0, 8)
$$;

-- Follows every statement that writes outfits, whoever sends it. The buckets are written in the
-- order of their key, so that two statements never wait for each other in a circle. Runs with the
-- rights of the owner, so that other roles need none on the counts.
CREATE FUNCTION follow_outfits() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO outfit_counts AS c
    SELECT b.level, b.bucket, b.block, pg_backend_pid() % b.slots,
      count(*) FILTER (WHERE NOT o.private), count(*) FILTER (WHERE o.private)
    FROM added o, outfit_buckets(o.id, o.likes, o.created, o.modified) b
    GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
    ON CONFLICT ON CONSTRAINT outfit_counts_pkey
      DO UPDATE SET public = c.public + excluded.public, private = c.private + excluded.private;
  ELSIF TG_OP = 'DELETE' THEN
    INSERT INTO outfit_counts AS c
    SELECT b.level, b.bucket, b.block, pg_backend_pid() % b.slots,
      -count(*) FILTER (WHERE NOT o.private), -count(*) FILTER (WHERE o.private)
    FROM removed o, outfit_buckets(o.id, o.likes, o.created, o.modified) b
    GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
    ON CONFLICT ON CONSTRAINT outfit_counts_pkey
      DO UPDATE SET public = c.public + excluded.public, private = c.private + excluded.private;
  ELSIF TG_OP = 'UPDATE' THEN
    INSERT INTO outfit_counts AS c
    SELECT * FROM (
      SELECT b.level, b.bucket, b.block, pg_backend_pid() % b.slots,
        coalesce(sum(o.sign) FILTER (WHERE NOT o.private), 0) AS public,
        coalesce(sum(o.sign) FILTER (WHERE o.private), 0) AS private
      FROM (
        SELECT id, likes, created, modified, private, 1 AS sign FROM added
        UNION ALL SELECT id, likes, created, modified, private, -1 FROM removed
      ) o, outfit_buckets(o.id, o.likes, o.created, o.modified) b
      GROUP BY 1, 2, 3, 4
    ) change
    WHERE public <> 0 OR private <> 0 ORDER BY 1, 2, 3, 4
    ON CONFLICT ON CONSTRAINT outfit_counts_pkey
      DO UPDATE SET public = c.public + excluded.public, private = c.private + excluded.private;
  ELSE
    -- Not TRUNCATE: its lock would meet readers that hold the counts and wait for the outfits.
    DELETE FROM outfit_counts;
  END IF;
  RETURN NULL;
END $$;

-- A caller's temporary table must not be taken for the counts.
DO $do$
BEGIN
  EXECUTE format('ALTER FUNCTION follow_outfits() SET search_path TO %I, pg_temp', current_schema());
END $do$;

CREATE TRIGGER count_inserted AFTER INSERT ON outfits
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION follow_outfits();
CREATE TRIGGER count_updated AFTER UPDATE ON outfits
  REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION follow_outfits();
CREATE TRIGGER count_deleted AFTER DELETE ON outfits
  REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION follow_outfits();
CREATE TRIGGER count_truncated AFTER TRUNCATE ON outfits
  FOR EACH STATEMENT EXECUTE FUNCTION follow_outfits();

-- Also where triggers are switched off for replication and restores.
ALTER TABLE outfits ENABLE ALWAYS TRIGGER count_inserted;
ALTER TABLE outfits ENABLE ALWAYS TRIGGER count_updated;
ALTER TABLE outfits ENABLE ALWAYS TRIGGER count_deleted;
ALTER TABLE outfits ENABLE ALWAYS TRIGGER count_truncated;

-- Number of outfits; of the public ones, unless `with_private`.
CREATE FUNCTION count_outfits(with_private boolean) RETURNS bigint
LANGUAGE sql STABLE AS $$
  SELECT coalesce(sum(public + CASE WHEN with_private THEN private ELSE 0 END), 0)
  FROM outfit_counts WHERE level = 20
$$;

-- The bucket that holds the outfit with `skip` others before it: the least sort key that the
-- bucket can hold, and how many outfits of the bucket remain to be skipped. Nulls when there is none.
CREATE FUNCTION seek_outfit(ordering text, with_private boolean, INOUT skip bigint, OUT value bigint, OUT id integer)
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  first_level integer := CASE ordering WHEN 'created' THEN 10 WHEN 'id' THEN 20 WHEN 'likes' THEN 30 ELSE 40 END;
  last_level integer := CASE ordering WHEN 'id' THEN 22 ELSE first_level + 3 END;
  low bigint := -9223372036854775808;
  high bigint := 9223372036854775807;
  found_block integer;
BEGIN
  FOR current_level IN first_level..last_level LOOP
    SELECT s.bucket, s.block, seek_outfit.skip - s.reached + s.rows INTO value, found_block, skip
    FROM (
      SELECT b.*, sum(b.rows) OVER (ORDER BY b.bucket, b.block) AS reached
      FROM (
        SELECT c.bucket, c.block,
          sum(c.public + CASE WHEN with_private THEN c.private ELSE 0 END)::integer AS rows
        FROM outfit_counts c
        WHERE c.level = current_level AND c.bucket BETWEEN low AND high
        GROUP BY c.bucket, c.block
      ) b
    ) s
    WHERE s.reached > seek_outfit.skip ORDER BY s.bucket, s.block LIMIT 1;
    IF NOT FOUND THEN
      RETURN;
    END IF;
    -- Every level divides a bucket of the one before into 64, but the last one of likes divides
    -- the outfits with one number of likes.
    low := CASE WHEN current_level = 32 THEN value ELSE value << 6 END;
    high := CASE WHEN current_level = 32 THEN value ELSE low + 63 END;
  END LOOP;
  id := -2147483648;
  IF ordering = 'id' THEN
    id := value << 10;
  ELSIF ordering = 'likes' THEN
    id := found_block << outfit_block_bits(value::integer);
  ELSE
    value := value << 32;
  END IF;
END $$;

-- outfits_by_created, outfits_by_id, outfits_by_likes, outfits_by_modified: the ids of `take`
-- outfits in ascending order after skipping `skip`, with their places. One function per ordering,
-- so that its plan can be kept: planning would take longer than the rest. Sequential and bitmap
-- scans are off in it, because the planner cannot know how few rows the limit leaves.
DO $do$
DECLARE
  field text;
  key text;
  place text;
BEGIN
  FOREACH field IN ARRAY '{created,id,likes,modified}'::text[] LOOP
    key := CASE field WHEN 'id' THEN 'o.id' ELSE format('o.%s, o.id', field) END;
    place := CASE field WHEN 'id' THEN 'start.id' ELSE 'start.value, start.id' END;
    EXECUTE format($sql$
      CREATE FUNCTION outfits_by_%1$s(with_private boolean, skip bigint, take integer)
      RETURNS TABLE ("position" bigint, id integer)
      LANGUAGE plpgsql STABLE ROWS 20
      SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $body$
      DECLARE
        start record;
      BEGIN
        SELECT * INTO start FROM seek_outfit('%1$s', with_private, skip);
        -- OFFSET 0 keeps the two index ranges apart, so that they are merged and not sorted.
        RETURN QUERY SELECT row_number() OVER (), page.id FROM (
          (SELECT %2$s FROM outfits o
           WHERE NOT o.private AND (%2$s) >= (%3$s) ORDER BY %2$s OFFSET 0)
          UNION ALL
          (SELECT %2$s FROM outfits o
           WHERE o.private AND with_private AND (%2$s) >= (%3$s) ORDER BY %2$s OFFSET 0)
          ORDER BY %4$s OFFSET start.skip LIMIT take
        ) page;
      END $body$
    $sql$, field, key, place, replace(key, 'o.', ''));
  END LOOP;
END $do$;

-- The buckets whose counts are not those of the outfits in them: none, unless triggers were off.
CREATE FUNCTION check_outfit_counts()
RETURNS TABLE (level smallint, bucket bigint, block integer, counted bigint[], found bigint[])
LANGUAGE sql STABLE AS $$
  SELECT level, bucket, block, coalesce(c.rows, '{0,0}'), coalesce(o.rows, '{0,0}')
  FROM (
    SELECT level, bucket, block, ARRAY[sum(public), sum(private)] AS rows
    FROM outfit_counts GROUP BY 1, 2, 3
  ) c
  FULL JOIN (
    SELECT b.level, b.bucket, b.block,
      ARRAY[count(*) FILTER (WHERE NOT o.private), count(*) FILTER (WHERE o.private)] AS rows
    FROM outfits o, outfit_buckets(o.id, o.likes, o.created, o.modified) b GROUP BY 1, 2, 3
  ) o USING (level, bucket, block)
  WHERE coalesce(c.rows, '{0,0}') <> coalesce(o.rows, '{0,0}')
$$;

-- Counts everything anew. Writers wait meanwhile; readers go on with the old counts until it commits.
CREATE FUNCTION rebuild_outfit_counts() RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  LOCK TABLE outfits IN SHARE MODE;
  DELETE FROM outfit_counts;
  INSERT INTO outfit_counts
  SELECT b.level, b.bucket, b.block, 0,
    count(*) FILTER (WHERE NOT o.private), count(*) FILTER (WHERE o.private)
  FROM outfits o, outfit_buckets(o.id, o.likes, o.created, o.modified) b
  GROUP BY 1, 2, 3;
END $$;

SELECT rebuild_outfit_counts();
