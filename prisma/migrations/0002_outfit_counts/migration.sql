-- Exact counts and any page at a flat cost: src/outfits/counting.md explains the design.

-- How many outfits fall into each bucket of each ordering.
CREATE TABLE "outfit_counts" (
    "ordering" TEXT NOT NULL,
    "level" SMALLINT NOT NULL,
    "bucket" BIGINT NOT NULL,
    "block" INTEGER NOT NULL,
    "private" BOOLEAN NOT NULL,
    "slot" SMALLINT NOT NULL,
    "rows" BIGINT NOT NULL,

    CONSTRAINT "outfit_counts_pkey" PRIMARY KEY ("ordering", "level", "bucket", "block", "private", "slot")
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
RETURNS TABLE (ordering text, level smallint, bucket bigint, block integer, slots integer)
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  VALUES
    ('created', 0::smallint, created >> 46, 0, 8), -- 2.2 years
    ('created', 1::smallint, created >> 38, 0, 8), -- 3.2 days
    ('created', 2::smallint, created >> 30, 0, 8), -- 18 minutes
    ('id', 0::smallint, (id >> 18)::bigint, 0, 8),
    ('id', 1::smallint, (id >> 10)::bigint, 0, 8),
    ('likes', 0::smallint, (likes >> 8)::bigint, 0, 8),
    ('likes', 1::smallint, likes::bigint, 0, CASE WHEN likes < 32 THEN 8 ELSE 1 END),
    ('likes', 2::smallint, likes::bigint, id >> outfit_block_bits(likes), CASE WHEN likes < 8 THEN 4 ELSE 1 END),
    ('modified', 0::smallint, modified >> 46, 0, 8),
    ('modified', 1::smallint, modified >> 38, 0, 8),
    ('modified', 2::smallint, modified >> 30, 0, 8)
$$;

-- Follows every statement that writes outfits, whoever sends it. The buckets are written in the
-- order of their key, so that two statements never wait for each other in a circle. Runs with the
-- rights of the owner, so that other roles need none on the counts.
CREATE FUNCTION follow_outfits() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO outfit_counts AS c
    SELECT b.ordering, b.level, b.bucket, b.block, o.private, pg_backend_pid() % b.slots, count(*)
    FROM added o, outfit_buckets(o.id, o.likes, o.created, o.modified) b
    GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6
    ON CONFLICT ON CONSTRAINT outfit_counts_pkey DO UPDATE SET rows = c.rows + excluded.rows;
  ELSIF TG_OP = 'DELETE' THEN
    INSERT INTO outfit_counts AS c
    SELECT b.ordering, b.level, b.bucket, b.block, o.private, pg_backend_pid() % b.slots, -count(*)
    FROM removed o, outfit_buckets(o.id, o.likes, o.created, o.modified) b
    GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6
    ON CONFLICT ON CONSTRAINT outfit_counts_pkey DO UPDATE SET rows = c.rows + excluded.rows;
  ELSIF TG_OP = 'UPDATE' THEN
    INSERT INTO outfit_counts AS c
    SELECT b.ordering, b.level, b.bucket, b.block, o.private, pg_backend_pid() % b.slots, sum(o.sign)
    FROM (SELECT *, 1 AS sign FROM added UNION ALL SELECT *, -1 FROM removed) o,
      outfit_buckets(o.id, o.likes, o.created, o.modified) b
    GROUP BY 1, 2, 3, 4, 5, 6 HAVING sum(o.sign) <> 0 ORDER BY 1, 2, 3, 4, 5, 6
    ON CONFLICT ON CONSTRAINT outfit_counts_pkey DO UPDATE SET rows = c.rows + excluded.rows;
  ELSE
    TRUNCATE outfit_counts;
  END IF;
  RETURN NULL;
END $$;

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

-- Number of outfits that are private or not as `visible` says.
CREATE FUNCTION count_outfits(visible boolean[]) RETURNS bigint
LANGUAGE sql STABLE AS $$
  SELECT coalesce(sum(rows), 0)::bigint FROM outfit_counts
  WHERE ordering = 'id' AND level = 0 AND private = ANY (visible)
$$;

-- The bucket that holds the outfit with `skip` others before it: the least sort key that the
-- bucket can hold, and how many outfits of the bucket remain to be skipped. Nulls when there is none.
CREATE FUNCTION seek_outfit(by text, visible boolean[], INOUT skip bigint, OUT value bigint, OUT id integer)
LANGUAGE plpgsql STABLE AS $$
DECLARE
  -- Bits that each level after the first adds to the one before it.
  added_bits integer[] := CASE by WHEN 'id' THEN '{8}' WHEN 'likes' THEN '{8,0}' ELSE '{8,8}' END;
  levels integer := cardinality(added_bits);
  low bigint := -9223372036854775808;
  high bigint := 9223372036854775807;
  found_block integer;
BEGIN
  FOR current_level IN 0..levels LOOP
    SELECT s.bucket, s.block, seek_outfit.skip - s.before INTO value, found_block, skip
    FROM (
      SELECT c.bucket, c.block, sum(c.rows) AS rows,
        sum(sum(c.rows)) OVER (ORDER BY c.bucket, c.block) - sum(c.rows) AS before
      FROM outfit_counts c
      WHERE c.ordering = by AND c.level = current_level
        AND c.bucket BETWEEN low AND high AND c.private = ANY (visible)
      GROUP BY c.bucket, c.block
    ) s
    WHERE s.before <= seek_outfit.skip AND seek_outfit.skip < s.before + s.rows;
    IF NOT FOUND THEN
      RETURN;
    END IF;
    IF current_level < levels THEN
      low := value << added_bits[current_level + 1];
      high := low + (1 << added_bits[current_level + 1]) - 1;
    END IF;
  END LOOP;
  id := -2147483648;
  IF by = 'id' THEN
    id := value << 10;
  ELSIF by = 'likes' THEN
    id := found_block << outfit_block_bits(value::integer);
  ELSE
    value := value << 30;
  END IF;
END $$;

-- outfits_by_created, outfits_by_id, outfits_by_likes, outfits_by_modified: the ids of `take`
-- outfits in ascending order after skipping `skip`, with their places. One function per ordering,
-- so that its plan can be kept; sequential and bitmap scans are off in it, because the planner
-- cannot know how few rows the limit leaves.
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
      CREATE FUNCTION outfits_by_%1$s(visible boolean[], skip bigint, take integer)
      RETURNS TABLE ("position" bigint, id integer)
      LANGUAGE plpgsql STABLE ROWS 20 SET enable_seqscan = off SET enable_bitmapscan = off AS $body$
      DECLARE
        start record;
      BEGIN
        SELECT * INTO start FROM seek_outfit('%1$s', visible, skip);
        -- OFFSET 0 keeps the two index ranges apart, so that they are merged and not sorted.
        RETURN QUERY SELECT row_number() OVER (), page.id FROM (
          (SELECT %2$s FROM outfits o
           WHERE NOT o.private AND false = ANY (visible) AND (%2$s) >= (%3$s) ORDER BY %2$s OFFSET 0)
          UNION ALL
          (SELECT %2$s FROM outfits o
           WHERE o.private AND true = ANY (visible) AND (%2$s) >= (%3$s) ORDER BY %2$s OFFSET 0)
          ORDER BY %4$s OFFSET start.skip LIMIT take
        ) page;
      END $body$
    $sql$, field, key, place, replace(key, 'o.', ''));
  END LOOP;
END $do$;

-- The buckets whose count is not that of the outfits in them: none, unless triggers were off.
CREATE FUNCTION check_outfit_counts()
RETURNS TABLE (ordering text, level smallint, bucket bigint, block integer, private boolean, counted bigint, found bigint)
LANGUAGE sql STABLE AS $$
  SELECT ordering, level, bucket, block, private, coalesce(c.rows, 0), coalesce(o.rows, 0)
  FROM (
    SELECT ordering, level, bucket, block, private, sum(rows)::bigint AS rows
    FROM outfit_counts GROUP BY 1, 2, 3, 4, 5
  ) c
  FULL JOIN (
    SELECT b.ordering, b.level, b.bucket, b.block, o.private, count(*) AS rows
    FROM outfits o, outfit_buckets(o.id, o.likes, o.created, o.modified) b GROUP BY 1, 2, 3, 4, 5
  ) o USING (ordering, level, bucket, block, private)
  WHERE coalesce(c.rows, 0) <> coalesce(o.rows, 0)
$$;

-- Counts everything anew. Writers wait meanwhile; readers go on with the old counts until it commits.
CREATE FUNCTION rebuild_outfit_counts() RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  LOCK TABLE outfits IN SHARE MODE;
  DELETE FROM outfit_counts;
  INSERT INTO outfit_counts
  SELECT b.ordering, b.level, b.bucket, b.block, o.private, 0, count(*)
  FROM outfits o, outfit_buckets(o.id, o.likes, o.created, o.modified) b
  GROUP BY 1, 2, 3, 4, 5;
END $$;

SELECT rebuild_outfit_counts();
