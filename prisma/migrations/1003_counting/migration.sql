-- Exact counts and any page at a constant cost, without contention between writers. Design: docs/counting.md.

SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- Changes by transaction. A statement adds one row for each outfit, and one for each number of likes, that it inserted
-- (old_* are null), deleted (new_* are null) or updated. Rows of outfits have created and modified, rows of likes have
-- likes. A row with the name of a table: a row of that was inserted, updated or deleted, see record_changes_of(); `row_key`
-- has the columns of the primary key in its order, separated by commas. A row with only an xid: anything may have changed.
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
    "new_modified" BIGINT,
    "table_name" TEXT,
    "row_key" TEXT
);

-- Read by: pending changes, and the cache's probe.
CREATE INDEX "outfit_changes_xid_idx" ON "outfit_changes"("xid");

-- The table has no key, but a publication FOR ALL TABLES needs a replica identity to allow DELETE. vacuum_truncate is
-- off because truncating the end of the table locks readers out.
ALTER TABLE "outfit_changes" REPLICA IDENTITY FULL;
ALTER TABLE "outfit_changes" SET (vacuum_truncate = false, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000);

-- Counted orderings: by a column of a table, then by the id. The table has the columns `private` and `id`, and an index on
-- `private`, the column and the id.
CREATE TABLE "outfit_orderings" (
    "ordering" TEXT COLLATE "C" PRIMARY KEY,
    "table_name" TEXT NOT NULL
);

INSERT INTO "outfit_orderings" VALUES ('created', 'outfits'), ('id', 'outfits'), ('likes', 'outfit_like_counts'), ('modified', 'outfits');

-- The counts: the number of public and of private outfits in each bucket of an ordering, as of the snapshot in
-- outfit_counts_state. A bucket contains the outfits from its key up to that of the next one. A group is a run of buckets
-- and begins with the key of its first one. The first bucket and the first group begin with the lowest key there is.
CREATE TABLE "outfit_buckets" (
    "ordering" TEXT COLLATE "C" NOT NULL,
    "is_group" BOOLEAN NOT NULL,
    "from_value" BIGINT NOT NULL,
    "from_id" INTEGER NOT NULL,
    "public" INTEGER NOT NULL,
    "private" INTEGER NOT NULL,
    PRIMARY KEY ("ordering", "is_group", "from_value", "from_id")
);

-- Frequent updates of the same rows: free space in each page allows HOT updates, which do not touch the index.
ALTER TABLE "outfit_buckets" SET (fillfactor = 50);

-- The lowest key, and a key above the highest.
CREATE VIEW "outfit_key_limits" AS
  SELECT '-9223372036854775808'::bigint AS lowest_value, '-2147483648'::integer AS lowest_id,
    9223372036854775807 AS end_value, 2147483648 AS end_id;

-- With the key at which the next one begins.
CREATE VIEW "outfit_bucket_ranges" AS
  SELECT b.*, lead(from_value, 1, end_value) OVER list AS to_value, lead(from_id::bigint, 1, end_id) OVER list AS to_id
  FROM outfit_buckets b, outfit_key_limits WINDOW list AS (PARTITION BY ordering, is_group ORDER BY from_value, from_id);

-- Groups with what the buckets in them add up to.
CREATE VIEW "outfit_groups" AS
  SELECT g.*, b.* FROM outfit_bucket_ranges g CROSS JOIN LATERAL (
    SELECT count(*) AS buckets, sum(b.public) AS bucket_public, sum(b.private) AS bucket_private, min(b.from_value) AS first_value
    FROM outfit_buckets b WHERE b.ordering = g.ordering AND NOT b.is_group
      AND (b.from_value, b.from_id) >= (g.from_value, g.from_id) AND (b.from_value, b.from_id) < (g.to_value, g.to_id)
  ) b WHERE g.is_group;

-- The counts contain exactly the changes that are visible in `snapshot`; all others are pending. A transaction that
-- writes counts locks this row. `is_misshapen`: a bucket may be too large or too small. All changes of transactions from
-- `oldest_kept_xid` on still exist. Pruning deletes the changes visible in `prune_snapshot` and then sets a newer one.
CREATE TABLE "outfit_counts_state" (
    "is_only" BOOLEAN PRIMARY KEY DEFAULT true CHECK ("is_only"),
    "snapshot" pg_snapshot NOT NULL,
    "is_misshapen" BOOLEAN NOT NULL DEFAULT false,
    "oldest_kept_xid" xid8 NOT NULL,
    "prune_snapshot" pg_snapshot NOT NULL,
    "prune_snapshot_at" TIMESTAMPTZ(6) NOT NULL
);

-- FUNCTION outfit_bucket_size
-- Outfits in a bucket after a cut. A bucket with more than twice as many is cut; a group whose buckets have less than a
-- quarter of it is cut anew, into fewer.
CREATE FUNCTION outfit_bucket_size() RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT 500';
-- END outfit_bucket_size
-- FUNCTION outfit_snapshot
-- The current snapshot with the calling transaction as one in progress: PostgreSQL leaves that one out of the list, so
-- its own changes would count as visible.
CREATE FUNCTION outfit_snapshot() RETURNS pg_snapshot
LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN own IS NULL OR NOT pg_visible_in_snapshot(own, current) THEN current ELSE
    format('%s:%s:%s', least(own, pg_snapshot_xmin(current)), pg_snapshot_xmax(current),
      (SELECT string_agg(xid::text, ',' ORDER BY xid)
       FROM (SELECT pg_snapshot_xip(current) AS xid UNION SELECT own) AS running))::pg_snapshot END
  FROM (SELECT pg_current_snapshot() AS current, pg_current_xact_id_if_assigned() AS own) AS now
$$;
-- END outfit_snapshot
-- FUNCTION is_outfit_snapshot_restored
-- Whether the counts were restored from a dump of another cluster: transaction ids start anew there, so a transaction
-- in progress is visible in the stored snapshot, or the snapshot is from the future.
CREATE FUNCTION is_outfit_snapshot_restored() RETURNS boolean
LANGUAGE sql STABLE AS $$
  SELECT pg_snapshot_xmax(pg_current_snapshot()) < pg_snapshot_xmax(snapshot)
    OR coalesce(pg_visible_in_snapshot(pg_current_xact_id_if_assigned(), snapshot), false)
    OR EXISTS (SELECT FROM pg_snapshot_xip(pg_current_snapshot()) xid WHERE pg_visible_in_snapshot(xid, snapshot))
  FROM outfit_counts_state
$$;
-- END is_outfit_snapshot_restored
-- FUNCTION adopt_restored_outfit_changes
-- Gives restored counts a snapshot of this cluster. Pending changes get the id of the calling transaction, applied ones
-- are deleted.
CREATE FUNCTION adopt_restored_outfit_changes() RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM outfit_counts_state FOR UPDATE;
  -- A concurrent transaction may have done it.
  IF NOT is_outfit_snapshot_restored() THEN
    RETURN;
  END IF;
  WITH counted AS (
    DELETE FROM outfit_changes c USING outfit_counts_state f WHERE pg_visible_in_snapshot(c.xid, f.snapshot)
  ), pending AS (
    UPDATE outfit_changes c SET xid = pg_current_xact_id()
    FROM outfit_counts_state f WHERE NOT pg_visible_in_snapshot(c.xid, f.snapshot)
  )
  UPDATE outfit_counts_state SET snapshot = outfit_snapshot(), prune_snapshot = outfit_snapshot(), prune_snapshot_at = now(),
    oldest_kept_xid = pg_snapshot_xmax(outfit_snapshot());
  INSERT INTO outfit_changes (xid) VALUES (pg_current_xact_id());
END $$;
-- END adopt_restored_outfit_changes
-- FUNCTION pending_outfit_changes
-- Pending changes of transactions below `below`: of those that were in progress in the snapshot of the counts, or that started
-- later. The index finds them without reading others, also when a transaction has been in progress for a day.
-- Callers say enable_seqscan = off: the planner takes a third of all changes for pending, and keeps a plan that was made
-- while the table was small. Without it, a page of 45,000 outfits read 2,332 blocks of applied changes instead of 4. They say
-- jit = off, because a disabled scan of the one row of state looks dear enough to compile: 42 ms a call.
CREATE FUNCTION pending_outfit_changes(below xid8 DEFAULT '18446744073709551615') RETURNS SETOF outfit_changes
LANGUAGE sql STABLE ROWS 100 AS $$
  SELECT * FROM outfit_changes WHERE xid >= (SELECT pg_snapshot_xmax(snapshot) FROM outfit_counts_state) AND xid < below
  UNION ALL
  SELECT * FROM outfit_changes WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip((SELECT snapshot FROM outfit_counts_state))))
$$;
-- END pending_outfit_changes
-- FUNCTION count_pending_outfit_changes
-- The number of pending changes, at most `enough`.
CREATE FUNCTION count_pending_outfit_changes(enough integer) RETURNS integer
LANGUAGE sql STABLE SET enable_seqscan = off SET jit = off AS $$
  SELECT count(*)::integer FROM (SELECT FROM pending_outfit_changes() LIMIT enough) AS pending
$$;
-- END count_pending_outfit_changes
-- FUNCTION pending_outfit_deltas
-- Pending changes as differences of counts in an ordering: -1 at the old place and +1 at the new one. Changes that
-- alter neither place nor `private` are left out. Those of transactions below `below`.
CREATE FUNCTION pending_outfit_deltas(ordering text, below xid8 DEFAULT '18446744073709551615')
RETURNS TABLE (value bigint, id integer, public integer, private integer, xid xid8)
LANGUAGE sql STABLE ROWS 100 AS $$
  WITH pending AS MATERIALIZED (
    SELECT * FROM (
      SELECT xid, outfit_id AS id, old_private, new_private,
        CASE ordering WHEN 'created' THEN old_created WHEN 'likes' THEN old_likes WHEN 'modified' THEN old_modified
          WHEN 'id' THEN CASE WHEN old_created IS NOT NULL THEN outfit_id END END AS old_value,
        CASE ordering WHEN 'created' THEN new_created WHEN 'likes' THEN new_likes WHEN 'modified' THEN new_modified
          WHEN 'id' THEN CASE WHEN new_created IS NOT NULL THEN outfit_id END END AS new_value
      FROM pending_outfit_changes(below)
    ) c
    -- Here, because most changes are likes, which move nothing in other orderings.
    WHERE (old_value, old_private) IS DISTINCT FROM (new_value, new_private) AND (old_value IS NOT NULL OR new_value IS NOT NULL)
  )
  SELECT old_value, id, -(NOT old_private)::integer, -old_private::integer, xid FROM pending WHERE old_value IS NOT NULL
  UNION ALL
  SELECT new_value, id, (NOT new_private)::integer, new_private::integer, xid FROM pending WHERE new_value IS NOT NULL
$$;
-- END pending_outfit_deltas
-- FUNCTION empty_outfit_buckets
-- Leaves one empty bucket and one empty group in each ordering, from the lowest key on.
CREATE FUNCTION empty_outfit_buckets() RETURNS void
LANGUAGE sql AS $$
  DELETE FROM outfit_buckets;
  INSERT INTO outfit_buckets
  SELECT o.ordering, level.is_group, lowest_value, lowest_id, 0, 0
  FROM outfit_orderings o CROSS JOIN (VALUES (true), (false)) AS level (is_group) CROSS JOIN outfit_key_limits;
$$;
-- END empty_outfit_buckets
-- FUNCTION record_outfits
-- Records a statement that writes outfits: it only inserts, so writers never wait for each other. The full join is hashed
-- or merged, so a generic plan made for one row is good for a million. SECURITY DEFINER: roles that write outfits need no
-- privilege on the changes.
CREATE FUNCTION record_outfits() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET jit = off AS $$
BEGIN
  PERFORM adopt_restored_outfit_changes() FROM outfit_counts_state WHERE pg_visible_in_snapshot(pg_current_xact_id_if_assigned(), snapshot);
  IF TG_OP = 'INSERT' THEN
    INSERT INTO outfit_changes (xid, outfit_id, new_user_id, new_private, new_created, new_modified)
    SELECT pg_current_xact_id(), id, user_id, private, created, modified FROM added;
  ELSIF TG_OP = 'DELETE' THEN
    INSERT INTO outfit_changes (xid, outfit_id, old_user_id, old_private, old_created, old_modified)
    SELECT pg_current_xact_id(), id, user_id, private, created, modified FROM removed;
  ELSE
    INSERT INTO outfit_changes (xid, outfit_id, old_user_id, old_private, old_created, old_modified, new_user_id, new_private, new_created, new_modified)
    SELECT pg_current_xact_id(), id, o.user_id, o.private, o.created, o.modified, n.user_id, n.private, n.created, n.modified
    FROM removed o FULL JOIN added n USING (id) WHERE o IS DISTINCT FROM n;
  END IF;
  RETURN NULL;
END $$;
-- END record_outfits
-- FUNCTION record_outfit_like_counts
-- The same for outfit_like_counts.
CREATE FUNCTION record_outfit_like_counts() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET jit = off AS $$
BEGIN
  PERFORM adopt_restored_outfit_changes() FROM outfit_counts_state WHERE pg_visible_in_snapshot(pg_current_xact_id_if_assigned(), snapshot);
  IF TG_OP = 'INSERT' THEN
    INSERT INTO outfit_changes (xid, outfit_id, new_user_id, new_private, new_likes)
    SELECT pg_current_xact_id(), id, user_id, private, likes FROM added;
  ELSIF TG_OP = 'DELETE' THEN
    INSERT INTO outfit_changes (xid, outfit_id, old_user_id, old_private, old_likes)
    SELECT pg_current_xact_id(), id, user_id, private, likes FROM removed;
  ELSE
    INSERT INTO outfit_changes (xid, outfit_id, old_user_id, old_private, old_likes, new_user_id, new_private, new_likes)
    SELECT pg_current_xact_id(), id, o.user_id, o.private, o.likes, n.user_id, n.private, n.likes
    FROM removed o FULL JOIN added n USING (id) WHERE o IS DISTINCT FROM n;
  END IF;
  RETURN NULL;
END $$;
-- END record_outfit_like_counts
-- FUNCTION record_replicated
-- Records row by row where statement triggers do not fire: in logical replication, and in sessions with
-- session_replication_role = replica. An update is recorded as a row that went and one that came. By the
-- index: a plan that was made for an empty table is kept while it fills.
CREATE FUNCTION record_replicated() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off SET jit = off AS $$
BEGIN
  -- After ENABLE TRIGGER ALL, with which pg_restore may end, this trigger fires beside the statement triggers.
  IF current_setting('session_replication_role') <> 'replica' OR OLD IS NOT DISTINCT FROM NEW THEN
    RETURN NULL;
  END IF;
  PERFORM adopt_restored_outfit_changes() FROM outfit_counts_state WHERE pg_visible_in_snapshot(pg_current_xact_id_if_assigned(), snapshot);
  -- Columns that the table lacks are null.
  INSERT INTO outfit_changes (xid, outfit_id, old_user_id, old_private, old_likes, old_created, old_modified)
  SELECT pg_current_xact_id(), id, user_id, private, likes, created, modified
  FROM jsonb_to_record(to_jsonb(OLD)) AS o (id integer, user_id integer, private boolean, likes integer, created bigint, modified bigint)
  WHERE id IS NOT NULL;
  INSERT INTO outfit_changes (xid, outfit_id, new_user_id, new_private, new_likes, new_created, new_modified)
  SELECT pg_current_xact_id(), id, user_id, private, likes, created, modified
  FROM jsonb_to_record(to_jsonb(NEW)) AS n (id integer, user_id integer, private boolean, likes integer, created bigint, modified bigint)
  WHERE id IS NOT NULL;
  -- The first copy of a subscription copies each table by itself: lists by likes were read without this outfit.
  IF TG_OP = 'INSERT' AND TG_TABLE_NAME = 'outfits' THEN
    INSERT INTO outfit_changes (xid) SELECT pg_current_xact_id() FROM outfit_like_counts WHERE id = NEW.id;
  END IF;
  RETURN NULL;
END $$;
-- END record_replicated
-- FUNCTION record_truncated_outfits
-- TRUNCATE waits for all writers of the table, and its snapshot must include what they wrote: READ COMMITTED only.
-- TRUNCATE of the likes alone is refused, because each outfit has a row of likes.
CREATE FUNCTION record_truncated_outfits() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE feature_not_supported USING
      MESSAGE = format('%s cannot be truncated at this isolation level, whose snapshot may lack what others have written', TG_TABLE_NAME),
      HINT = 'Use READ COMMITTED, or DELETE FROM outfits.';
  END IF;
  IF EXISTS (SELECT FROM outfits) THEN
    RAISE feature_not_supported USING
      MESSAGE = 'outfit_like_counts cannot be truncated without outfits', HINT = 'UPDATE outfit_like_counts SET likes = 0.';
  END IF;
  PERFORM FROM outfit_counts_state FOR UPDATE;
  -- Not TRUNCATE: deadlock with readers that have locked these tables and wait for the outfits.
  DELETE FROM outfit_like_counts;
  DELETE FROM outfit_texts;
  PERFORM empty_outfit_buckets();
  WITH gone AS (DELETE FROM outfit_changes)
  UPDATE outfit_counts_state SET snapshot = outfit_snapshot(), prune_snapshot = outfit_snapshot(), prune_snapshot_at = now(),
    oldest_kept_xid = pg_snapshot_xmax(outfit_snapshot());
  INSERT INTO outfit_changes (xid) VALUES (pg_current_xact_id());
  RETURN NULL;
END $$;
-- END record_truncated_outfits

CREATE TRIGGER record_inserted AFTER INSERT ON outfits
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION record_outfits();
CREATE TRIGGER record_updated AFTER UPDATE ON outfits
  REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION record_outfits();
CREATE TRIGGER record_deleted AFTER DELETE ON outfits
  REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION record_outfits();
CREATE TRIGGER record_replicated AFTER INSERT OR UPDATE OR DELETE ON outfits
  FOR EACH ROW EXECUTE FUNCTION record_replicated();
CREATE TRIGGER record_inserted AFTER INSERT ON outfit_like_counts
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION record_outfit_like_counts();
CREATE TRIGGER record_updated AFTER UPDATE ON outfit_like_counts
  REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION record_outfit_like_counts();
CREATE TRIGGER record_deleted AFTER DELETE ON outfit_like_counts
  REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION record_outfit_like_counts();
CREATE TRIGGER record_replicated AFTER INSERT OR UPDATE OR DELETE ON outfit_like_counts
  FOR EACH ROW EXECUTE FUNCTION record_replicated();
CREATE TRIGGER record_truncated AFTER TRUNCATE ON outfits
  FOR EACH STATEMENT EXECUTE FUNCTION record_truncated_outfits();
CREATE TRIGGER record_truncated AFTER TRUNCATE ON outfit_like_counts
  FOR EACH STATEMENT EXECUTE FUNCTION record_truncated_outfits();

-- FUNCTION record_row_change
-- Records the change of a row. Arguments: the columns of the primary key. SECURITY DEFINER: a role that writes the table
-- needs no privilege on the changes. TRUNCATE alters pg_class: recorded_tables(). By the index: a plan that was made for an
-- empty table is kept while it fills.
CREATE FUNCTION record_row_change() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF OLD IS DISTINCT FROM NEW THEN
    INSERT INTO outfit_changes (xid, table_name, row_key)
    SELECT DISTINCT pg_current_xact_id(), TG_TABLE_NAME, (SELECT string_agg(image ->> name, ',' ORDER BY nth) FROM unnest(TG_ARGV) WITH ORDINALITY AS t (name, nth))
    FROM unnest(ARRAY[to_jsonb(OLD), to_jsonb(NEW)]) AS image WHERE image IS NOT NULL;
    -- The first copy of a subscription copies each table by itself: the outfits of this user were left out of what was read.
    IF TG_OP = 'INSERT' AND TG_RELID = 'users'::regclass AND current_setting('session_replication_role') = 'replica' THEN
      INSERT INTO outfit_changes (xid) SELECT pg_current_xact_id() WHERE EXISTS (SELECT FROM outfits WHERE user_id = NEW.id);
    END IF;
  END IF;
  RETURN NULL;
END $$;
-- END record_row_change
-- FUNCTION record_changes_of
-- Records the changes of a table with a primary key from now on, replicated ones too. To be run again after a restore
-- that ends with ENABLE TRIGGER ALL, or with another primary key.
CREATE FUNCTION record_changes_of(target regclass) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE OR REPLACE TRIGGER record_changed AFTER INSERT OR UPDATE OR DELETE ON %s
    FOR EACH ROW EXECUTE FUNCTION record_row_change(%s)', target,
    (SELECT string_agg(quote_literal(attname), ', ' ORDER BY array_position(indkey::int2[], attnum))
     FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey) WHERE indrelid = target AND indisprimary));
  EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER record_changed', target);
END $$;
-- END record_changes_of
-- FUNCTION recorded_tables
-- The tables whose changes are recorded, and what identifies each with its columns and its trigger: when this changes, changes
-- may be missing.
CREATE FUNCTION recorded_tables() RETURNS TABLE (name text, identity text)
LANGUAGE sql STABLE AS $$
  SELECT c.relname, concat_ws(' ', c.oid, c.xmin, (SELECT sum(a.xmin::text::bigint) FROM pg_attribute a WHERE a.attrelid = c.oid), t.oid, t.xmin)
  FROM pg_depend d JOIN pg_trigger t ON t.oid = d.objid JOIN pg_class c ON c.oid = t.tgrelid
  WHERE d.classid = 'pg_trigger'::regclass AND d.refclassid = 'pg_proc'::regclass AND d.refobjid = to_regproc('record_row_change')
    AND t.tgname = 'record_changed' AND t.tgenabled = 'A'
$$;
-- END recorded_tables
-- FUNCTION outfit_triggers
-- The triggers on outfits, likes and users, with tgenabled: O (origin), R (replica) or A (always).
CREATE FUNCTION outfit_triggers() RETURNS TABLE (table_name text, name text, enabled "char")
LANGUAGE sql IMMUTABLE AS $$
  SELECT table_name, name, enabled
  FROM (VALUES
    ('{outfits,outfit_like_counts}'::text[], '{record_inserted,record_updated,record_deleted}'::text[], 'O'::"char"),
    ('{outfits,outfit_like_counts}', '{record_replicated}', 'R'),
    ('{users}', '{record_changed}', 'A'),
    ('{outfits,outfit_like_counts}', '{record_truncated}', 'A'),
    ('{outfits}', '{likes_inserted,likes_updated,likes_deleted,text_inserted,text_deleted}', 'O'),
    ('{outfits}', '{text_updated}', 'A'),
    ('{outfits}', '{text_replicated}', 'R')
  ) AS kinds (table_names, names, enabled), unnest(table_names) AS table_name, unnest(names) AS name
$$;
-- END outfit_triggers
-- FUNCTION outfit_definers
-- Functions that run with the rights of their owner, and name the schema in their search_path; those of attach, too.
CREATE FUNCTION outfit_definers() RETURNS TABLE (name regprocedure, is_wrong boolean)
LANGUAGE sql STABLE AS $$
  -- Without quotes, which depend on the session that has set it.
  SELECT p.oid, replace('search_path=' || nspname || ', pg_temp', '"', '') <> ALL (SELECT replace(setting, '"', '') FROM unnest(proconfig) AS setting)
  FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace
  WHERE pronamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('outfits')) AND proconfig::text LIKE '%search_path=%'
    AND (proname LIKE 'attached\_%' OR proname = 'apply_pending_outfit_changes' OR p.oid IN (SELECT tgfoid FROM pg_trigger JOIN outfit_triggers() t ON tgrelid = to_regclass(table_name) AND tgname = t.name))
$$;
-- END outfit_definers
-- FUNCTION check_outfit_triggers
-- Triggers that are missing, disabled or enabled in the wrong mode, and functions that search the schema by a former name, one
-- sentence for each.
CREATE FUNCTION check_outfit_triggers() RETURNS SETOF text
LANGUAGE sql STABLE AS $$
  SELECT format('the trigger %s on %s %s', wanted.name, wanted.table_name,
    CASE WHEN t.tgenabled IS NULL THEN 'is missing' WHEN t.tgenabled = 'D' THEN 'is off' ELSE 'does not fire when it should' END)
  FROM outfit_triggers() wanted
  LEFT JOIN pg_trigger t ON t.tgrelid = to_regclass(wanted.table_name) AND t.tgname = wanted.name
  WHERE t.tgenabled IS DISTINCT FROM wanted.enabled
  UNION ALL SELECT format('the function %s has the search path of another schema', name) FROM outfit_definers() WHERE is_wrong
  ORDER BY 1
$$;
-- END check_outfit_triggers
-- FUNCTION enable_outfit_triggers
-- Enables the triggers in their modes, and sets the search_path of their functions to the schema of the tables. Runs at the
-- end of the migrations, and after a restore that ends with ENABLE TRIGGER ALL or into a renamed schema.
CREATE FUNCTION enable_outfit_triggers() RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  current record;
  home regnamespace := (SELECT relnamespace FROM pg_class WHERE oid = 'outfits'::regclass);
BEGIN
  LOCK TABLE users, outfits, outfit_like_counts IN SHARE ROW EXCLUSIVE MODE;
  FOR current IN SELECT * FROM outfit_triggers() LOOP
    EXECUTE format('ALTER TABLE %I ENABLE %s TRIGGER %I', current.table_name,
      CASE current.enabled WHEN 'R' THEN 'REPLICA' WHEN 'A' THEN 'ALWAYS' ELSE '' END, current.name);
  END LOOP;
  FOR current IN SELECT * FROM outfit_definers() LOOP
    EXECUTE format('ALTER FUNCTION %s SET search_path TO %s, pg_temp', current.name, home);
  END LOOP;
END $$;
-- END enable_outfit_triggers
-- FUNCTION recount_outfit_buckets
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
-- END recount_outfit_buckets
-- FUNCTION add_changes_to_outfit_buckets
-- Adds the pending changes that are visible in `upto` to the buckets and groups. Returns whether a bucket has become too
-- large, or small.
CREATE FUNCTION add_changes_to_outfit_buckets(upto pg_snapshot) RETURNS boolean
LANGUAGE sql AS $$
  WITH deltas AS MATERIALIZED (
    SELECT o.ordering, m.value, m.id, sum(m.public) AS public, sum(m.private) AS private
    FROM outfit_orderings o CROSS JOIN LATERAL pending_outfit_deltas(o.ordering, pg_snapshot_xmax(upto)) m
    WHERE pg_visible_in_snapshot(m.xid, upto)
    GROUP BY 1, 2, 3 HAVING sum(m.public) <> 0 OR sum(m.private) <> 0
  ), moved AS MATERIALIZED (
    SELECT b.ordering, b.is_group, b.from_value, b.from_id, sum(d.public) AS public, sum(d.private) AS private
    FROM deltas d CROSS JOIN (VALUES (true), (false)) AS level (is_group)
    CROSS JOIN LATERAL (
      SELECT b.* FROM outfit_buckets b
      WHERE b.ordering = d.ordering AND b.is_group = level.is_group AND (b.from_value, b.from_id) <= (d.value, d.id)
      ORDER BY b.from_value DESC, b.from_id DESC LIMIT 1
    ) b
    GROUP BY 1, 2, 3, 4 HAVING sum(d.public) <> 0 OR sum(d.private) <> 0
  ), updated AS (
    UPDATE outfit_buckets b SET public = b.public + m.public, private = b.private + m.private
    FROM moved m
    WHERE b.ordering = m.ordering AND b.is_group = m.is_group AND b.from_value = m.from_value AND b.from_id = m.from_id
    RETURNING b.is_group, b.public + b.private AS size, m.public + m.private AS added
  )
  SELECT coalesce(bool_or(size > 2 * outfit_bucket_size() OR added < 0 AND size < outfit_bucket_size() / 4), false)
  FROM updated WHERE NOT is_group
$$;
-- END add_changes_to_outfit_buckets
-- FUNCTION cut_outfit_buckets
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
-- END cut_outfit_buckets
-- FUNCTION group_outfit_buckets
-- Makes the groups of an ordering anew from its buckets: about as many as each of them has buckets.
CREATE FUNCTION group_outfit_buckets(of_ordering text) RETURNS void
LANGUAGE sql AS $$
  DELETE FROM outfit_buckets b WHERE b.ordering = of_ordering AND b.is_group;
  INSERT INTO outfit_buckets
  SELECT of_ordering, true, min(b.from_value), (array_agg(b.from_id ORDER BY b.from_value, b.from_id))[1], sum(b.public), sum(b.private)
  FROM (
    SELECT b.*, ntile((SELECT ceil(sqrt(count(*)))::integer FROM outfit_buckets WHERE ordering = of_ordering)) OVER (ORDER BY b.from_value, b.from_id) AS piece
    FROM outfit_buckets b WHERE b.ordering = of_ordering
  ) b
  GROUP BY b.piece;
$$;
-- END group_outfit_buckets
-- FUNCTION reshape_outfit_buckets
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
-- END reshape_outfit_buckets
-- FUNCTION recount_outfits
-- Makes all buckets and groups anew, from the outfits of the table minus pending changes.
CREATE FUNCTION recount_outfits() RETURNS void
LANGUAGE sql AS $$
  SELECT empty_outfit_buckets();
  SELECT cut_outfit_buckets(b.ordering, ARRAY[b]) FROM outfit_bucket_ranges b WHERE NOT b.is_group;
  SELECT group_outfit_buckets(o.ordering) FROM outfit_orderings o;
  UPDATE outfit_counts_state SET is_misshapen = false;
$$;
-- END recount_outfits
-- FUNCTION apply_pending_outfit_changes
-- Applies a batch of pending changes to the counts; after the last batch, cuts buckets. Returns the number of changes, and
-- whether all is done: callers repeat it until then, each time in a transaction of its own. Does nothing while another
-- transaction writes counts. Any role may call it, at READ COMMITTED. Once a minute it prunes changes that were applied at
-- least a minute ago: caches that read changes have that much time.
CREATE FUNCTION apply_pending_outfit_changes(batch integer DEFAULT 100000, OUT applied bigint, OUT is_done boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off SET jit = off AS $$
DECLARE
  state outfit_counts_state;
  upto pg_snapshot;
  last xid8;
BEGIN
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE feature_not_supported USING MESSAGE = 'pending changes of outfits are applied at READ COMMITTED only';
  END IF;
  -- Lock order of TRUNCATE: the tables first, then the row of outfit_counts_state.
  LOCK TABLE outfits, outfit_like_counts IN ACCESS SHARE MODE;
  SELECT * INTO state FROM outfit_counts_state FOR UPDATE SKIP LOCKED;
  applied := 0;
  is_done := true;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  IF is_outfit_snapshot_restored() THEN
    PERFORM adopt_restored_outfit_changes();
    SELECT * INTO state FROM outfit_counts_state;
  END IF;
  upto := outfit_snapshot();
  SELECT c.xid INTO last FROM outfit_changes c
  WHERE c.xid >= pg_snapshot_xmax(state.snapshot) ORDER BY c.xid OFFSET greatest(batch - 1, 0) LIMIT 1;
  IF FOUND AND last < pg_snapshot_xmax(upto) THEN
    -- The snapshot after `last`: later transactions are not visible in it.
    last := (last::text::numeric + 1)::text::xid8;
    upto := format('%s:%s:%s', least(pg_snapshot_xmin(upto), last), last,
      (SELECT string_agg(xid::text, ',' ORDER BY xid) FROM pg_snapshot_xip(upto) AS xid WHERE xid < last));
  END IF;
  SELECT count(*) INTO applied FROM pending_outfit_changes(pg_snapshot_xmax(upto)) c WHERE pg_visible_in_snapshot(c.xid, upto);
  IF applied >= 10000 AND (SELECT count(*) FROM (SELECT FROM outfits LIMIT 2 * applied) limited) < 2 * applied THEN
    -- More changes than half of the outfits: a recount is cheaper, and applies all of them.
    upto := outfit_snapshot();
    last := NULL;
    SELECT count(*) INTO applied FROM pending_outfit_changes() c WHERE pg_visible_in_snapshot(c.xid, upto);
    UPDATE outfit_counts_state SET snapshot = upto;
    PERFORM recount_outfits();
  ELSIF applied > 0 THEN
    state.is_misshapen := add_changes_to_outfit_buckets(upto) OR state.is_misshapen;
    UPDATE outfit_counts_state SET snapshot = upto, is_misshapen = state.is_misshapen;
  END IF;
  -- Not with the snapshot of a batch: a cache may have a snapshot that ends later, and did not see all of it.
  IF applied > 0 AND last IS NULL AND state.prune_snapshot_at < now() - interval '1 minute' THEN
    DELETE FROM outfit_changes c
    WHERE c.xid < pg_snapshot_xmax(state.prune_snapshot) AND pg_visible_in_snapshot(c.xid, state.prune_snapshot);
    UPDATE outfit_counts_state SET oldest_kept_xid = pg_snapshot_xmax(state.prune_snapshot), prune_snapshot = upto, prune_snapshot_at = now();
  END IF;
  -- A cut reads all pending changes, so it waits until at most one batch is left.
  is_done := last IS NULL;
  IF is_done AND (SELECT is_misshapen FROM outfit_counts_state) THEN
    is_done := reshape_outfit_buckets(2 * batch::bigint);
    UPDATE outfit_counts_state SET is_misshapen = NOT is_done;
  END IF;
END $$;
-- END apply_pending_outfit_changes
-- FUNCTION count_outfits
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
-- END count_outfits
-- FUNCTION outfit_keys_before
-- How many keys of two sorted arrays come before a key: width_bucket() counts the elements up to a value by binary search,
-- first the lower values, then the lower ids of those with this value. Null for null arrays. One expression, so that callers
-- contain it: a call of a function takes ten times as long.
CREATE FUNCTION outfit_keys_before(key_values bigint[], key_ids bigint[], value bigint, id bigint) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN key_values[1] < value THEN width_bucket(value - 1, key_values) ELSE 0 END + width_bucket(id - 1,
    key_ids[CASE WHEN key_values[1] < value THEN width_bucket(value - 1, key_values) ELSE 0 END + 1:width_bucket(value, key_values)])
$$;
-- END outfit_keys_before
-- FUNCTION seek_outfits
-- Finds a bucket of a list in ascending order: the one with the outfit at offset `skip`, or the last one that begins with a
-- lower value than `below`. Returns its key, and how many outfits of the list come before that. A list consists of the
-- public outfits, or of all, and of `own_*`: the keys of a viewer's private outfits, in order. Walks the groups, then the
-- buckets from the group found on, and adds up what is counted in them; pending changes and own outfits are sorted keys.
-- Bitmap scans are off, because the planner would read and sort all buckets behind a key instead of the few up to the one
-- looked for: 800 instead of 200 us with 2,000 buckets. Sequential scans and jit: see pending_outfit_changes().
CREATE FUNCTION seek_outfits(
  of_ordering text, with_private boolean, own_values bigint[], own_ids bigint[], skip bigint, below bigint,
  OUT preceding bigint, OUT value bigint, OUT id integer
)
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  of_groups boolean;
  -- A record, because a variable of an array type would be copied at each use.
  sorted record;
  has_sorted boolean := own_values IS NOT NULL;
  from_value bigint;
  from_id integer;
  size integer;
  -- Without pending changes and own outfits: before the bucket found, and before the next one.
  counted bigint := 0;
  counted_next bigint;
  added bigint := 0;
BEGIN
  preceding := 0;
  SELECT l.lowest_value, l.lowest_id INTO value, id FROM outfit_key_limits l;
  -- Most reads find nothing pending: a probe of two indexes costs a third of the aggregate over no rows.
  IF has_sorted OR EXISTS (SELECT FROM pending_outfit_changes()) THEN
    has_sorted := true;
    SELECT own_values, own_ids, array_agg(m.value) AS pending_values, array_agg(m.id::bigint) AS pending_ids, array_agg(m.sum) AS pending_sums INTO sorted
    FROM (
      SELECT m.value, m.id, sum(m.public + CASE WHEN with_private THEN m.private ELSE 0 END) OVER list
      FROM pending_outfit_deltas(of_ordering) m WINDOW list AS (ORDER BY m.value, m.id ROWS UNBOUNDED PRECEDING)
      ORDER BY m.value, m.id
    ) m;
  END IF;
  FOREACH of_groups IN ARRAY '{true,false}'::boolean[] LOOP
    counted_next := counted;
    FOR from_value, from_id, size IN
      SELECT b.from_value, b.from_id, b.public + CASE WHEN with_private THEN b.private ELSE 0 END
      FROM outfit_buckets b
      WHERE b.ordering = of_ordering AND b.is_group = of_groups AND (b.from_value, b.from_id) >= (value, id)
      ORDER BY b.from_value, b.from_id
    LOOP
      IF has_sorted THEN
        added := coalesce(outfit_keys_before(sorted.own_values, sorted.own_ids, from_value, from_id), 0)
          + coalesce(sorted.pending_sums[outfit_keys_before(sorted.pending_values, sorted.pending_ids, from_value, from_id)], 0);
      END IF;
      EXIT WHEN counted_next + added > skip OR from_value >= below;
      counted := counted_next;
      preceding := counted + added;
      value := from_value;
      id := from_id;
      counted_next := counted + size;
    END LOOP;
  END LOOP;
END $$;
-- END seek_outfits
-- FUNCTION rank_outfits
-- How many outfits of a list come before a value of an ordering: those before a bucket by the counts, the others by the
-- index. A list consists of the public outfits, or of all, and of a viewer's private ones.
CREATE FUNCTION rank_outfits(of_ordering text, with_private boolean, viewer integer, value bigint) RETURNS bigint
LANGUAGE plpgsql STABLE SET jit = off AS $$
DECLARE
  bucket record;
  found_in_index bigint;
BEGIN
  SELECT * INTO bucket FROM seek_outfits(of_ordering, with_private, NULL, NULL, NULL, value);
  EXECUTE format($sql$
    SELECT (SELECT count(*) FROM %2$I s WHERE NOT s.private AND (s.%1$I, s.id) >= ($1, $2) AND s.%1$I < $3)
      + (SELECT count(*) FROM %2$I s WHERE s.private AND $4 AND (s.%1$I, s.id) >= ($1, $2) AND s.%1$I < $3)
      + (SELECT count(*) FROM %2$I s WHERE s.user_id = $5 AND s.private AND s.%1$I < $3)
  $sql$, of_ordering, (SELECT o.table_name FROM outfit_orderings o WHERE o.ordering = of_ordering))
  INTO found_in_index USING bucket.value, bucket.id, value, with_private, viewer;
  RETURN bucket.preceding + found_in_index;
END $$;
-- END rank_outfits
-- FUNCTION check_outfit_counts
-- Buckets and groups with another number of public and of private outfits than the table minus pending changes, or a group
-- than its buckets: none, unless triggers were disabled. An ordering without the first group or bucket, or with a group that
-- does not begin with a bucket, counts as one of them. Compares `sample` random buckets of each ordering, or all.
CREATE FUNCTION check_outfit_counts(sample integer DEFAULT NULL)
RETURNS TABLE (ordering text, is_group boolean, from_value bigint, from_id integer, counted bigint[], found bigint[])
LANGUAGE sql STABLE AS $$
  SELECT b.ordering, b.is_group, b.from_value, b.from_id, ARRAY[b.public, b.private], ARRAY[c.public, c.private]
  FROM outfit_orderings o
  CROSS JOIN LATERAL (
    SELECT array_agg(b) AS buckets
    FROM (SELECT b FROM outfit_bucket_ranges b WHERE b.ordering = o.ordering AND NOT b.is_group ORDER BY random() LIMIT sample) b
  ) sampled
  CROSS JOIN LATERAL unnest(sampled.buckets) b
  JOIN LATERAL recount_outfit_buckets(o.ordering, sampled.buckets) c USING (from_value, from_id)
  WHERE (b.public, b.private) <> (c.public, c.private)
  UNION ALL
  SELECT o.ordering, true, g.from_value, g.from_id, ARRAY[g.public, g.private], ARRAY[g.bucket_public, g.bucket_private]
  FROM outfit_orderings o LEFT JOIN outfit_groups g USING (ordering) CROSS JOIN outfit_key_limits l
  WHERE (g.public, g.private, g.from_value, true) IS DISTINCT FROM (g.bucket_public, g.bucket_private, g.first_value,
    EXISTS (SELECT FROM outfit_buckets f WHERE f.ordering = o.ordering AND NOT f.is_group AND f.from_value = l.lowest_value))
    OR g.from_value IS NULL
$$;
-- END check_outfit_counts
-- FUNCTION check_outfit_likes
-- Rows of likes that are missing, orphaned or have stale copies: none, unless triggers were disabled.
CREATE FUNCTION check_outfit_likes() RETURNS SETOF integer
LANGUAGE sql STABLE AS $$
  SELECT coalesce(o.id, l.id) FROM outfits o FULL JOIN outfit_like_counts l USING (id)
  WHERE (o.id, o.private, o.user_id) IS DISTINCT FROM (l.id, l.private, l.user_id)
$$;
-- END check_outfit_likes
-- FUNCTION rebuild_outfit_counts
-- Enables the triggers, repairs the rows of likes, and recounts everything. Writers are not blocked by the recount, as
-- their changes are pending; maintenance and TRUNCATE wait.
CREATE FUNCTION rebuild_outfit_counts() RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE feature_not_supported USING MESSAGE = 'counts are rebuilt at READ COMMITTED only';
  END IF;
  -- Only when a trigger is wrong: ALTER TABLE waits for writers.
  IF EXISTS (SELECT FROM check_outfit_triggers()) THEN
    PERFORM enable_outfit_triggers();
  END IF;
  IF EXISTS (SELECT FROM check_outfit_likes()) THEN
    LOCK TABLE outfits, outfit_like_counts IN SHARE ROW EXCLUSIVE MODE;
    DELETE FROM outfit_like_counts l WHERE NOT EXISTS (SELECT FROM outfits o WHERE o.id = l.id);
    INSERT INTO outfit_like_counts
    SELECT o.id, o.private, o.user_id, (SELECT count(*) FROM outfit_likes l WHERE l.outfit_id = o.id) FROM outfits o
    ON CONFLICT (id) DO UPDATE SET private = excluded.private, user_id = excluded.user_id
    WHERE (outfit_like_counts.private, outfit_like_counts.user_id) <> (excluded.private, excluded.user_id);
  END IF;
  LOCK TABLE outfits, outfit_like_counts IN ACCESS SHARE MODE;
  PERFORM FROM outfit_counts_state FOR UPDATE;
  -- One statement, hence one snapshot: it deletes exactly the changes that are not pending.
  WITH gone AS (
    DELETE FROM outfit_changes c WHERE pg_visible_in_snapshot(c.xid, outfit_snapshot())
  )
  UPDATE outfit_counts_state SET snapshot = outfit_snapshot(), prune_snapshot = outfit_snapshot(), prune_snapshot_at = now(),
    oldest_kept_xid = pg_snapshot_xmax(outfit_snapshot());
  PERFORM recount_outfits();
  INSERT INTO outfit_changes (xid) VALUES (pg_current_xact_id());
END $$;
-- END rebuild_outfit_counts

SELECT record_changes_of('users');
SELECT empty_outfit_buckets();

INSERT INTO outfit_counts_state (snapshot, oldest_kept_xid, prune_snapshot, prune_snapshot_at)
SELECT snapshot, pg_snapshot_xmax(snapshot), snapshot, now() FROM outfit_snapshot() AS snapshot;
