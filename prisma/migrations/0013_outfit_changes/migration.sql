-- Counting without a price for writers: src/outfits/counting.md explains the design.

-- Nobody writes from here on until the end, so the counts of before hold. LOCK takes no snapshot: also
-- at other isolation levels, what follows sees all that was written before. Users first, as imports do.
LOCK TABLE users, outfits IN SHARE ROW EXCLUSIVE MODE;
-- It goes: whoever reads it is waited for now, and not in the middle.
LOCK TABLE outfit_counts IN ACCESS EXCLUSIVE MODE;

-- What each transaction did. One row for each outfit that a statement inserted (old_* are null),
-- deleted (new_* are null) or updated in anything. Without an outfit but with users: that user was
-- inserted, updated or deleted. Without anything: anything may have changed.
CREATE TABLE "outfit_changes" (
    "xid" xid8 NOT NULL,
    "outfit_id" INTEGER,
    "old_user_id" INTEGER,
    "old_private" BOOLEAN,
    "old_likes" INTEGER,
    "old_created" BIGINT,
    "old_modified" BIGINT,
    "new_user_id" INTEGER,
    "new_private" BOOLEAN,
    "new_likes" INTEGER,
    "new_created" BIGINT,
    "new_modified" BIGINT
);

-- CreateIndex
CREATE INDEX "outfit_changes_xid_idx" ON "outfit_changes"("xid");

-- Also where a publication has all tables, whose rows must be told apart to be deleted. Rows come and go
-- at the ends of the table: to give its empty end back would stop readers.
ALTER TABLE "outfit_changes" REPLICA IDENTITY FULL;
ALTER TABLE "outfit_changes" SET (vacuum_truncate = false, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000);

-- How many outfits fall into each node of each ordering, as of the snapshot of outfit_fold: of all outfits
-- (owner 2147483648, which no user is), and of each user who has very many. Those users are named by the buckets of
-- owner 2147483649.
CREATE TABLE "outfit_bucket_counts" (
    "owner" BIGINT NOT NULL,
    "level" SMALLINT NOT NULL,
    "bucket" BIGINT NOT NULL,
    "block" INTEGER NOT NULL,
    "public" INTEGER NOT NULL,
    "private" INTEGER NOT NULL,
    "split" BOOLEAN NOT NULL DEFAULT false,

    CONSTRAINT "outfit_bucket_counts_pkey" PRIMARY KEY ("owner", "level", "bucket", "block")
);

-- The same rows are updated again and again: room in each page keeps that out of the index.
ALTER TABLE "outfit_bucket_counts" SET (fillfactor = 50);

-- The counts hold exactly the changes that are visible in `snapshot`: all others are pending. Whoever
-- writes counts holds the lock of this row. Changes of transactions below `kept_from` may be gone: all
-- are that were visible in `mark` when a later mark was set.
CREATE TABLE "outfit_fold" (
    "is_only" BOOLEAN NOT NULL DEFAULT true CHECK ("is_only"),
    "snapshot" pg_snapshot NOT NULL,
    "kept_from" xid8 NOT NULL,
    "mark" pg_snapshot NOT NULL,
    "marked_at" TIMESTAMPTZ(6) NOT NULL,
    -- Whether there may be nodes that are crowded and not split.
    "crowded" BOOLEAN NOT NULL,
    -- Whether there may be users with very many outfits that have no nodes.
    "unplanted" BOOLEAN NOT NULL,

    CONSTRAINT "outfit_fold_pkey" PRIMARY KEY ("is_only")
);

-- The current snapshot, but for what the asking transaction has written itself. PostgreSQL leaves that
-- one out of the list of those under way.
CREATE FUNCTION outfit_snapshot() RETURNS pg_snapshot
LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN own IS NULL OR NOT pg_visible_in_snapshot(own, current) THEN current ELSE
    format('%s:%s:%s', least(own, pg_snapshot_xmin(current)), pg_snapshot_xmax(current),
      (SELECT string_agg(xid::text, ',' ORDER BY xid)
       FROM (SELECT pg_snapshot_xip(current) AS xid UNION SELECT own) AS running))::pg_snapshot END
  FROM (SELECT pg_current_snapshot() AS current, pg_current_xact_id_if_assigned() AS own) AS now
$$;

-- Whether the snapshot of the counts is of another cluster, from which this one was restored: one whose
-- transactions that are under way here had ended, or that had come further.
CREATE FUNCTION is_outfit_fold_foreign() RETURNS boolean
LANGUAGE sql STABLE AS $$
  SELECT pg_snapshot_xmax(pg_current_snapshot()) < pg_snapshot_xmax(snapshot)
    OR coalesce(pg_visible_in_snapshot(pg_current_xact_id_if_assigned(), snapshot), false)
    OR EXISTS (SELECT FROM pg_snapshot_xip(pg_current_snapshot()) xid WHERE pg_visible_in_snapshot(xid, snapshot))
  FROM outfit_fold
$$;

-- Gives counts from another cluster a snapshot of this one: what was pending there becomes a change of
-- the transaction that does this, what was counted goes.
CREATE FUNCTION settle_outfit_changes() RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM outfit_fold FOR UPDATE;
  -- Another one may have done it meanwhile.
  IF NOT is_outfit_fold_foreign() THEN
    RETURN;
  END IF;
  WITH counted AS (
    DELETE FROM outfit_changes c USING outfit_fold f WHERE pg_visible_in_snapshot(c.xid, f.snapshot)
  ), pending AS (
    UPDATE outfit_changes c SET xid = pg_current_xact_id()
    FROM outfit_fold f WHERE NOT pg_visible_in_snapshot(c.xid, f.snapshot)
  )
  UPDATE outfit_fold SET snapshot = outfit_snapshot(), mark = outfit_snapshot(), marked_at = now(),
    kept_from = pg_snapshot_xmax(outfit_snapshot());
  INSERT INTO outfit_changes (xid) VALUES (pg_current_xact_id());
END $$;

-- Follows every statement that writes outfits, whoever sends it, and only ever inserts, so that no
-- writer waits for another one. A full join is hashed or merged: a plan made for one row does for a
-- million. Runs with the rights of the owner, so that other roles need none on the changes.
CREATE FUNCTION note_outfits() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET jit = off AS $$
BEGIN
  -- A transaction that is under way cannot be counted.
  IF EXISTS (SELECT FROM outfit_fold WHERE pg_visible_in_snapshot(pg_current_xact_id_if_assigned(), snapshot)) THEN
    PERFORM settle_outfit_changes();
  END IF;
  IF TG_OP = 'INSERT' THEN
    INSERT INTO outfit_changes (xid, outfit_id, new_user_id, new_private, new_likes, new_created, new_modified)
    SELECT pg_current_xact_id(), id, user_id, private, likes, created, modified FROM added;
  ELSIF TG_OP = 'DELETE' THEN
    INSERT INTO outfit_changes (xid, outfit_id, old_user_id, old_private, old_likes, old_created, old_modified)
    SELECT pg_current_xact_id(), id, user_id, private, likes, created, modified FROM removed;
  ELSE
    INSERT INTO outfit_changes
    SELECT pg_current_xact_id(), id, o.user_id, o.private, o.likes, o.created, o.modified,
      n.user_id, n.private, n.likes, n.created, n.modified
    FROM removed o FULL JOIN added n USING (id) WHERE o.likes <> n.likes OR o IS DISTINCT FROM n;
  END IF;
  RETURN NULL;
END $$;

-- The same row by row, where statements fire no triggers: logical replication, and sessions with the
-- role of a replica.
CREATE FUNCTION note_replicated_outfit() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  -- ENABLE TRIGGER ALL, with which a restore may end, lets this one fire beside the others.
  IF current_setting('session_replication_role') <> 'replica' THEN
    RETURN NULL;
  END IF;
  IF EXISTS (SELECT FROM outfit_fold WHERE pg_visible_in_snapshot(pg_current_xact_id_if_assigned(), snapshot)) THEN
    PERFORM settle_outfit_changes();
  END IF;
  IF TG_OP <> 'INSERT' AND (TG_OP = 'DELETE' OR OLD.id <> NEW.id) THEN
    INSERT INTO outfit_changes (xid, outfit_id, old_user_id, old_private, old_likes, old_created, old_modified)
    VALUES (pg_current_xact_id(), OLD.id, OLD.user_id, OLD.private, OLD.likes, OLD.created, OLD.modified);
  END IF;
  IF TG_OP = 'INSERT' OR (TG_OP = 'UPDATE' AND OLD.id <> NEW.id) THEN
    INSERT INTO outfit_changes (xid, outfit_id, new_user_id, new_private, new_likes, new_created, new_modified)
    VALUES (pg_current_xact_id(), NEW.id, NEW.user_id, NEW.private, NEW.likes, NEW.created, NEW.modified);
  ELSIF TG_OP = 'UPDATE' AND OLD IS DISTINCT FROM NEW THEN
    INSERT INTO outfit_changes
    VALUES (pg_current_xact_id(), NEW.id, OLD.user_id, OLD.private, OLD.likes, OLD.created, OLD.modified,
      NEW.user_id, NEW.private, NEW.likes, NEW.created, NEW.modified);
  END IF;
  RETURN NULL;
END $$;

-- Users are not counted, but answers show them.
CREATE FUNCTION note_users() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET jit = off AS $$
BEGIN
  IF EXISTS (SELECT FROM outfit_fold WHERE pg_visible_in_snapshot(pg_current_xact_id_if_assigned(), snapshot)) THEN
    PERFORM settle_outfit_changes();
  END IF;
  IF TG_OP = 'INSERT' THEN
    INSERT INTO outfit_changes (xid, new_user_id) SELECT pg_current_xact_id(), id FROM added;
  ELSIF TG_OP = 'DELETE' THEN
    INSERT INTO outfit_changes (xid, old_user_id) SELECT pg_current_xact_id(), id FROM removed;
  ELSE
    INSERT INTO outfit_changes (xid, old_user_id, new_user_id)
    SELECT pg_current_xact_id(), o.id, n.id
    FROM removed o FULL JOIN added n USING (id) WHERE o IS DISTINCT FROM n;
  END IF;
  RETURN NULL;
END $$;

CREATE FUNCTION note_replicated_user() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  IF current_setting('session_replication_role') = 'replica' THEN
    IF EXISTS (SELECT FROM outfit_fold WHERE pg_visible_in_snapshot(pg_current_xact_id_if_assigned(), snapshot)) THEN
      PERFORM settle_outfit_changes();
    END IF;
    INSERT INTO outfit_changes (xid, old_user_id, new_user_id)
    VALUES (pg_current_xact_id(), CASE WHEN TG_OP <> 'INSERT' THEN OLD.id END, CASE WHEN TG_OP <> 'DELETE' THEN NEW.id END);
  END IF;
  RETURN NULL;
END $$;

-- Whoever empties the table has waited for all who wrote to it, and must see what they wrote.
CREATE FUNCTION note_truncated_outfits() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE feature_not_supported USING
      MESSAGE = 'outfits cannot be truncated at this isolation level, whose snapshot may lack counts that others have written',
      HINT = 'Use READ COMMITTED, or DELETE FROM outfits.';
  END IF;
  PERFORM FROM outfit_fold FOR UPDATE;
  -- Not TRUNCATE: its lock would meet readers that hold the counts and wait for the outfits.
  DELETE FROM outfit_bucket_counts;
  WITH gone AS (DELETE FROM outfit_changes)
  UPDATE outfit_fold SET snapshot = outfit_snapshot(), mark = outfit_snapshot(), marked_at = now(),
    kept_from = pg_snapshot_xmax(outfit_snapshot()), crowded = false, unplanted = false;
  INSERT INTO outfit_changes (xid) VALUES (pg_current_xact_id());
  RETURN NULL;
END $$;

-- To replace those of before takes no more than the lock that is held; to drop one would wait for readers.
CREATE OR REPLACE TRIGGER count_inserted AFTER INSERT ON outfits
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION note_outfits();
CREATE OR REPLACE TRIGGER count_updated AFTER UPDATE ON outfits
  REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION note_outfits();
CREATE OR REPLACE TRIGGER count_deleted AFTER DELETE ON outfits
  REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION note_outfits();
CREATE TRIGGER count_replicated AFTER INSERT OR UPDATE OR DELETE ON outfits
  FOR EACH ROW EXECUTE FUNCTION note_replicated_outfit();
CREATE OR REPLACE TRIGGER count_truncated AFTER TRUNCATE ON outfits
  FOR EACH STATEMENT EXECUTE FUNCTION note_truncated_outfits();

CREATE TRIGGER note_inserted AFTER INSERT ON users
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION note_users();
CREATE TRIGGER note_updated AFTER UPDATE ON users
  REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION note_users();
CREATE TRIGGER note_deleted AFTER DELETE ON users
  REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION note_users();
CREATE TRIGGER note_replicated AFTER INSERT OR UPDATE OR DELETE ON users
  FOR EACH ROW EXECUTE FUNCTION note_replicated_user();

-- Makes the triggers fire where they should, and the functions find their tables: for the beginning, and
-- again after a restore with ENABLE TRIGGER ALL or a renamed schema. A caller's temporary table must not
-- be taken for one of these.
CREATE FUNCTION arm_outfit_triggers() RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  name text;
  -- Not the current one, which may be another for whoever asks for this.
  home text := (SELECT nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = 'outfits'::regclass);
BEGIN
  LOCK TABLE users, outfits IN SHARE ROW EXCLUSIVE MODE;
  FOREACH name IN ARRAY '{inserted,updated,deleted}'::text[] LOOP
    EXECUTE format('ALTER TABLE outfits ENABLE TRIGGER %I', 'count_' || name);
    EXECUTE format('ALTER TABLE users ENABLE TRIGGER %I', 'note_' || name);
  END LOOP;
  ALTER TABLE outfits ENABLE REPLICA TRIGGER count_replicated;
  ALTER TABLE users ENABLE REPLICA TRIGGER note_replicated;
  FOREACH name IN ARRAY '{count_truncated,text_inserted,text_updated,text_deleted,text_truncated}'::text[] LOOP
    EXECUTE format('ALTER TABLE outfits ENABLE ALWAYS TRIGGER %I', name);
  END LOOP;
  FOREACH name IN ARRAY '{note_outfits,note_replicated_outfit,note_users,note_replicated_user,note_truncated_outfits,follow_outfit_texts}'::text[] LOOP
    EXECUTE format('ALTER FUNCTION %I() SET search_path TO %I, pg_temp', name, home);
  END LOOP;
  EXECUTE format('ALTER FUNCTION fold_outfit_changes(integer, integer) SET search_path TO %I, pg_temp', home);
END $$;

-- Levels. The hundreds name the ordering. Each level divides the nodes of the one above: first the sort
-- field, and then, among outfits with the same value, the id. The first ones are kept for all outfits,
-- down to a leaf; those below only where the node above is split.
--   created 100-103 | 104-108, 109-111    likes 300-304 | 305-307
--   id      200-202                       modified as created, from 400 on

-- Low bits of the sort field that do not count for the bucket, and of the id that do not for the block;
-- null where nodes have all ids.
CREATE FUNCTION outfit_value_shift(level integer) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE level / 100
    WHEN 2 THEN ('{22,16,10}'::integer[])[level % 100 + 1]
    WHEN 3 THEN ('{24,18,12,6,0,0,0,0}'::integer[])[level % 100 + 1]
    ELSE ('{50,44,38,32,26,20,14,7,0,0,0,0}'::integer[])[level % 100 + 1] END
$$;
CREATE FUNCTION outfit_id_shift(level integer) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE level
    WHEN 109 THEN 24 WHEN 110 THEN 17 WHEN 111 THEN 10
    WHEN 305 THEN 24 WHEN 306 THEN 17 WHEN 307 THEN 10
    WHEN 409 THEN 24 WHEN 410 THEN 17 WHEN 411 THEN 10 END
$$;

-- What a node holds, as the first and the last sort key that it can.
CREATE FUNCTION outfit_node_keys(level integer, bucket bigint, block integer)
RETURNS TABLE (low bigint, low_id integer, high bigint, high_id integer)
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 1 AS $$
  SELECT bucket << shift, coalesce(block << id_shift, -2147483648),
    (bucket << shift) | ((1::bigint << shift) - 1), coalesce((block << id_shift) | ((1 << id_shift) - 1), 2147483647)
  FROM (SELECT outfit_value_shift(level) AS shift, outfit_id_shift(level) AS id_shift) AS shifts
$$;

-- The node of a level in which a sort key falls.
CREATE FUNCTION outfit_node_at(level integer, value bigint, id integer)
RETURNS TABLE (bucket bigint, block integer)
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 1 AS $$
  SELECT value >> outfit_value_shift(level), coalesce(id >> outfit_id_shift(level), 0)
$$;

-- The bucket above a bucket, and the block above a block.
CREATE FUNCTION outfit_parent_bucket(level integer, bucket bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN level / 100 = 3 AND level >= 305 OR level / 100 IN (1, 4) AND level % 100 >= 9 THEN bucket
    WHEN level IN (107, 108, 407, 408) THEN bucket >> 7
    ELSE bucket >> 6 END
$$;
CREATE FUNCTION outfit_parent_block(level integer, block integer) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN level IN (109, 305, 409) THEN 0 ELSE block >> 7 END
$$;

-- Whether nodes of a level can be split: leaves, and what is below them but for the last.
CREATE FUNCTION is_outfit_level_splittable(level integer) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT level BETWEEN 103 AND 110 OR level BETWEEN 304 AND 306 OR level BETWEEN 403 AND 410
$$;

-- The changes that the counts do not hold yet. That is few rows of the index, also where a transaction
-- has been under way for a day.
CREATE FUNCTION pending_outfit_changes() RETURNS SETOF outfit_changes
LANGUAGE sql STABLE ROWS 100 AS $$
  SELECT * FROM outfit_changes WHERE xid >= (SELECT pg_snapshot_xmax(snapshot) FROM outfit_fold)
  UNION ALL
  SELECT * FROM outfit_changes WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip((SELECT snapshot FROM outfit_fold))))
$$;

-- How many those are; no more than `enough` are counted.
CREATE FUNCTION count_pending_outfit_changes(enough integer) RETURNS integer
LANGUAGE sql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
  SELECT count(*)::integer FROM (SELECT FROM pending_outfit_changes() LIMIT enough) AS pending
$$;

-- What they add to the ordering with this leaf, for the outfits that they moved in it, or to another owner.
CREATE FUNCTION pending_outfit_moves(leaf integer)
RETURNS TABLE (value bigint, id integer, owner integer, public integer, private integer, xid xid8)
LANGUAGE sql STABLE ROWS 100 AS $$
  WITH pending AS MATERIALIZED (
    SELECT xid, outfit_id AS id, old_user_id, new_user_id, old_private, new_private,
      CASE leaf WHEN 103 THEN old_created WHEN 202 THEN outfit_id WHEN 304 THEN old_likes ELSE old_modified END AS old_value,
      CASE leaf WHEN 103 THEN new_created WHEN 202 THEN outfit_id WHEN 304 THEN new_likes ELSE new_modified END AS new_value
    FROM pending_outfit_changes() WHERE outfit_id IS NOT NULL
  )
  SELECT old_value, id, old_user_id, -(NOT old_private)::integer, -old_private::integer, xid FROM pending
  WHERE old_private IS NOT NULL AND (old_private, old_value, old_user_id) IS DISTINCT FROM (new_private, new_value, new_user_id)
  UNION ALL
  SELECT new_value, id, new_user_id, (NOT new_private)::integer, new_private::integer, xid FROM pending
  WHERE new_private IS NOT NULL AND (old_private, old_value, old_user_id) IS DISTINCT FROM (new_private, new_value, new_user_id)
$$;

-- What of that is in a list, and the private outfits of a user that no node has: `few`.
CREATE FUNCTION listed_outfit_moves(leaf integer, publics bigint, privates bigint, few integer DEFAULT NULL)
RETURNS TABLE (value bigint, id integer, rows integer)
LANGUAGE sql STABLE ROWS 100 AS $$
  SELECT value, id, CASE WHEN publics IN (2147483648, owner) THEN public ELSE 0 END
    + CASE WHEN privates IN (2147483648, owner) THEN private ELSE 0 END
  FROM pending_outfit_moves(leaf)
  UNION ALL
  SELECT CASE leaf WHEN 103 THEN created WHEN 202 THEN id WHEN 304 THEN likes ELSE modified END, id, 1
  FROM outfits WHERE user_id = few AND private
$$;

-- The levels below each leaf.
CREATE FUNCTION outfit_levels_below()
RETURNS TABLE (leaf integer, level integer, shift integer, id_shift integer)
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 19 AS $$
  SELECT leaf, level, outfit_value_shift(level), outfit_id_shift(level)
  FROM (VALUES (103, 111), (304, 307), (403, 411)) AS ordering (leaf, last_level), generate_series(leaf + 1, last_level) AS level
$$;

-- Adds outfits to the counts: the pending changes that are visible in `upto`, or, of a user who gets nodes,
-- what the table has of them less what is pending. Gives how many changes those were, whether a node has become
-- crowded, and some of the users who have got more outfits, the more so the more they got. The finest level of
-- each ordering is added up first, and the coarser ones from it. A scalar subquery looks a node up by its key,
-- however many are estimated. To be called by who holds the lock.
CREATE FUNCTION add_outfit_changes(
  upto pg_snapshot, crowd integer, planted integer DEFAULT NULL,
  OUT added bigint, OUT found_crowd boolean, OUT grown integer[]
)
LANGUAGE sql
SET enable_seqscan = off SET enable_nestloop = off SET jit = off AS $$
  WITH moved AS MATERIALIZED (
    SELECT leaf, m.* FROM unnest('{103,202,304,403}'::integer[]) AS leaf CROSS JOIN LATERAL pending_outfit_moves(leaf) m
    WHERE planted IS NULL AND pg_visible_in_snapshot(xid, upto)
    UNION ALL
    SELECT leaf, m.value, m.id, m.owner, -m.public, -m.private, m.xid
    FROM unnest('{103,202,304,403}'::integer[]) AS leaf CROSS JOIN LATERAL pending_outfit_moves(leaf) m
    WHERE planted IS NOT NULL AND m.owner = planted
    UNION ALL
    SELECT leaf, CASE leaf WHEN 103 THEN created WHEN 202 THEN id WHEN 304 THEN likes ELSE modified END,
      id, user_id, (NOT private)::integer, private::integer, NULL
    FROM outfits CROSS JOIN unnest('{103,202,304,403}'::integer[]) AS leaf
    WHERE user_id = planted
  ), placed AS MATERIALIZED (
    SELECT m.*, value >> outfit_value_shift(leaf) AS bucket, 2147483648 AS tree
    FROM moved m WHERE planted IS NULL
    UNION ALL
    SELECT m.*, value >> outfit_value_shift(leaf), t.bucket
    FROM moved m JOIN outfit_bucket_counts t ON t.owner = 2147483649 AND t.bucket = m.owner
  ), leaves AS MATERIALIZED (
    SELECT tree, leaf, bucket, public, private, (
      SELECT c.split FROM outfit_bucket_counts c
      WHERE c.owner = 2147483648 AND c.level = l.leaf AND c.bucket = l.bucket AND c.block = 0
    ) AS split
    FROM (SELECT tree, leaf, bucket, sum(public) AS public, sum(private) AS private FROM placed GROUP BY 1, 2, 3) l
  ), levels AS MATERIALIZED (
    SELECT * FROM outfit_levels_below()
  ), nodes AS (
    SELECT tree, leaf AS level, bucket, 0 AS block, public, private FROM leaves
    UNION ALL
    SELECT tree, leaf - step, bucket >> 6 * step, 0, sum(public), sum(private)
    FROM leaves, generate_series(1, CASE leaf WHEN 202 THEN 2 WHEN 304 THEN 4 ELSE 3 END) AS step
    GROUP BY 1, 2, 3
    UNION ALL
    SELECT tree, level, bucket, block, public, private FROM (
      SELECT tree, l.level, m.value >> l.shift AS bucket, coalesce(m.id >> l.id_shift, 0) AS block,
        sum(m.public) AS public, sum(m.private) AS private
      FROM leaves JOIN placed m USING (tree, leaf, bucket) JOIN levels l USING (leaf)
      WHERE leaves.split GROUP BY 1, 2, 3, 4
    ) below
    WHERE (
      SELECT c.split FROM outfit_bucket_counts c
      WHERE c.owner = 2147483648 AND c.level = below.level - 1
        AND c.bucket = outfit_parent_bucket(below.level, below.bucket)
        AND c.block = outfit_parent_block(below.level, below.block))
  ), written AS (
    INSERT INTO outfit_bucket_counts AS c (owner, level, bucket, block, public, private)
    SELECT tree, level, bucket, block, public, private
    FROM nodes WHERE public <> 0 OR private <> 0 ORDER BY tree, level, bucket, block
    ON CONFLICT ON CONSTRAINT outfit_bucket_counts_pkey
      DO UPDATE SET public = c.public + excluded.public, private = c.private + excluded.private
    RETURNING c.owner = 2147483648 AND c.public + c.private > crowd AND NOT c.split AND is_outfit_level_splittable(c.level) AS is_crowded
  )
  SELECT (SELECT count(*) FROM pending_outfit_changes() WHERE pg_visible_in_snapshot(xid, upto)),
    (SELECT coalesce(bool_or(is_crowded), false) FROM written),
    (SELECT array_agg(DISTINCT owner) FROM moved WHERE leaf = 202 AND random() < 0.03 AND public + private > 0)
$$;

-- Whether a user has nodes.
CREATE FUNCTION has_outfit_nodes(owner bigint) RETURNS boolean
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN EXISTS (
    SELECT FROM outfit_bucket_counts c
    WHERE c.owner = 2147483649 AND c.level = 0 AND c.bucket = has_outfit_nodes.owner AND c.block = 0
  );
END $$;

-- Gives nodes to those of some users (null: of all) who have more than `crowd` outfits and no nodes, until those have
-- `budget` outfits or more. Gives whether some are left. To be called by who holds the lock.
CREATE FUNCTION plant_outfit_nodes(users integer[], crowd integer, budget bigint) RETURNS boolean
LANGUAGE plpgsql
SET enable_seqscan = off SET jit = off AS $$
DECLARE
  planted integer;
BEGIN
  FOR planted IN
    -- OFFSET 0, or else each outfit would be asked whether its user has nodes.
    SELECT owner FROM (
      SELECT o.user_id AS owner FROM outfits o WHERE users IS NULL GROUP BY 1 HAVING count(*) > crowd OFFSET 0
    ) crowded
    WHERE NOT has_outfit_nodes(owner)
    UNION ALL
    SELECT owner FROM unnest(users) AS owner
    WHERE NOT has_outfit_nodes(owner)
      AND (SELECT count(*) FROM (SELECT FROM outfits o WHERE o.user_id = owner LIMIT crowd + 1) enough) > crowd
  LOOP
    IF budget <= 0 THEN
      RETURN true;
    END IF;
    INSERT INTO outfit_bucket_counts VALUES (2147483649, 0, planted, 0, 0, 0, true);
    PERFORM add_outfit_changes(NULL, crowd, planted);
    budget := budget - (SELECT count(*) FROM outfits WHERE user_id = planted);
  END LOOP;
  RETURN false;
END $$;

-- Divides a node, also of those users who have it: what it holds is what the table has between its keys, less
-- what is pending. To be called by who holds the lock.
CREATE FUNCTION split_outfit_node(node outfit_bucket_counts) RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE
  keys record;
BEGIN
  SELECT * INTO keys FROM outfit_node_keys(node.level, node.bucket, node.block);
  EXECUTE format($sql$
    WITH trees AS MATERIALIZED (
      SELECT t.bucket AS owner FROM outfit_bucket_counts t
      WHERE t.owner = 2147483649 AND EXISTS (
        SELECT FROM outfit_bucket_counts c
        WHERE c.owner = t.bucket AND c.level = $7 AND c.bucket = $8 AND c.block = $9)
    )
    INSERT INTO outfit_bucket_counts (owner, level, bucket, block, public, private)
    SELECT tree, $1, o.value >> outfit_value_shift($1), coalesce(o.id >> outfit_id_shift($1), 0), sum(o.public), sum(o.private)
    FROM (
      SELECT 2147483648 AS tree, %1$s::bigint AS value, id, 1 AS public, 0 AS private FROM outfits
      WHERE NOT private AND (%1$s, id) >= ($2, $3) AND (%1$s, id) <= ($4, $5)
      UNION ALL
      SELECT 2147483648, %1$s, id, 0, 1 FROM outfits
      WHERE private AND (%1$s, id) >= ($2, $3) AND (%1$s, id) <= ($4, $5)
      UNION ALL
      SELECT tree.owner, own.* FROM trees tree CROSS JOIN LATERAL (
        SELECT %1$s, id, 1, 0 FROM outfits
        WHERE user_id = tree.owner::integer AND NOT private AND (%1$s, id) >= ($2, $3) AND (%1$s, id) <= ($4, $5)
        UNION ALL
        SELECT %1$s, id, 0, 1 FROM outfits
        WHERE user_id = tree.owner::integer AND private AND (%1$s, id) >= ($2, $3) AND (%1$s, id) <= ($4, $5)
      ) own
      UNION ALL
      SELECT tree, m.value, m.id, -m.public, -m.private
      FROM pending_outfit_moves($6) m CROSS JOIN LATERAL (
        SELECT 2147483648 AS tree UNION ALL SELECT t.owner FROM trees t WHERE t.owner = m.owner
      ) of
      WHERE (m.value, m.id) >= ($2, $3) AND (m.value, m.id) <= ($4, $5)
    ) o
    GROUP BY 1, 3, 4 HAVING sum(o.public) <> 0 OR sum(o.private) <> 0
  $sql$, CASE node.level / 100 WHEN 1 THEN 'created' WHEN 3 THEN 'likes' ELSE 'modified' END)
  USING node.level + 1, keys.low, keys.low_id, keys.high, keys.high_id,
    CASE node.level / 100 WHEN 1 THEN 103 WHEN 3 THEN 304 ELSE 403 END, node.level, node.bucket, node.block;
  UPDATE outfit_bucket_counts SET split = true
  WHERE owner = node.owner AND level = node.level AND bucket = node.bucket AND block = node.block;
END $$;

-- Splits crowded nodes until there are none, or as many outfits as `budget` have been read. Gives whether
-- some are left. To be called by who holds the lock.
CREATE FUNCTION split_crowded_outfit_nodes(crowd integer, budget bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  node outfit_bucket_counts;
  has_split boolean := true;
BEGIN
  WHILE has_split LOOP
    has_split := false;
    FOR node IN
      SELECT * FROM outfit_bucket_counts
      WHERE owner = 2147483648 AND public + private > crowd AND NOT split AND is_outfit_level_splittable(level)
    LOOP
      IF budget <= 0 THEN
        RETURN true;
      END IF;
      PERFORM split_outfit_node(node);
      budget := budget - node.public - node.private;
      has_split := true;
    END LOOP;
  END LOOP;
  RETURN false;
END $$;

-- Adds pending changes to the counts, if there are `minimum` or more; gives how many it added. Does nothing
-- while another one writes counts, and may be called by anyone, in any transaction at READ COMMITTED.
-- Splits nodes of more than `crowd` outfits, and gives users with more of them nodes of their own. Once a minute
-- it clears away changes that have been in the counts for as long: readers of changes have that much time.
CREATE FUNCTION fold_outfit_changes(minimum integer DEFAULT 1, crowd integer DEFAULT 2000) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET enable_seqscan = off SET jit = off AS $$
DECLARE
  fold outfit_fold;
  upto pg_snapshot;
  added bigint := 0;
  found_crowd boolean;
  grown integer[];
BEGIN
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE feature_not_supported USING MESSAGE = 'changes of outfits are folded at READ COMMITTED only';
  END IF;
  -- This is done with the rights of the owner, for anyone.
  IF NOT pg_has_role(session_user, current_user, 'MEMBER') THEN
    crowd := 2000;
  END IF;
  -- Before the row of the fold, as TRUNCATE locks them.
  LOCK TABLE outfits IN ACCESS SHARE MODE;
  SELECT * INTO fold FROM outfit_fold FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    RETURN 0;
  END IF;
  IF is_outfit_fold_foreign() THEN
    PERFORM settle_outfit_changes();
    SELECT * INTO fold FROM outfit_fold;
  END IF;
  IF (SELECT count(*) >= minimum FROM (SELECT FROM pending_outfit_changes() LIMIT minimum) pending) THEN
    upto := outfit_snapshot();
    SELECT a.added, a.found_crowd, a.grown INTO added, found_crowd, grown FROM add_outfit_changes(upto, crowd) a;
    fold.crowded := fold.crowded OR found_crowd;
    UPDATE outfit_fold SET snapshot = upto, crowded = fold.crowded;
    IF fold.marked_at < now() - interval '1 minute' THEN
      DELETE FROM outfit_changes c
      WHERE c.xid < pg_snapshot_xmax(fold.mark) AND pg_visible_in_snapshot(c.xid, fold.mark);
      UPDATE outfit_fold SET kept_from = pg_snapshot_xmax(fold.mark), mark = upto, marked_at = now();
    END IF;
  END IF;
  IF fold.unplanted THEN
    IF NOT plant_outfit_nodes(NULL, crowd, 300000) THEN
      UPDATE outfit_fold SET unplanted = false;
    END IF;
  ELSIF grown IS NOT NULL AND plant_outfit_nodes(grown, crowd, 300000) THEN
    UPDATE outfit_fold SET unplanted = true;
  END IF;
  IF fold.crowded AND NOT split_crowded_outfit_nodes(crowd, 300000) THEN
    UPDATE outfit_fold SET crowded = false;
  END IF;
  RETURN added;
END $$;

-- Lists. Whoever asks says whose public and whose private outfits are in the list: a user's, or, as 2147483648,
-- everyone's; private ones may be nobody's (null). With the public ones of a user, only theirs.

-- Number of outfits in a list.
CREATE FUNCTION count_outfits(publics bigint, privates bigint) RETURNS bigint
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  total bigint := 0;
BEGIN
  IF NOT EXISTS (SELECT FROM outfit_fold) THEN
    -- This statement began before the migration that made it had ended.
    RAISE serialization_failure USING MESSAGE = 'the counts have changed their form since this statement began';
  END IF;
  -- A user without nodes has few outfits.
  IF publics <> 2147483648 AND NOT has_outfit_nodes(publics) THEN
    RETURN (
      SELECT count(*) FROM outfits o WHERE o.user_id = publics::integer AND (NOT o.private OR privates IS NOT NULL)
    );
  END IF;
  IF privates <> 2147483648 AND NOT has_outfit_nodes(privates) THEN
    total := (SELECT count(*) FROM outfits o WHERE o.user_id = privates::integer AND o.private);
    privates := NULL;
  END IF;
  RETURN total + (
    SELECT coalesce(sum(rows), 0)
    FROM (
      SELECT public AS rows FROM outfit_bucket_counts WHERE owner = publics AND level = 200
      UNION ALL
      SELECT private FROM outfit_bucket_counts WHERE owner = privates AND level = 200
      UNION ALL
      -- Those that are in the list or not, as before, do not count: likes, say.
      SELECT coalesce((NOT p.new_private AND (publics = 2147483648 OR publics = p.new_user_id))::integer, 0)
        - coalesce((NOT p.old_private AND (publics = 2147483648 OR publics = p.old_user_id))::integer, 0)
        + coalesce((p.new_private AND (privates = 2147483648 OR privates = p.new_user_id))::integer, 0)
        - coalesce((p.old_private AND (privates = 2147483648 OR privates = p.old_user_id))::integer, 0)
      FROM pending_outfit_changes() p
      WHERE (p.old_private, p.old_user_id) IS DISTINCT FROM (p.new_private, p.new_user_id)
    ) counted
  );
END $$;

-- The same for gateways of the version before.
CREATE OR REPLACE FUNCTION count_outfits(with_private boolean) RETURNS bigint
LANGUAGE sql STABLE AS $$
  SELECT count_outfits(2147483648, CASE WHEN with_private THEN 2147483648 END)
$$;

-- Finds the outfit with `skip` others before it in a list, as near as the counts tell: the least and the
-- greatest sort key of a node that holds it, how many outfits of the node are before it, and how many it has
-- (null: the node is the whole list, and nobody has counted). Nulls when there is no such outfit. Looks no
-- further once it is `near` an end: to walk so far along the index costs less than another level.
DROP FUNCTION seek_outfit(text, boolean, bigint);
CREATE FUNCTION seek_outfit(
  ordering text, publics bigint, privates bigint, INOUT skip bigint, near bigint DEFAULT 300,
  OUT low bigint, OUT low_id integer, OUT high bigint, OUT high_id integer, OUT rows bigint
)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  current_level integer := CASE ordering WHEN 'created' THEN 100 WHEN 'id' THEN 200 WHEN 'likes' THEN 300 ELSE 400 END;
  leaf_level integer := CASE ordering WHEN 'created' THEN 103 WHEN 'id' THEN 202 WHEN 'likes' THEN 304 ELSE 403 END;
  shift integer;
  id_shift integer;
  low_bucket bigint := -9223372036854775808;
  high_bucket bigint := 9223372036854775807;
  low_block integer := -2147483648;
  high_block integer := 2147483647;
  -- What is pending in this ordering, and private outfits that are not counted in nodes.
  move_values bigint[];
  move_ids integer[];
  move_rows bigint[];
  -- Whose private outfits are read, because there are few.
  few integer;
  total bigint;
  node record;
BEGIN
  low := -9223372036854775808;
  low_id := -2147483648;
  high := 9223372036854775807;
  high_id := 2147483647;
  IF skip <= near THEN
    RETURN;
  END IF;
  total := count_outfits(publics, privates);
  IF skip >= total THEN
    low := NULL;
    RETURN;
  END IF;
  IF total - skip <= near OR publics <> 2147483648 AND NOT has_outfit_nodes(publics) THEN
    rows := total;
    RETURN;
  END IF;
  IF privates <> 2147483648 AND NOT has_outfit_nodes(privates) THEN
    few := privates;
    privates := NULL;
  END IF;
  -- Down to the leaves, only the leaf matters: likes up and down make up for each other.
  shift := outfit_value_shift(leaf_level);
  SELECT array_agg(m.value), array_agg(0), array_agg(m.rows) INTO move_values, move_ids, move_rows
  FROM (
    SELECT m.value >> shift << shift AS value, sum(m.rows) AS rows
    FROM listed_outfit_moves(leaf_level, publics, privates, few) m
    GROUP BY 1
  ) m WHERE m.rows <> 0;
  LOOP
    shift := outfit_value_shift(current_level);
    id_shift := outfit_id_shift(current_level);
    SELECT s.* INTO node
    FROM (
      SELECT b.*, sum(b.rows) OVER (ORDER BY b.bucket, b.block) AS reached
      FROM (
        SELECT a.bucket, a.block, sum(a.rows) AS rows
        FROM (
          SELECT c.bucket, c.block, c.public + CASE WHEN privates = publics THEN c.private ELSE 0 END AS rows
          FROM outfit_bucket_counts c
          WHERE c.owner = publics AND c.level = current_level
            AND c.bucket BETWEEN low_bucket AND high_bucket AND c.block BETWEEN low_block AND high_block
          UNION ALL
          SELECT c.bucket, c.block, c.private
          FROM outfit_bucket_counts c
          WHERE privates IS DISTINCT FROM publics AND c.owner = privates AND c.level = current_level
            AND c.bucket BETWEEN low_bucket AND high_bucket AND c.block BETWEEN low_block AND high_block
          UNION ALL
          SELECT m.value >> shift, coalesce(m.id >> id_shift, 0), m.rows
          FROM unnest(move_values, move_ids, move_rows) AS m (value, id, rows)
          WHERE (m.value, m.id) >= (seek_outfit.low, seek_outfit.low_id)
            AND (m.value, m.id) <= (seek_outfit.high, seek_outfit.high_id)
        ) a
        GROUP BY 1, 2
      ) b
    ) s
    WHERE s.reached > seek_outfit.skip ORDER BY s.bucket, s.block LIMIT 1;
    IF NOT FOUND THEN
      low := NULL;
      RETURN;
    END IF;
    rows := node.rows;
    skip := skip - node.reached + rows;
    SELECT k.* INTO low, low_id, high, high_id FROM outfit_node_keys(current_level, node.bucket, node.block) k;
    IF skip <= near OR rows - skip <= near THEN
      RETURN;
    END IF;
    IF current_level >= leaf_level AND (
      SELECT c.split FROM outfit_bucket_counts c
      WHERE c.owner = 2147483648 AND c.level = current_level AND c.bucket = node.bucket AND c.block = node.block
    ) IS NOT TRUE THEN
      RETURN;
    END IF;
    IF current_level = leaf_level THEN
      SELECT array_agg(m.value), array_agg(m.id), array_agg(m.rows) INTO move_values, move_ids, move_rows
      FROM (
        SELECT m.value, m.id, sum(m.rows) AS rows
        FROM listed_outfit_moves(leaf_level, publics, privates, few) m
        WHERE m.value BETWEEN seek_outfit.low AND seek_outfit.high
        GROUP BY 1, 2
      ) m WHERE m.rows <> 0;
    END IF;
    current_level := current_level + 1;
    SELECT n.bucket, n.block INTO low_bucket, low_block FROM outfit_node_at(current_level, low, low_id) n;
    SELECT n.bucket, n.block INTO high_bucket, high_block FROM outfit_node_at(current_level, high, high_id) n;
  END LOOP;
END $$;

-- outfits_by_created, outfits_by_id, outfits_by_likes, outfits_by_modified: the ids of `take`
-- outfits of a list in ascending order after skipping `skip`, with their places. One function per ordering,
-- so that its plan can be kept: planning would take longer than the rest. Sequential and bitmap
-- scans are off in it, because the planner cannot know how few rows the limit leaves.
DO $do$
DECLARE
  field text;
  key text;
  low text;
  high text;
  value text;
  -- The index ranges that a list is merged from: four, of which those that it has are read. OFFSET 0 keeps
  -- them apart, so that they are merged and not sorted.
  ranges text;
BEGIN
  SELECT string_agg(format($sql$
    (SELECT %%1$s FROM outfits o
     WHERE %s AND (%%1$s) %%2$s ORDER BY %%3$s OFFSET 0)$sql$, range), ' UNION ALL ')
  INTO ranges
  FROM unnest(ARRAY[
    'publics = 2147483648 AND NOT o.private', 'privates = 2147483648 AND o.private',
    'publics <> 2147483648 AND o.user_id = publics::integer AND NOT o.private',
    'privates <> 2147483648 AND o.user_id = privates::integer AND o.private'
  ]) AS range;
  FOREACH field IN ARRAY '{created,id,likes,modified}'::text[] LOOP
    key := CASE field WHEN 'id' THEN 'o.id' ELSE format('o.%s, o.id', field) END;
    low := CASE field WHEN 'id' THEN 'node.low' ELSE 'node.low, node.low_id' END;
    high := CASE field WHEN 'id' THEN 'node.high' ELSE 'node.high, node.high_id' END;
    value := CASE field WHEN 'id' THEN 'id, id' ELSE format('%s, id', field) END;
    EXECUTE format($sql$
      CREATE FUNCTION outfits_by_%1$s(publics bigint, privates bigint, skip bigint, take integer)
      RETURNS TABLE ("position" bigint, id integer)
      LANGUAGE plpgsql STABLE ROWS 20
      SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $body$
      #variable_conflict use_column
      DECLARE
        node record;
      BEGIN
        SELECT * INTO node FROM seek_outfit('%1$s', publics, privates, skip);
        IF node.low IS NULL THEN
          RETURN;
        END IF;
        IF node.rows - node.skip < node.skip THEN
          -- Nearer to the end of the node: its first outfit is found from there.
          SELECT %2$s INTO node.low, node.low_id FROM (%3$s
            ORDER BY %4$s OFFSET node.rows - node.skip - 1 LIMIT 1
          ) first;
          node.skip := 0;
        END IF;
        RETURN QUERY SELECT row_number() OVER (), page.id FROM (%5$s
          ORDER BY %6$s OFFSET node.skip LIMIT take
        ) page;
      END $body$
    $sql$, field, value,
      format(ranges, key, format('<= (%s)', high), regexp_replace(key, '(,|$)', ' DESC\1', 'g')),
      regexp_replace(replace(key, 'o.', ''), '(,|$)', ' DESC\1', 'g'),
      format(ranges, key, format('>= (%s)', low), key), replace(key, 'o.', ''));
    -- The same for gateways of the version before.
    EXECUTE format($sql$
      CREATE OR REPLACE FUNCTION outfits_by_%1$s(with_private boolean, skip bigint, take integer)
      RETURNS TABLE ("position" bigint, id integer)
      LANGUAGE sql STABLE ROWS 20 AS $body$
        SELECT * FROM outfits_by_%1$s(2147483648, CASE WHEN with_private THEN 2147483648 END, skip, take)
      $body$
    $sql$, field);
  END LOOP;
END $do$;

-- How many outfits of a list sort before all with this value. Sums the nodes before it on each level, at most
-- 128, and reads the index inside the last one only.
CREATE FUNCTION rank_outfits(ordering text, publics bigint, privates bigint, value bigint) RETURNS bigint
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  current_level integer := CASE ordering WHEN 'created' THEN 100 ELSE 300 END;
  leaf_level integer := CASE ordering WHEN 'created' THEN 103 ELSE 304 END;
  -- The level of which each node is one value.
  last_level integer := CASE ordering WHEN 'created' THEN 108 ELSE 304 END;
  low bigint := -9223372036854775808;
  low_bucket bigint := low;
  found_bucket bigint;
  total bigint := 0;
BEGIN
  IF NOT EXISTS (SELECT FROM outfit_fold) THEN
    RAISE serialization_failure USING MESSAGE = 'the counts have changed their form since this statement began';
  END IF;
  -- A user without nodes has few outfits.
  IF publics <> 2147483648 AND NOT has_outfit_nodes(publics) THEN
    RETURN (
      SELECT count(*) FROM outfits o WHERE o.user_id = publics::integer AND (NOT o.private OR privates IS NOT NULL)
        AND CASE ordering WHEN 'created' THEN o.created ELSE o.likes END < value);
  END IF;
  IF privates <> 2147483648 AND NOT has_outfit_nodes(privates) THEN
    total := (
      SELECT count(*) FROM outfits o WHERE o.user_id = privates::integer AND o.private
        AND CASE ordering WHEN 'created' THEN o.created ELSE o.likes END < value);
    privates := NULL;
  END IF;
  LOOP
    SELECT n.bucket INTO found_bucket FROM outfit_node_at(current_level, value, 0) n;
    total := total + coalesce((
      SELECT sum(c.public) FROM outfit_bucket_counts c
      WHERE c.owner = publics AND c.level = current_level AND c.bucket >= low_bucket AND c.bucket < found_bucket AND c.block = 0
    ), 0) + coalesce((
      SELECT sum(c.private) FROM outfit_bucket_counts c
      WHERE c.owner = privates AND c.level = current_level AND c.bucket >= low_bucket AND c.bucket < found_bucket AND c.block = 0
    ), 0);
    SELECT k.low INTO low FROM outfit_node_keys(current_level, found_bucket, 0) k;
    EXIT WHEN current_level = last_level OR current_level >= leaf_level AND (
      SELECT c.split FROM outfit_bucket_counts c
      WHERE c.owner = 2147483648 AND c.level = current_level AND c.bucket = found_bucket AND c.block = 0
    ) IS NOT TRUE;
    current_level := current_level + 1;
    SELECT n.bucket INTO low_bucket FROM outfit_node_at(current_level, low, 0) n;
  END LOOP;
  SELECT total + coalesce(sum(m.rows), 0) INTO total
  FROM listed_outfit_moves(leaf_level, publics, privates) m WHERE m.value < low;
  IF current_level < last_level THEN
    SELECT total + sum(c.many) INTO total FROM (
      SELECT count(*) AS many FROM outfits o
      WHERE publics = 2147483648 AND NOT o.private AND o.created >= low AND o.created < value
      UNION ALL
      SELECT count(*) FROM outfits o
      WHERE privates = 2147483648 AND o.private AND o.created >= low AND o.created < value
      UNION ALL
      SELECT count(*) FROM outfits o
      WHERE publics <> 2147483648 AND o.user_id = publics::integer AND NOT o.private AND o.created >= low AND o.created < value
      UNION ALL
      SELECT count(*) FROM outfits o
      WHERE privates <> 2147483648 AND o.user_id = privates::integer AND o.private AND o.created >= low AND o.created < value
    ) c;
  END IF;
  RETURN total;
END $$;

-- The same for gateways of the version before.
CREATE OR REPLACE FUNCTION rank_outfits(ordering text, with_private boolean, value bigint) RETURNS bigint
LANGUAGE sql STABLE AS $$
  SELECT rank_outfits(ordering, 2147483648, CASE WHEN with_private THEN 2147483648 END, value)
$$;

-- What the table says of the fixed nodes of all orderings, and of those below nodes that are split; of all
-- outfits, and of each user who has nodes. Counts the finest level of each ordering only, and adds those up for
-- the coarser ones.
CREATE FUNCTION find_outfit_nodes(OUT owner bigint, OUT level integer, OUT bucket bigint, OUT block integer, OUT public bigint, OUT private bigint)
RETURNS SETOF record LANGUAGE sql STABLE
SET jit = off AS $$
  WITH trees AS MATERIALIZED (
    SELECT c.bucket::integer AS user_id FROM outfit_bucket_counts c WHERE c.owner = 2147483649
  ), own AS MATERIALIZED (
    SELECT o.user_id, o.id, o.private, o.created, o.likes, o.modified FROM outfits o JOIN trees USING (user_id)
  ), leaves AS MATERIALIZED (
    SELECT 2147483648 AS tree, 103 AS leaf, created >> 32 AS bucket, count(*) FILTER (WHERE NOT private) AS public, count(*) FILTER (WHERE private) AS private
    FROM outfits GROUP BY 3
    UNION ALL SELECT 2147483648, 202, (id >> 10)::bigint, count(*) FILTER (WHERE NOT private), count(*) FILTER (WHERE private) FROM outfits GROUP BY 3
    UNION ALL SELECT 2147483648, 304, likes::bigint, count(*) FILTER (WHERE NOT private), count(*) FILTER (WHERE private) FROM outfits GROUP BY 3
    UNION ALL SELECT 2147483648, 403, modified >> 32, count(*) FILTER (WHERE NOT private), count(*) FILTER (WHERE private) FROM outfits GROUP BY 3
    UNION ALL
    SELECT user_id, leaf, CASE leaf WHEN 103 THEN created >> 32 WHEN 202 THEN id >> 10 WHEN 304 THEN likes ELSE modified >> 32 END,
      count(*) FILTER (WHERE NOT private), count(*) FILTER (WHERE private)
    FROM own CROSS JOIN unnest('{103,202,304,403}'::integer[]) AS leaf GROUP BY 1, 2, 3
  ), split AS MATERIALIZED (
    SELECT * FROM outfit_bucket_counts c WHERE c.owner = 2147483648 AND c.split
  ), crowded AS (
    SELECT 2147483648 AS tree, s.level AS leaf, o.created AS value, o.id, o.private
    FROM outfits o JOIN split s ON s.level = 103 AND s.bucket = o.created >> 32
    UNION ALL SELECT 2147483648, 304, o.likes::bigint, o.id, o.private FROM outfits o JOIN split s ON s.level = 304 AND s.bucket = o.likes
    UNION ALL SELECT 2147483648, 403, o.modified, o.id, o.private FROM outfits o JOIN split s ON s.level = 403 AND s.bucket = o.modified >> 32
    UNION ALL SELECT o.user_id, 103, o.created, o.id, o.private FROM own o JOIN split s ON s.level = 103 AND s.bucket = o.created >> 32
    UNION ALL SELECT o.user_id, 304, o.likes::bigint, o.id, o.private FROM own o JOIN split s ON s.level = 304 AND s.bucket = o.likes
    UNION ALL SELECT o.user_id, 403, o.modified, o.id, o.private FROM own o JOIN split s ON s.level = 403 AND s.bucket = o.modified >> 32
  ), below AS (
    SELECT o.tree, l.level, o.value >> l.shift AS bucket, coalesce(o.id >> l.id_shift, 0) AS block,
      count(*) FILTER (WHERE NOT o.private) AS public, count(*) FILTER (WHERE o.private) AS private
    FROM crowded o JOIN outfit_levels_below() l USING (leaf)
    GROUP BY 1, 2, 3, 4
  )
  SELECT tree, leaf, bucket, 0, public, private FROM leaves
  UNION ALL
  SELECT tree, leaf - step, bucket >> 6 * step, 0, sum(public), sum(private)
  FROM leaves, generate_series(1, CASE leaf WHEN 202 THEN 2 WHEN 304 THEN 4 ELSE 3 END) AS step
  GROUP BY 1, 2, 3
  UNION ALL
  SELECT b.* FROM below b JOIN split s
    ON s.level = b.level - 1 AND s.bucket = outfit_parent_bucket(b.level, b.bucket) AND s.block = outfit_parent_block(b.level, b.block)
$$;

-- The nodes whose counts, with what is pending, are not those of the outfits in them: none, unless triggers
-- were off.
DROP FUNCTION check_outfit_counts();
CREATE FUNCTION check_outfit_counts()
RETURNS TABLE (owner bigint, level smallint, bucket bigint, block integer, counted bigint[], found bigint[])
LANGUAGE sql STABLE AS $$
  WITH counts AS (
    SELECT c.owner, c.level::integer, c.bucket, c.block, c.public, c.private
    FROM outfit_bucket_counts c WHERE c.owner <> 2147483649
    UNION ALL
    SELECT t.tree, n.level, n.bucket, n.block, m.public, m.private
    FROM unnest('{103,202,304,403}'::integer[]) AS leaf
    CROSS JOIN LATERAL pending_outfit_moves(leaf) m
    CROSS JOIN LATERAL (SELECT 2147483648 AS tree UNION ALL SELECT m.owner WHERE has_outfit_nodes(m.owner)) t
    CROSS JOIN LATERAL (
      SELECT level, at.* FROM generate_series(leaf / 100 * 100, leaf) AS level CROSS JOIN LATERAL outfit_node_at(level, m.value, m.id) at
      UNION ALL
      SELECT l.level, at.* FROM outfit_levels_below() l CROSS JOIN LATERAL outfit_node_at(l.level, m.value, m.id) at
      WHERE l.leaf = leaf.leaf AND EXISTS (
        SELECT FROM outfit_bucket_counts p
        WHERE p.owner = 2147483648 AND p.level = l.level - 1 AND p.split
          AND p.bucket = outfit_parent_bucket(l.level, at.bucket) AND p.block = outfit_parent_block(l.level, at.block))
    ) n
  )
  SELECT owner, level::smallint, bucket, block, coalesce(c.rows, '{0,0}'), coalesce(o.rows, '{0,0}')
  FROM (
    SELECT owner, level, bucket, block, ARRAY[sum(public), sum(private)]::bigint[] AS rows FROM counts GROUP BY 1, 2, 3, 4
  ) c
  FULL JOIN (
    SELECT owner, level, bucket, block, ARRAY[public, private] AS rows FROM find_outfit_nodes()
  ) o USING (owner, level, bucket, block)
  WHERE coalesce(c.rows, '{0,0}') <> coalesce(o.rows, '{0,0}')
$$;

-- What is wrong with the triggers that follow outfits and users, a sentence each: none, unless somebody
-- has changed them.
CREATE FUNCTION check_outfit_triggers() RETURNS SETOF text
LANGUAGE sql STABLE AS $$
  SELECT format('the trigger %s on %s %s', wanted.name, wanted.holder,
    CASE WHEN t.tgenabled IS NULL THEN 'is missing' WHEN t.tgenabled = 'D' THEN 'is off' ELSE 'does not fire when it should' END)
  FROM (
    VALUES ('outfits', 'count_inserted', 'O'), ('outfits', 'count_updated', 'O'), ('outfits', 'count_deleted', 'O'),
      ('outfits', 'count_replicated', 'R'), ('outfits', 'count_truncated', 'A'), ('outfits', 'text_inserted', 'A'),
      ('outfits', 'text_updated', 'A'), ('outfits', 'text_deleted', 'A'), ('outfits', 'text_truncated', 'A'),
      ('users', 'note_inserted', 'O'), ('users', 'note_updated', 'O'), ('users', 'note_deleted', 'O'), ('users', 'note_replicated', 'R')
  ) AS wanted (holder, name, enabled)
  LEFT JOIN pg_trigger t ON t.tgrelid = to_regclass(wanted.holder) AND t.tgname = wanted.name
  WHERE t.tgenabled IS DISTINCT FROM wanted.enabled::"char"
  ORDER BY 1
$$;

-- Counts everything anew, and makes the triggers fire again where they should. Writers go on meanwhile, as
-- what they do is pending; folds and TRUNCATE wait.
CREATE OR REPLACE FUNCTION rebuild_outfit_counts() RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE feature_not_supported USING MESSAGE = 'counts are rebuilt at READ COMMITTED only';
  END IF;
  -- Triggers that are right are left alone: to change them waits for writers.
  IF EXISTS (SELECT FROM check_outfit_triggers()) THEN
    PERFORM arm_outfit_triggers();
  END IF;
  LOCK TABLE outfits IN ACCESS SHARE MODE;
  PERFORM FROM outfit_fold FOR UPDATE;
  -- What is split stays so, and is counted, too.
  DELETE FROM outfit_bucket_counts WHERE NOT split;
  UPDATE outfit_bucket_counts SET public = 0, private = 0;
  -- One statement, so one snapshot: the changes in it are those that the outfits in it have been through.
  WITH gone AS (
    DELETE FROM outfit_changes
  ), counted AS (
    INSERT INTO outfit_bucket_counts (owner, level, bucket, block, public, private)
    SELECT * FROM find_outfit_nodes() ORDER BY 1, 2, 3, 4
    ON CONFLICT ON CONSTRAINT outfit_bucket_counts_pkey DO UPDATE SET public = excluded.public, private = excluded.private
  )
  UPDATE outfit_fold SET snapshot = outfit_snapshot(), mark = outfit_snapshot(), marked_at = now(),
    kept_from = pg_snapshot_xmax(outfit_snapshot()), crowded = true, unplanted = true;
  INSERT INTO outfit_changes (xid) VALUES (pg_current_xact_id());
END $$;

-- The same for the texts, whose table 0008 made.
CREATE OR REPLACE FUNCTION rebuild_outfit_texts() RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  LOCK TABLE outfits IN SHARE MODE;
  DELETE FROM outfit_texts;
  INSERT INTO outfit_texts SELECT id, outfit_text(title, description) FROM outfits;
  INSERT INTO outfit_changes (xid) VALUES (pg_current_xact_id());
END $$;

-- Recounts one node of each ordering, in which an outfit at random is, of all outfits and of one of the users who
-- have nodes, and gives those whose counts are wrong. Reads at most a few thousand entries of each index.
CREATE FUNCTION audit_outfit_counts()
RETURNS TABLE (owner bigint, ordering text, low bigint, high bigint, counted bigint, found bigint)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
  tree bigint;
  field text;
  node record;
  total bigint;
  actual bigint;
BEGIN
  FOR tree IN
    SELECT 2147483648 UNION ALL
    (SELECT c.bucket FROM outfit_bucket_counts c WHERE c.owner = 2147483649 ORDER BY random() LIMIT 1)
  LOOP
    total := count_outfits(tree, tree);
    FOREACH field IN ARRAY '{created,id,likes,modified}'::text[] LOOP
      SELECT * INTO node FROM seek_outfit(field, tree, tree, floor(random() * total)::bigint, -1);
      -- In the ranges below, what is first decides whether a range is read, and its user cast at all.
      CONTINUE WHEN node.low IS NULL OR node.rows IS NULL;
      EXECUTE format('SELECT sum(many) FROM (
          SELECT count(*) AS many FROM outfits WHERE $1 = 2147483648 AND NOT private AND %1$s
          UNION ALL SELECT count(*) FROM outfits WHERE $1 = 2147483648 AND private AND %1$s
          UNION ALL SELECT count(*) FROM outfits WHERE $1 <> 2147483648 AND user_id = $1::integer AND NOT private AND %1$s
          UNION ALL SELECT count(*) FROM outfits WHERE $1 <> 2147483648 AND user_id = $1::integer AND private AND %1$s
        ) c', CASE field WHEN 'id' THEN 'id BETWEEN $2 AND $4 AND $3 + $5 IS NOT NULL'
          ELSE format('(%1$s, id) >= ($2, $3) AND (%1$s, id) <= ($4, $5)', field) END)
      INTO actual USING tree, node.low, node.low_id::bigint, node.high, node.high_id::bigint;
      IF actual <> node.rows THEN
        RETURN QUERY SELECT tree, field, node.low, node.high, node.rows, actual;
      END IF;
    END LOOP;
  END LOOP;
END $$;

SELECT arm_outfit_triggers();

INSERT INTO outfit_fold (snapshot, kept_from, mark, marked_at, crowded, unplanted)
SELECT snapshot, pg_snapshot_xmax(snapshot), snapshot, now(), true, true FROM outfit_snapshot() AS snapshot;

-- The counts of before, which hold as nobody writes: one row for all slots of a bucket, and the coarser levels of
-- likes from the coarsest there was. The level of each number of likes with blocks has none after it.
INSERT INTO outfit_bucket_counts (owner, level, bucket, block, public, private)
SELECT 2147483648, new.level, c.bucket >> new.shift, 0, sum(c.public), sum(c.private)
FROM outfit_counts c
JOIN (
  VALUES (10, 100, 0), (11, 101, 0), (12, 102, 0), (13, 103, 0), (20, 200, 0), (21, 201, 0), (22, 202, 0),
    (30, 300, 12), (30, 301, 6), (30, 302, 0), (31, 303, 0), (32, 304, 0),
    (40, 400, 0), (41, 401, 0), (42, 402, 0), (43, 403, 0)
) AS new (old_level, level, shift) ON new.old_level = c.level
GROUP BY 2, 3 HAVING sum(c.public) <> 0 OR sum(c.private) <> 0
ORDER BY 2, 3;

DROP FUNCTION follow_outfits();
DROP TABLE outfit_counts;
DROP FUNCTION outfit_buckets(integer, integer, bigint, bigint);
DROP FUNCTION outfit_block_bits(integer);

-- For gateways of the version before, until they are all replaced: the one level that they read themselves.
CREATE VIEW outfit_counts AS
SELECT 20::smallint AS level, 0::bigint AS bucket, 0 AS block, 0::smallint AS slot,
  count_outfits(false)::integer AS public, (count_outfits(true) - count_outfits(false))::integer AS private;
