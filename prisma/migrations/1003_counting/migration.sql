-- Exact counts and any page at a constant cost, without contention between writers. Design: src/outfits/counting.md.

-- Changes by transaction. A statement adds one row for each outfit, and one for each number of likes, that it inserted
-- (old_* are null), deleted (new_* are null) or updated. Rows of outfits have created and modified, rows of likes have
-- likes. A row without an outfit but with user ids: a user was inserted, updated or deleted. A row with only an xid:
-- anything may have changed.
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

-- Read by: pending changes, and the cache's probe.
-- CreateIndex
CREATE INDEX "outfit_changes_xid_idx" ON "outfit_changes"("xid");

-- The table has no key, but a publication FOR ALL TABLES needs a replica identity to allow DELETE. vacuum_truncate is
-- off because truncating the end of the table locks readers out.
ALTER TABLE "outfit_changes" REPLICA IDENTITY FULL;
ALTER TABLE "outfit_changes" SET (vacuum_truncate = false, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000);

-- The counts: the number of outfits in each node of the tree of each ordering, as of the snapshot in
-- outfit_counts_state. Trees belong to all outfits (owner 2147483648, which is no user id) and to each user with many
-- outfits. A node with `split` has children.
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

-- Frequent updates of the same rows: free space in each page allows HOT updates, which do not touch the index.
ALTER TABLE "outfit_bucket_counts" SET (fillfactor = 50);

-- Nodes to be split. A row with level 0 is a user for whom trees are to be created.
CREATE TABLE "outfit_split_queue" (
    "owner" BIGINT NOT NULL,
    "level" SMALLINT NOT NULL,
    "bucket" BIGINT NOT NULL,
    "block" INTEGER NOT NULL,

    CONSTRAINT "outfit_split_queue_pkey" PRIMARY KEY ("owner", "level", "bucket", "block")
);

-- The counts contain exactly the changes that are visible in `snapshot`; all others are pending. A transaction that
-- writes counts locks this row. All changes of transactions from `oldest_kept_xid` on still exist. Pruning deletes the
-- changes visible in `prune_snapshot` and then sets a newer one.
CREATE TABLE "outfit_counts_state" (
    "is_only" BOOLEAN NOT NULL DEFAULT true CHECK ("is_only"),
    "snapshot" pg_snapshot NOT NULL,
    "oldest_kept_xid" xid8 NOT NULL,
    "prune_snapshot" pg_snapshot NOT NULL,
    "prune_snapshot_at" TIMESTAMPTZ(6) NOT NULL,

    CONSTRAINT "outfit_counts_state_pkey" PRIMARY KEY ("is_only")
);

-- Changes.

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

-- Whether the counts were restored from a dump of another cluster: transaction ids start anew there, so a transaction
-- in progress is visible in the stored snapshot, or the snapshot is from the future.
CREATE FUNCTION is_outfit_snapshot_restored() RETURNS boolean
LANGUAGE sql STABLE AS $$
  SELECT pg_snapshot_xmax(pg_current_snapshot()) < pg_snapshot_xmax(snapshot)
    OR coalesce(pg_visible_in_snapshot(pg_current_xact_id_if_assigned(), snapshot), false)
    OR EXISTS (SELECT FROM pg_snapshot_xip(pg_current_snapshot()) xid WHERE pg_visible_in_snapshot(xid, snapshot))
  FROM outfit_counts_state
$$;

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

-- Triggers. record_<table>() records each statement that writes outfits, their likes, or users (which are not counted,
-- but are part of answers). It only inserts, so writers never wait for each other. The full join is hashed or merged, so
-- a generic plan made for one row is good for a million. record_replicated_<table>() records row by row where statement
-- triggers do not fire: in logical replication, and with session_replication_role = replica. SECURITY DEFINER: roles
-- that write outfits need no privilege on the changes.
DO $do$
DECLARE
  tracked record;
  -- The counts cannot contain a transaction in progress: they were restored.
  adopt_restored text := 'IF EXISTS (SELECT FROM outfit_counts_state WHERE pg_visible_in_snapshot(pg_current_xact_id_if_assigned(), snapshot)) THEN
        PERFORM adopt_restored_outfit_changes();
      END IF;';
BEGIN
  FOR tracked IN
    SELECT * FROM (VALUES
      ('outfits', '%1$s.id', '%1$s.user_id, %1$s.private, NULL::integer, %1$s.created, %1$s.modified'),
      ('outfit_like_counts', '%1$s.id', '%1$s.user_id, %1$s.private, %1$s.likes, NULL::bigint, NULL::bigint'),
      ('users', 'NULL::integer', '%1$s.id, NULL::boolean, NULL::integer, NULL::bigint, NULL::bigint')
    ) AS t (name, outfit, keys)
  LOOP
    EXECUTE format($sql$
      CREATE FUNCTION record_%1$s() RETURNS trigger
      LANGUAGE plpgsql SECURITY DEFINER SET jit = off AS $body$
      BEGIN
        %2$s
        IF TG_OP = 'INSERT' THEN
          INSERT INTO outfit_changes SELECT pg_current_xact_id(), %3$s, NULL, NULL, NULL, NULL, NULL, %4$s FROM added n;
        ELSIF TG_OP = 'DELETE' THEN
          INSERT INTO outfit_changes SELECT pg_current_xact_id(), %5$s, %6$s FROM removed o;
        ELSE
          INSERT INTO outfit_changes SELECT pg_current_xact_id(), %7$s, %6$s, %4$s
          FROM removed o FULL JOIN added n USING (id) WHERE o IS DISTINCT FROM n;
        END IF;
        RETURN NULL;
      END $body$;

      CREATE FUNCTION record_replicated_%1$s() RETURNS trigger
      LANGUAGE plpgsql SECURITY DEFINER AS $body$
      BEGIN
        -- After ENABLE TRIGGER ALL, with which pg_restore may end, this trigger fires beside the statement triggers.
        IF current_setting('session_replication_role') <> 'replica' THEN
          RETURN NULL;
        END IF;
        %2$s
        IF TG_OP = 'UPDATE' AND OLD.id = NEW.id THEN
          INSERT INTO outfit_changes SELECT pg_current_xact_id(), %8$s, %9$s, %10$s WHERE OLD IS DISTINCT FROM NEW;
          RETURN NULL;
        END IF;
        IF TG_OP <> 'INSERT' THEN
          INSERT INTO outfit_changes SELECT pg_current_xact_id(), %8$s, %9$s;
        END IF;
        IF TG_OP <> 'DELETE' THEN
          INSERT INTO outfit_changes SELECT pg_current_xact_id(), %11$s, NULL, NULL, NULL, NULL, NULL, %10$s;
        END IF;
        RETURN NULL;
      END $body$;

      CREATE TRIGGER record_inserted AFTER INSERT ON %1$s
        REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION record_%1$s();
      CREATE TRIGGER record_updated AFTER UPDATE ON %1$s
        REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION record_%1$s();
      CREATE TRIGGER record_deleted AFTER DELETE ON %1$s
        REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION record_%1$s();
      CREATE TRIGGER record_replicated AFTER INSERT OR UPDATE OR DELETE ON %1$s
        FOR EACH ROW EXECUTE FUNCTION record_replicated_%1$s();
    $sql$, tracked.name, adopt_restored, format(tracked.outfit, 'n'), format(tracked.keys, 'n'),
      format(tracked.outfit, 'o'), format(tracked.keys, 'o'), CASE WHEN tracked.outfit LIKE 'NULL%' THEN tracked.outfit ELSE 'id' END,
      format(tracked.outfit, 'OLD'), format(tracked.keys, 'OLD'), format(tracked.keys, 'NEW'), format(tracked.outfit, 'NEW'));
  END LOOP;
END $do$;

-- TRUNCATE waits for all writers of the table, and its snapshot must include what they wrote: READ COMMITTED only.
-- TRUNCATE of the likes alone is refused, because each outfit has a row of likes.
CREATE FUNCTION record_truncated_outfits() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE feature_not_supported USING
      MESSAGE = format('%s cannot be truncated at this isolation level, whose snapshot may lack what others have written', TG_TABLE_NAME),
      HINT = 'Use READ COMMITTED, or DELETE FROM outfits.';
  END IF;
  IF TG_TABLE_NAME = 'outfit_like_counts' THEN
    IF EXISTS (SELECT FROM outfits) THEN
      RAISE feature_not_supported USING
        MESSAGE = 'outfit_like_counts cannot be truncated without outfits', HINT = 'UPDATE outfit_like_counts SET likes = 0.';
    END IF;
    RETURN NULL;
  END IF;
  PERFORM FROM outfit_counts_state FOR UPDATE;
  -- Not TRUNCATE: deadlock with readers that have locked these tables and wait for the outfits.
  DELETE FROM outfit_like_counts;
  DELETE FROM outfit_bucket_counts;
  DELETE FROM outfit_split_queue;
  WITH gone AS (DELETE FROM outfit_changes)
  UPDATE outfit_counts_state SET snapshot = outfit_snapshot(), prune_snapshot = outfit_snapshot(), prune_snapshot_at = now(),
    oldest_kept_xid = pg_snapshot_xmax(outfit_snapshot());
  INSERT INTO outfit_changes (xid) VALUES (pg_current_xact_id());
  RETURN NULL;
END $$;

CREATE TRIGGER record_truncated AFTER TRUNCATE ON outfits
  FOR EACH STATEMENT EXECUTE FUNCTION record_truncated_outfits();
CREATE TRIGGER record_truncated AFTER TRUNCATE ON outfit_like_counts
  FOR EACH STATEMENT EXECUTE FUNCTION record_truncated_outfits();

-- The triggers on outfits, likes and users, with tgenabled: O (origin), R (replica) or A (always).
CREATE FUNCTION outfit_triggers() RETURNS TABLE (table_name text, name text, enabled "char")
LANGUAGE sql IMMUTABLE AS $$
  SELECT table_name, name, 'O'::"char"
  FROM unnest('{outfits,outfit_like_counts,users}'::text[]) AS table_name, unnest('{record_inserted,record_updated,record_deleted}'::text[]) AS name
  UNION ALL SELECT table_name, 'record_replicated', 'R' FROM unnest('{outfits,outfit_like_counts,users}'::text[]) AS table_name
  UNION ALL SELECT table_name, 'record_truncated', 'A' FROM unnest('{outfits,outfit_like_counts}'::text[]) AS table_name
  UNION ALL SELECT 'outfits', name, 'O' FROM unnest('{likes_inserted,likes_updated,likes_deleted}'::text[]) AS name
  UNION ALL SELECT 'outfits', name, 'A' FROM unnest('{text_inserted,text_updated,text_deleted,text_truncated}'::text[]) AS name
$$;

-- Triggers that are missing, disabled or enabled in the wrong mode, one sentence for each.
CREATE FUNCTION check_outfit_triggers() RETURNS SETOF text
LANGUAGE sql STABLE AS $$
  SELECT format('the trigger %s on %s %s', wanted.name, wanted.table_name,
    CASE WHEN t.tgenabled IS NULL THEN 'is missing' WHEN t.tgenabled = 'D' THEN 'is off' ELSE 'does not fire when it should' END)
  FROM outfit_triggers() wanted
  LEFT JOIN pg_trigger t ON t.tgrelid = to_regclass(wanted.table_name) AND t.tgname = wanted.name
  WHERE t.tgenabled IS DISTINCT FROM wanted.enabled
  ORDER BY 1
$$;

-- Enables the triggers in their modes, and sets the search_path of the SECURITY DEFINER functions, so that a caller's
-- temporary table cannot replace one of these. Runs at the end of the migrations, and after a restore that ends with
-- ENABLE TRIGGER ALL or into a renamed schema.
CREATE FUNCTION enable_outfit_triggers() RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  current record;
  -- The schema of the tables: current_schema depends on the calling session.
  home oid := (SELECT relnamespace FROM pg_class WHERE oid = 'outfits'::regclass);
BEGIN
  LOCK TABLE users, outfits, outfit_like_counts IN SHARE ROW EXCLUSIVE MODE;
  FOR current IN SELECT * FROM outfit_triggers() LOOP
    EXECUTE format('ALTER TABLE %I ENABLE %s TRIGGER %I', current.table_name,
      CASE current.enabled WHEN 'R' THEN 'REPLICA' WHEN 'A' THEN 'ALWAYS' ELSE '' END, current.name);
  END LOOP;
  FOR current IN
    SELECT t.tgfoid::regprocedure AS name FROM outfit_triggers() wanted
    JOIN pg_trigger t ON t.tgrelid = wanted.table_name::regclass AND t.tgname = wanted.name
    UNION SELECT 'apply_pending_outfit_changes(integer)'::regprocedure
  LOOP
    EXECUTE format('ALTER FUNCTION %s SET search_path TO %s, pg_temp', current.name, home::regnamespace);
  END LOOP;
END $$;

-- Trees.

-- The levels of the tree of each ordering, and the table with its sort field. The bucket of a node is the sort field
-- without its lowest `value_shift` bits; the block is the id (from its least value) without its lowest `id_shift` bits.
-- Each level divides the nodes of the level above: first by the sort field, then, among outfits with the same value, by
-- the id.
CREATE FUNCTION outfit_levels()
RETURNS TABLE (ordering text, table_name text, level integer, value_shift integer, id_shift integer, is_first boolean, is_last boolean)
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 34 AS $$
  SELECT tree.ordering, tree.table_name, tree.first_level + depth - 1, tree.value_shifts[depth], tree.id_shifts[depth],
    depth = 1, depth = cardinality(tree.value_shifts)
  FROM (VALUES
    ('created', 'outfits', 100, '{50,44,38,32,26,20,14,7,0,0,0,0}'::integer[], '{32,32,32,32,32,32,32,32,32,24,17,10}'::integer[]),
    ('id', 'outfits', 200, '{22,16,10}', '{32,32,32}'),
    ('likes', 'outfit_like_counts', 300, '{24,18,12,6,0,0,0,0}', '{32,32,32,32,32,24,17,10}'),
    ('modified', 'outfits', 400, '{50,44,38,32,26,20,14,7,0,0,0,0}', '{32,32,32,32,32,32,32,32,32,24,17,10}')
  ) AS tree (ordering, table_name, first_level, value_shifts, id_shifts), generate_series(1, cardinality(tree.value_shifts)) AS depth
$$;

-- The first level of the tree by id. Every owner of trees has this one.
CREATE FUNCTION outfit_id_root_level() RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT 200';

-- A node with more outfits is split, and a user with more gets trees.
CREATE FUNCTION outfit_split_threshold() RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT 2000';

-- The key range of a node: the lowest and the highest possible sort key, and `range`, a SQL condition on `table_name`
-- with these as $1 to $4.
CREATE FUNCTION outfit_node_keys(
  node outfit_split_queue, OUT ordering text, OUT table_name text, OUT range text,
  OUT low bigint, OUT low_id integer, OUT high bigint, OUT high_id integer
)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT l.ordering, l.table_name, format('%s (%2$I, id) >= ($1, $2) AND (%2$I, id) <= ($3, $4)',
      CASE WHEN node.owner = 2147483648 THEN '' ELSE format('user_id = %s AND', node.owner) END, l.ordering),
    node.bucket << l.value_shift, ((node.block::bigint << l.id_shift) - 2147483648)::integer,
    (node.bucket << l.value_shift) | ((1::bigint << l.value_shift) - 1),
    ((node.block::bigint << l.id_shift) + (1::bigint << l.id_shift) - 2147483649)::integer
  FROM outfit_levels() l WHERE l.level = node.level
$$;

-- The outfits with their sort keys in each ordering.
CREATE VIEW outfit_keys AS
  SELECT 'created' AS ordering, user_id AS owner, private, created AS value, id FROM outfits
  UNION ALL SELECT 'id', user_id, private, id::bigint, id FROM outfits
  UNION ALL SELECT 'likes', user_id, private, likes::bigint, id FROM outfit_like_counts
  UNION ALL SELECT 'modified', user_id, private, modified, id FROM outfits;

-- Whether an owner has trees.
CREATE FUNCTION has_outfit_trees(tree bigint) RETURNS boolean
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN tree = 2147483648 OR EXISTS (SELECT FROM outfit_bucket_counts c WHERE c.owner = tree AND c.level = outfit_id_root_level());
END $$;

-- Pending changes: of transactions that were in progress in the snapshot of the counts, or that started later. The index
-- finds them without reading others, also when a transaction has been in progress for a day.
CREATE FUNCTION pending_outfit_changes() RETURNS SETOF outfit_changes
LANGUAGE sql STABLE ROWS 100 AS $$
  SELECT * FROM outfit_changes WHERE xid >= (SELECT pg_snapshot_xmax(snapshot) FROM outfit_counts_state)
  UNION ALL
  SELECT * FROM outfit_changes WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip((SELECT snapshot FROM outfit_counts_state))))
$$;

-- The number of pending changes, at most `enough`.
CREATE FUNCTION count_pending_outfit_changes(enough integer) RETURNS integer
LANGUAGE sql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
  SELECT count(*)::integer FROM (SELECT FROM pending_outfit_changes() LIMIT enough) AS pending
$$;

-- Pending changes as differences of counts in an ordering: -1 at the old place and +1 at the new one. Changes that
-- alter neither place nor owner nor `private` are left out.
CREATE FUNCTION pending_outfit_deltas(ordering text)
RETURNS TABLE (value bigint, id integer, owner integer, public integer, private integer, xid xid8)
LANGUAGE sql STABLE ROWS 100 AS $$
  WITH pending AS MATERIALIZED (
    SELECT xid, outfit_id AS id, old_user_id, new_user_id, old_private, new_private,
      CASE ordering WHEN 'created' THEN old_created WHEN 'likes' THEN old_likes WHEN 'modified' THEN old_modified
        ELSE CASE WHEN old_created IS NOT NULL THEN outfit_id END END AS old_value,
      CASE ordering WHEN 'created' THEN new_created WHEN 'likes' THEN new_likes WHEN 'modified' THEN new_modified
        ELSE CASE WHEN new_created IS NOT NULL THEN outfit_id END END AS new_value
    FROM pending_outfit_changes() WHERE outfit_id IS NOT NULL
  )
  SELECT old_value, id, old_user_id, (NOT old_private)::integer * -1, -old_private::integer, xid FROM pending
  WHERE old_value IS NOT NULL AND (old_private, old_value, old_user_id) IS DISTINCT FROM (new_private, new_value, new_user_id)
  UNION ALL
  SELECT new_value, id, new_user_id, (NOT new_private)::integer, new_private::integer, xid FROM pending
  WHERE new_value IS NOT NULL AND (old_private, old_value, old_user_id) IS DISTINCT FROM (new_private, new_value, new_user_id)
$$;

-- The outfits that the counts contain, with their sort keys in each ordering: those of the table minus pending changes.
CREATE VIEW counted_outfit_keys AS
  SELECT ordering, owner, value, id, (NOT private)::integer AS public, private::integer FROM outfit_keys
  UNION ALL
  SELECT ordering, m.owner, m.value, m.id, -m.public, -m.private
  FROM unnest('{created,id,likes,modified}'::text[]) AS ordering, pending_outfit_deltas(ordering) m;

-- Maintenance of the counts. The caller of these functions has locked the row of outfit_counts_state.

CREATE TYPE outfit_delta AS (owner bigint, value bigint, id integer, public integer, private integer);

-- Adds the pending changes that are visible in `upto` to the counts, level by level: changes in split nodes continue on
-- the next level. Nodes above the threshold are queued. A user without outfits loses all trees, because the tree by id
-- says whether a user has trees.
CREATE FUNCTION add_changes_to_outfit_counts(upto pg_snapshot) RETURNS void
LANGUAGE plpgsql
SET enable_nestloop = off SET jit = off AS $$
DECLARE
  -- The orderings with changes: a like changes only the ordering by likes.
  fields text[];
  field text;
  current record;
  deltas outfit_delta[];
  has_empty boolean;
  users_with_trees bigint[] := ARRAY(
    SELECT o.owner FROM (
      SELECT c.old_user_id AS owner FROM pending_outfit_changes() c WHERE c.outfit_id IS NOT NULL AND pg_visible_in_snapshot(c.xid, upto)
      UNION
      SELECT c.new_user_id FROM pending_outfit_changes() c WHERE c.outfit_id IS NOT NULL AND pg_visible_in_snapshot(c.xid, upto)
      OFFSET 0
    ) o WHERE o.owner IS NOT NULL AND has_outfit_trees(o.owner)
  );
BEGIN
  SELECT CASE WHEN bool_or(c.outfits) THEN '{created,id,modified}'::text[] END || CASE WHEN bool_or(NOT c.outfits) THEN '{likes}'::text[] END
  INTO fields
  FROM (
    SELECT coalesce(p.old_created, p.new_created) IS NOT NULL AS outfits FROM pending_outfit_changes() p WHERE p.outfit_id IS NOT NULL
  ) c;
  FOREACH field IN ARRAY coalesce(fields, '{}') LOOP
    deltas := NULL;
    FOR current IN SELECT * FROM outfit_levels() l WHERE l.ordering = field ORDER BY l.level LOOP
      EXIT WHEN deltas IS NULL AND NOT current.is_first;
      WITH moved AS MATERIALIZED (
        SELECT * FROM pending_outfit_deltas(field) m WHERE current.is_first AND pg_visible_in_snapshot(m.xid, upto)
      ), given AS MATERIALIZED (
        SELECT m.*, m.value >> current.value_shift AS bucket, ((m.id + 2147483648) >> current.id_shift)::integer AS block
        FROM (
          SELECT 2147483648 AS owner, value, id, public, private FROM moved
          UNION ALL
          SELECT owner, value, id, public, private FROM moved JOIN unnest(users_with_trees) AS tree (owner) USING (owner)
          UNION ALL
          SELECT * FROM unnest(deltas)
        ) m
      ), written AS (
        INSERT INTO outfit_bucket_counts AS c (owner, level, bucket, block, public, private)
        SELECT g.owner, current.level, g.bucket, g.block, sum(g.public), sum(g.private) FROM given g GROUP BY 1, 3, 4 ORDER BY 1, 3, 4
        ON CONFLICT ON CONSTRAINT outfit_bucket_counts_pkey
          DO UPDATE SET public = c.public + excluded.public, private = c.private + excluded.private
        RETURNING c.*
      ), queued AS (
        INSERT INTO outfit_split_queue
        SELECT w.owner, w.level, w.bucket, w.block FROM written w
        WHERE w.public + w.private > outfit_split_threshold() AND NOT w.split AND NOT current.is_last
        ON CONFLICT DO NOTHING
      )
      SELECT array_agg(ROW(g.owner, g.value, g.id, g.public, g.private)::outfit_delta) FILTER (WHERE w.split),
        bool_or(w.public = 0 AND w.private = 0 AND NOT w.split)
      INTO deltas, has_empty
      FROM given g JOIN written w USING (owner, bucket, block);
      IF has_empty THEN
        DELETE FROM outfit_bucket_counts c
        WHERE c.level = current.level AND c.public = 0 AND c.private = 0 AND NOT c.split
          AND c.owner IN (SELECT 2147483648 UNION ALL SELECT m.owner FROM pending_outfit_deltas(field) m)
          AND c.bucket IN (SELECT m.value >> current.value_shift FROM pending_outfit_deltas(field) m);
      END IF;
    END LOOP;
  END LOOP;
  users_with_trees := ARRAY(SELECT tree FROM unnest(users_with_trees) AS tree WHERE NOT has_outfit_trees(tree));
  IF cardinality(users_with_trees) > 0 THEN
    DELETE FROM outfit_bucket_counts c WHERE c.owner = ANY (users_with_trees);
  END IF;
END $$;

-- Creates the trees of an owner with one level each, from the outfits of the table minus pending changes.
CREATE FUNCTION create_outfit_trees(tree bigint) RETURNS void
LANGUAGE plpgsql
SET jit = off AS $$
BEGIN
  EXECUTE format($sql$
    WITH roots AS (
      INSERT INTO outfit_bucket_counts (owner, level, bucket, block, public, private)
      SELECT $1, l.level, k.value >> l.value_shift, 0, sum(k.public), sum(k.private)
      FROM counted_outfit_keys k
      JOIN (SELECT * FROM outfit_levels() WHERE is_first) l USING (ordering)
      WHERE %s
      GROUP BY 2, 3
      RETURNING *
    )
    INSERT INTO outfit_split_queue
    SELECT owner, level, bucket, block FROM roots WHERE public + private > outfit_split_threshold() ON CONFLICT DO NOTHING
  $sql$, CASE WHEN tree = 2147483648 THEN 'true' ELSE format('k.owner = %s', tree) END) USING tree;
END $$;

-- Splits a node: counts the outfits in its key range, minus pending changes, on the next level. When all of them fall
-- into one node of the next levels (outfits with the same value, for example), these nodes get the same counts, and only
-- the two ends of the range are read. Returns the number of index entries read.
CREATE FUNCTION split_outfit_node(node outfit_split_queue) RETURNS bigint
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE
  counted outfit_bucket_counts;
  keys record;
  child record;
  ends_value bigint[];
  ends_id integer[];
  deepest integer;
BEGIN
  UPDATE outfit_bucket_counts c SET split = true
  WHERE c.owner = node.owner AND c.level = node.level AND c.bucket = node.bucket AND c.block = node.block
    AND NOT c.split AND c.public + c.private > outfit_split_threshold()
  RETURNING * INTO counted;
  IF NOT FOUND THEN
    RETURN 0;
  END IF;
  SELECT * INTO keys FROM outfit_node_keys(node);
  EXECUTE format($sql$
    SELECT array_agg(value), array_agg(id) FROM (
      (SELECT %1$I::bigint AS value, id FROM %2$I WHERE NOT private AND %3$s ORDER BY private, %1$I, id LIMIT 1)
      UNION ALL (SELECT %1$I, id FROM %2$I WHERE NOT private AND %3$s ORDER BY private DESC, %1$I DESC, id DESC LIMIT 1)
      UNION ALL (SELECT %1$I, id FROM %2$I WHERE private AND %3$s ORDER BY private, %1$I, id LIMIT 1)
      UNION ALL (SELECT %1$I, id FROM %2$I WHERE private AND %3$s ORDER BY private DESC, %1$I DESC, id DESC LIMIT 1)
      UNION ALL
      SELECT m.value, m.id FROM pending_outfit_deltas(%1$L) m
      WHERE $5 IN (2147483648, m.owner) AND (m.value, m.id) >= ($1, $2) AND (m.value, m.id) <= ($3, $4)
    ) ends
  $sql$, keys.ordering, keys.table_name, keys.range)
  INTO ends_value, ends_id USING keys.low, keys.low_id, keys.high, keys.high_id, node.owner;
  SELECT max(level) INTO deepest
  FROM (
    SELECT l.level FROM outfit_levels() l, unnest(ends_value, ends_id) AS e (value, id)
    WHERE l.ordering = keys.ordering AND l.level >= node.level
    GROUP BY l.level HAVING count(DISTINCT (e.value >> l.value_shift, (e.id + 2147483648) >> l.id_shift)) = 1
  ) common;
  IF deepest > node.level THEN
    WITH below AS (
      INSERT INTO outfit_bucket_counts
      SELECT node.owner, l.level, ends_value[1] >> l.value_shift, (ends_id[1] + 2147483648) >> l.id_shift,
        counted.public, counted.private, l.level < deepest
      FROM outfit_levels() l WHERE l.level > node.level AND l.level <= deepest
      RETURNING *
    )
    INSERT INTO outfit_split_queue
    SELECT b.owner, b.level, b.bucket, b.block FROM below b JOIN outfit_levels() l USING (level)
    WHERE b.level = deepest AND NOT l.is_last;
    RETURN 0;
  END IF;
  SELECT * INTO child FROM outfit_levels() l WHERE l.level = node.level + 1;
  EXECUTE format($sql$
    WITH below AS (
      INSERT INTO outfit_bucket_counts (owner, level, bucket, block, public, private)
      SELECT $5, $6, k.value >> $7, (k.id + 2147483648) >> $8, sum(k.public), sum(k.private)
      FROM (
        SELECT %1$I::bigint AS value, id, 1 AS public, 0 AS private FROM %2$I WHERE NOT private AND %3$s
        UNION ALL
        SELECT %1$I, id, 0, 1 FROM %2$I WHERE private AND %3$s
        UNION ALL
        SELECT m.value, m.id, -m.public, -m.private FROM pending_outfit_deltas(%1$L) m
        WHERE $5 IN (2147483648, m.owner) AND (m.value, m.id) >= ($1, $2) AND (m.value, m.id) <= ($3, $4)
      ) k
      GROUP BY 3, 4 HAVING sum(k.public) <> 0 OR sum(k.private) <> 0
      RETURNING *
    )
    INSERT INTO outfit_split_queue
    SELECT owner, level, bucket, block FROM below WHERE public + private > outfit_split_threshold() AND NOT $9
  $sql$, keys.ordering, keys.table_name, keys.range)
  USING keys.low, keys.low_id, keys.high, keys.high_id, node.owner, child.level, child.value_shift, child.id_shift, child.is_last;
  RETURN counted.public + counted.private;
END $$;

-- Works through the queue until it is empty or about `budget` index entries have been read: splits nodes and creates
-- trees. The trees of all outfits come first, as most pages use them. Returns whether the queue is empty.
CREATE FUNCTION split_queued_outfit_nodes(budget bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  node outfit_split_queue;
BEGIN
  LOOP
    FOR node IN SELECT * FROM outfit_split_queue WHERE owner = (SELECT max(owner) FROM outfit_split_queue) LOOP
      IF budget <= 0 THEN
        RETURN false;
      END IF;
      DELETE FROM outfit_split_queue q
      WHERE q.owner = node.owner AND q.level = node.level AND q.bucket = node.bucket AND q.block = node.block;
      IF node.level > 0 THEN
        budget := budget - split_outfit_node(node);
      ELSIF NOT has_outfit_trees(node.owner) THEN
        PERFORM create_outfit_trees(node.owner);
        budget := budget - (SELECT count(*) FROM outfits o WHERE o.user_id = node.owner);
      END IF;
    END LOOP;
    IF NOT FOUND THEN
      RETURN true;
    END IF;
  END LOOP;
END $$;

-- Recreates all trees with one level, from the outfits of the table minus pending changes, and queues the splits.
CREATE FUNCTION recount_outfits() RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM outfit_bucket_counts;
  DELETE FROM outfit_split_queue;
  PERFORM create_outfit_trees(2147483648);
  INSERT INTO outfit_split_queue
  SELECT user_id, 0, 0, 0 FROM outfits GROUP BY 1 HAVING count(*) > outfit_split_threshold();
END $$;

-- Applies a batch of pending changes to the counts; after the last batch, splits queued nodes. Returns the number of
-- changes, and whether all is done: callers repeat it until then, each time in a transaction of its own. Does nothing
-- while another transaction writes counts. Any role may call it, at READ COMMITTED. Once a minute it prunes changes
-- that were applied at least a minute ago: caches that read changes have that much time.
CREATE FUNCTION apply_pending_outfit_changes(batch integer DEFAULT 100000, OUT applied bigint, OUT is_done boolean)
LANGUAGE plpgsql SECURITY DEFINER
SET enable_seqscan = off SET jit = off AS $$
DECLARE
  state outfit_counts_state;
  latest pg_snapshot;
  upto pg_snapshot;
  last xid8;
BEGIN
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE feature_not_supported USING MESSAGE = 'pending changes of outfits are applied at READ COMMITTED only';
  END IF;
  -- Lock order of TRUNCATE: the tables first, then the row of outfit_counts_state.
  LOCK TABLE outfits, outfit_like_counts IN ACCESS SHARE MODE;
  SELECT * INTO state FROM outfit_counts_state FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    applied := 0;
    is_done := true;
    RETURN;
  END IF;
  IF is_outfit_snapshot_restored() THEN
    PERFORM adopt_restored_outfit_changes();
    SELECT * INTO state FROM outfit_counts_state;
  END IF;
  latest := outfit_snapshot();
  upto := latest;
  SELECT c.xid INTO last FROM outfit_changes c
  WHERE c.xid >= pg_snapshot_xmax(state.snapshot) ORDER BY c.xid OFFSET greatest(batch - 1, 0) LIMIT 1;
  IF FOUND AND last < pg_snapshot_xmax(upto) THEN
    -- The snapshot after `last`: later transactions are not visible in it.
    last := (last::text::numeric + 1)::text::xid8;
    upto := format('%s:%s:%s', least(pg_snapshot_xmin(upto), last), last,
      (SELECT string_agg(xid::text, ',' ORDER BY xid) FROM pg_snapshot_xip(upto) AS xid WHERE xid < last));
  END IF;
  SELECT count(*) INTO applied FROM pending_outfit_changes() c WHERE pg_visible_in_snapshot(c.xid, upto);
  IF applied >= 10000 AND (SELECT count(*) FROM (SELECT FROM outfits LIMIT 2 * applied) limited) < 2 * applied THEN
    -- More changes than half of the outfits: a recount is cheaper, and applies all of them.
    upto := latest;
    last := NULL;
    SELECT count(*) INTO applied FROM pending_outfit_changes() c WHERE pg_visible_in_snapshot(c.xid, upto);
    UPDATE outfit_counts_state SET snapshot = upto;
    PERFORM recount_outfits();
  ELSIF applied > 0 THEN
    PERFORM add_changes_to_outfit_counts(upto);
    -- A sample of 3 % of new outfits: finds users with many outfits soon, and costs little for the others.
    INSERT INTO outfit_split_queue
    SELECT o.owner, 0, 0, 0
    FROM (
      SELECT DISTINCT m.owner FROM pending_outfit_deltas('id') m
      WHERE pg_visible_in_snapshot(m.xid, upto) AND m.public + m.private > 0 AND random() < 0.03 OFFSET 0
    ) o
    WHERE NOT has_outfit_trees(o.owner)
      AND (SELECT count(*) FROM (SELECT FROM outfits WHERE user_id = o.owner LIMIT outfit_split_threshold() + 1) enough) > outfit_split_threshold()
    ON CONFLICT DO NOTHING;
    UPDATE outfit_counts_state SET snapshot = upto;
  END IF;
  IF applied > 0 AND state.prune_snapshot_at < now() - interval '1 minute' THEN
    DELETE FROM outfit_changes c
    WHERE c.xid < pg_snapshot_xmax(state.prune_snapshot) AND pg_visible_in_snapshot(c.xid, state.prune_snapshot);
    UPDATE outfit_counts_state SET oldest_kept_xid = pg_snapshot_xmax(state.prune_snapshot), prune_snapshot = upto, prune_snapshot_at = now();
  END IF;
  -- Splitting reads all pending changes, so it waits until at most one batch is left.
  is_done := CASE WHEN last IS NULL THEN split_queued_outfit_nodes(2 * batch) ELSE false END;
END $$;

-- Reading. Two owners define a list: the owner of its public outfits and the owner of its private ones. An owner is a
-- user id, 2147483648 for all users, or null (private outfits only) for none.

-- Number of outfits in a list.
CREATE FUNCTION count_outfits(public_owner bigint, private_owner bigint) RETURNS bigint
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  total bigint := 0;
BEGIN
  -- A user without trees has few outfits: count them by the index.
  IF public_owner <> 2147483648 AND NOT has_outfit_trees(public_owner) THEN
    RETURN (
      SELECT count(*) FROM outfits o WHERE o.user_id = public_owner::integer AND (NOT o.private OR private_owner IS NOT NULL)
    );
  END IF;
  IF private_owner <> 2147483648 AND NOT has_outfit_trees(private_owner) THEN
    total := (SELECT count(*) FROM outfits o WHERE o.user_id = private_owner::integer AND o.private);
    private_owner := NULL;
  END IF;
  RETURN total + (
    SELECT coalesce(sum(rows), 0)
    FROM (
      SELECT public AS rows FROM outfit_bucket_counts WHERE owner = public_owner AND level = outfit_id_root_level()
      UNION ALL
      SELECT private FROM outfit_bucket_counts WHERE owner = private_owner AND level = outfit_id_root_level()
      UNION ALL
      -- Pending changes of outfits that enter or leave the list.
      SELECT coalesce((NOT p.new_private AND (public_owner = 2147483648 OR public_owner = p.new_user_id))::integer, 0)
        - coalesce((NOT p.old_private AND (public_owner = 2147483648 OR public_owner = p.old_user_id))::integer, 0)
        + coalesce((p.new_private AND (private_owner = 2147483648 OR private_owner = p.new_user_id))::integer, 0)
        - coalesce((p.old_private AND (private_owner = 2147483648 OR private_owner = p.old_user_id))::integer, 0)
      FROM pending_outfit_changes() p
      WHERE coalesce(p.old_created, p.new_created) IS NOT NULL
        AND (p.old_private, p.old_user_id) IS DISTINCT FROM (p.new_private, p.new_user_id)
    ) counted
  );
END $$;

-- One set of functions for each ordering, so that PostgreSQL caches their plans: planning would take longer than the
-- rest. Sequential and bitmap scans are off, because the planner cannot estimate how few rows the limit leaves.
--
-- seek_outfit_by_<ordering> descends the tree to the node with the outfit at offset `skip`. It returns the lowest and the
-- highest sort key of the node, the offset within the node, and the number of outfits in the node (null: the node is the
-- whole list, not counted). `low` is null when the list has no such outfit. It stops within 300 outfits of an end of the
-- node: to walk that far along the index is cheaper than another level.
--
-- outfits_by_<ordering> returns the ids of `take` outfits of a list in ascending order after the offset `skip`, with
-- their positions and the values of the sort field.
DO $do$
DECLARE
  tree record;
  key text;
  -- The index ranges that are merged into a list. Those that the list does not have are not read. OFFSET 0 keeps the
  -- planner from joining them, so that they are merged instead of sorted.
  ranges text;
BEGIN
  SELECT string_agg(format($sql$
    (SELECT %%1$s FROM %%2$I o
     WHERE %s AND (%%1$s) %%3$s ORDER BY %%4$s OFFSET 0)$sql$, range), ' UNION ALL ')
  INTO ranges
  FROM unnest(ARRAY[
    'public_owner = 2147483648 AND NOT o.private', 'private_owner = 2147483648 AND o.private',
    'public_owner <> 2147483648 AND o.user_id = public_owner::integer AND NOT o.private',
    'private_owner <> 2147483648 AND o.user_id = private_owner::integer AND o.private'
  ]) AS range;
  FOR tree IN
    SELECT ordering, table_name, min(level) AS first_level, array_agg(value_shift ORDER BY level) AS value_shifts, array_agg(id_shift ORDER BY level) AS id_shifts
    FROM outfit_levels() GROUP BY 1, 2
  LOOP
    key := CASE tree.ordering WHEN 'id' THEN 'o.id' ELSE format('o.%s, o.id', tree.ordering) END;
    EXECUTE format($sql$
      -- Rows to add to the counts in a key range of a list: pending changes, and the private outfits of a user without
      -- counts there (`uncounted_user`).
      CREATE FUNCTION listed_outfit_deltas_by_%1$s(
        public_owner bigint, private_owner bigint, uncounted_user bigint, low bigint, low_id integer, high bigint, high_id integer
      )
      RETURNS TABLE (value bigint, id integer, rows integer)
      LANGUAGE sql STABLE ROWS 100 AS $body$
        SELECT m.value, m.id, CASE WHEN public_owner IN (2147483648, m.owner) THEN m.public ELSE 0 END
          + CASE WHEN private_owner IN (2147483648, m.owner) THEN m.private ELSE 0 END
        FROM pending_outfit_deltas('%1$s') m
        WHERE (m.value, m.id) >= (low, low_id) AND (m.value, m.id) <= (high, high_id)
        UNION ALL
        SELECT o.%1$s, o.id, 1 FROM %2$I o
        WHERE o.user_id = uncounted_user::integer AND o.private AND (o.%1$s, o.id) >= (low, low_id) AND (o.%1$s, o.id) <= (high, high_id)
      $body$;

      CREATE FUNCTION seek_outfit_by_%1$s(
        public_owner bigint, private_owner bigint, INOUT skip bigint,
        OUT low bigint, OUT low_id integer, OUT high bigint, OUT high_id integer, OUT rows bigint
      )
      LANGUAGE plpgsql STABLE
      SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $body$
      DECLARE
        value_shifts CONSTANT integer[] := %4$L;
        id_shifts CONSTANT integer[] := %5$L;
        depth integer := 1;
        current_level integer;
        value_shift integer;
        id_shift integer;
        -- The current node, and the ranges of its children.
        found_bucket bigint;
        found_block integer;
        found_rows bigint;
        is_split boolean;
        is_private_split boolean;
        low_bucket bigint := -9223372036854775808;
        high_bucket bigint := 9223372036854775807;
        low_block integer := -2147483648;
        high_block integer := 2147483647;
        -- Rows of listed_outfit_deltas: by value, and also by id on levels whose nodes have a single value.
        delta_values bigint[];
        delta_ids integer[];
        delta_rows bigint[];
        has_deltas boolean;
        by_id boolean := false;
        -- A user whose private outfits are read from the index, because they are few and not counted.
        uncounted_user bigint;
      BEGIN
        low := -9223372036854775808;
        low_id := -2147483648;
        high := 9223372036854775807;
        high_id := 2147483647;
        IF skip <= 300 THEN
          RETURN;
        END IF;
        IF public_owner <> 2147483648 AND NOT has_outfit_trees(public_owner) THEN
          rows := count_outfits(public_owner, private_owner);
          IF skip >= rows THEN
            low := NULL;
          END IF;
          RETURN;
        END IF;
        IF private_owner IS NOT NULL AND NOT has_outfit_trees(private_owner) THEN
          uncounted_user := private_owner;
          private_owner := NULL;
        END IF;
        -- Most reads find nothing pending: a probe of two indexes costs a third of the aggregate over no rows.
        has_deltas := uncounted_user IS NOT NULL OR EXISTS (SELECT FROM pending_outfit_changes());
        LOOP
          IF has_deltas THEN
            SELECT array_agg(m.value) FILTER (WHERE m.rows <> 0), array_agg(m.id) FILTER (WHERE m.rows <> 0),
              array_agg(m.rows) FILTER (WHERE m.rows <> 0), count(*) > 0
            INTO delta_values, delta_ids, delta_rows, has_deltas
            FROM (
              SELECT m.value, CASE WHEN by_id THEN m.id ELSE 0 END AS id, sum(m.rows) AS rows
              FROM listed_outfit_deltas_by_%1$s(public_owner, private_owner, uncounted_user, low, low_id, high, high_id) m
              GROUP BY 1, 2
            ) m;
          END IF;
          <<levels>>
          LOOP
            current_level := %6$s + depth;
            value_shift := value_shifts[depth];
            id_shift := id_shifts[depth];
            rows := NULL;
            IF delta_values IS NULL AND (private_owner IS NULL OR private_owner = public_owner) THEN
              -- Fast path: the counts of one tree without pending changes.
              is_private_split := true;
              FOR found_bucket, found_block, found_rows, is_split IN
                SELECT c.bucket, c.block, c.public + CASE WHEN private_owner IS NULL THEN 0 ELSE c.private END, c.split
                FROM outfit_bucket_counts c
                WHERE c.owner = public_owner AND c.level = current_level
                  AND c.bucket BETWEEN low_bucket AND high_bucket AND c.block BETWEEN low_block AND high_block
                ORDER BY c.bucket, c.block
              LOOP
                IF skip < found_rows THEN
                  rows := found_rows;
                  EXIT;
                END IF;
                skip := skip - found_rows;
              END LOOP;
            ELSE
              FOR found_bucket, found_block, found_rows, is_split, is_private_split IN
                SELECT a.bucket, a.block, sum(a.rows), bool_or(a.split), coalesce(bool_or(a.private_split), private_owner IS NULL OR private_owner = public_owner)
                FROM (
                  SELECT c.bucket, c.block, c.public + CASE WHEN private_owner = public_owner THEN c.private ELSE 0 END AS rows,
                    c.split, NULL::boolean AS private_split
                  FROM outfit_bucket_counts c
                  WHERE c.owner = public_owner AND c.level = current_level
                    AND c.bucket BETWEEN low_bucket AND high_bucket AND c.block BETWEEN low_block AND high_block
                  UNION ALL
                  SELECT c.bucket, c.block, c.private, NULL, c.split
                  FROM outfit_bucket_counts c
                  WHERE private_owner IS DISTINCT FROM public_owner AND c.owner = private_owner AND c.level = current_level
                    AND c.bucket BETWEEN low_bucket AND high_bucket AND c.block BETWEEN low_block AND high_block
                  UNION ALL
                  SELECT m.value >> value_shift, ((m.id + 2147483648) >> id_shift)::integer, m.rows, NULL, NULL
                  FROM unnest(delta_values, delta_ids, delta_rows) AS m (value, id, rows)
                  WHERE m.value BETWEEN low AND high AND m.id BETWEEN low_id AND high_id
                ) a
                GROUP BY 1, 2 ORDER BY 1, 2
              LOOP
                IF skip < found_rows THEN
                  rows := found_rows;
                  EXIT;
                END IF;
                skip := skip - found_rows;
              END LOOP;
            END IF;
            IF rows IS NULL THEN
              low := NULL;
              RETURN;
            END IF;
            low := found_bucket << value_shift;
            high := low | ((1::bigint << value_shift) - 1);
            low_id := (found_block::bigint << id_shift) - 2147483648;
            high_id := (found_block::bigint << id_shift) + (1::bigint << id_shift) - 2147483649;
            IF skip <= 300 OR rows - skip <= 300 OR is_split IS NOT TRUE THEN
              RETURN;
            END IF;
            depth := depth + 1;
            low_bucket := low >> value_shifts[depth];
            high_bucket := high >> value_shifts[depth];
            low_block := (low_id + 2147483648) >> id_shifts[depth];
            high_block := (high_id + 2147483648) >> id_shifts[depth];
            EXIT levels WHEN NOT is_private_split OR id_shifts[depth] < 32 AND NOT by_id AND has_deltas;
          END LOOP;
          IF NOT is_private_split THEN
            -- The user's tree ends here: their private outfits below are few and are read from the index.
            uncounted_user := private_owner;
            private_owner := NULL;
            has_deltas := true;
          END IF;
          by_id := id_shifts[depth] < 32;
        END LOOP;
      END $body$;

      CREATE FUNCTION outfits_by_%1$s(public_owner bigint, private_owner bigint, skip bigint, take integer)
      RETURNS TABLE ("position" bigint, id integer, value bigint)
      LANGUAGE plpgsql STABLE ROWS 20
      SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $body$
      #variable_conflict use_column
      DECLARE
        node record;
      BEGIN
        SELECT * INTO node FROM seek_outfit_by_%1$s(public_owner, private_owner, skip);
        IF node.low IS NULL THEN
          RETURN;
        END IF;
        IF node.skip - (node.rows - node.skip) > 300 THEN
          -- Closer to the end of the node by more than 300: walk from there to the first outfit of the page.
          SELECT %1$s, id INTO node.low, node.low_id FROM (%7$s
            ORDER BY %8$s OFFSET node.rows - node.skip - 1 LIMIT 1
          ) first;
          node.skip := 0;
        END IF;
        RETURN QUERY SELECT row_number() OVER (), page.id, page.%1$s::bigint FROM (%9$s
          ORDER BY %3$s OFFSET node.skip LIMIT take
        ) page;
      END $body$;
    $sql$, tree.ordering, tree.table_name, replace(key, 'o.', ''), tree.value_shifts, tree.id_shifts, tree.first_level - 1,
      format(ranges, key, tree.table_name, CASE tree.ordering WHEN 'id' THEN '<= (node.high)' ELSE '<= (node.high, node.high_id)' END,
        regexp_replace(key, '(,|$)', ' DESC\1', 'g')),
      regexp_replace(replace(key, 'o.', ''), '(,|$)', ' DESC\1', 'g'),
      format(ranges, key, tree.table_name, CASE tree.ordering WHEN 'id' THEN '>= (node.low)' ELSE '>= (node.low, node.low_id)' END, key));
    CONTINUE WHEN tree.ordering NOT IN ('created', 'likes');
    EXECUTE format($sql$
      -- The number of public outfits, private ones, or both, of a tree whose value is below `before`. Sums the nodes below
      -- it, at most 128 of each level, and reads the index only inside the last node.
      CREATE FUNCTION rank_outfits_in_tree_by_%1$s(tree bigint, with_public boolean, with_private boolean, before bigint) RETURNS bigint
      LANGUAGE plpgsql STABLE
      SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $body$
      DECLARE
        current record;
        low bigint := -9223372036854775808;
        total bigint := 0;
        is_split boolean;
      BEGIN
        IF has_outfit_trees(tree) THEN
          FOR current IN SELECT * FROM outfit_levels() l WHERE l.ordering = '%1$s' AND l.id_shift = 32 ORDER BY l.level LOOP
            SELECT total + coalesce(sum(CASE WHEN with_public THEN c.public ELSE 0 END + CASE WHEN with_private THEN c.private ELSE 0 END) FILTER (WHERE c.bucket < before >> current.value_shift), 0),
              coalesce(bool_or(c.split) FILTER (WHERE c.bucket = before >> current.value_shift), false)
            INTO total, is_split
            FROM outfit_bucket_counts c
            WHERE c.owner = tree AND c.level = current.level AND c.block = 0
              AND c.bucket BETWEEN low >> current.value_shift AND before >> current.value_shift;
            low := before >> current.value_shift << current.value_shift;
            EXIT WHEN NOT is_split;
          END LOOP;
          total := total + (
            SELECT coalesce(sum(CASE WHEN with_public THEN m.public ELSE 0 END + CASE WHEN with_private THEN m.private ELSE 0 END), 0)
            FROM pending_outfit_deltas('%1$s') m WHERE tree IN (2147483648, m.owner) AND m.value < low
          );
        END IF;
        RETURN total + (
          SELECT sum(c.many) FROM (
            SELECT count(*) AS many FROM %2$I o
            WHERE tree = 2147483648 AND with_public AND NOT o.private AND o.%1$s >= low AND o.%1$s < before
            UNION ALL
            SELECT count(*) FROM %2$I o
            WHERE tree = 2147483648 AND with_private AND o.private AND o.%1$s >= low AND o.%1$s < before
            UNION ALL
            SELECT count(*) FROM %2$I o
            WHERE tree <> 2147483648 AND with_public AND o.user_id = tree::integer AND NOT o.private AND o.%1$s >= low AND o.%1$s < before
            UNION ALL
            SELECT count(*) FROM %2$I o
            WHERE tree <> 2147483648 AND with_private AND o.user_id = tree::integer AND o.private AND o.%1$s >= low AND o.%1$s < before
          ) c
        );
      END $body$;

      -- The number of outfits of a list whose value is below `before`.
      CREATE FUNCTION rank_outfits_by_%1$s(public_owner bigint, private_owner bigint, before bigint) RETURNS bigint
      LANGUAGE sql STABLE AS $body$
        SELECT rank_outfits_in_tree_by_%1$s(public_owner, true, private_owner IS NOT DISTINCT FROM public_owner, before)
          + CASE WHEN private_owner <> public_owner THEN rank_outfits_in_tree_by_%1$s(private_owner, false, true, before) ELSE 0 END
      $body$;
    $sql$, tree.ordering, tree.table_name);
  END LOOP;
END $do$;

-- Checking.

-- Nodes whose counts differ from the outfits of the table minus pending changes: none, unless triggers were disabled.
CREATE FUNCTION check_outfit_counts()
RETURNS TABLE (owner bigint, level smallint, bucket bigint, block integer, counted bigint[], found bigint[])
LANGUAGE sql STABLE SET jit = off AS $$
  WITH RECURSIVE trees AS MATERIALIZED (
    SELECT DISTINCT c.owner FROM outfit_bucket_counts c WHERE c.level = outfit_id_root_level() AND c.owner <> 2147483648
  ), split AS MATERIALIZED (
    SELECT * FROM outfit_bucket_counts c WHERE c.split
  ), placed AS (
    SELECT f.level, t.tree, k.value, k.id, k.public, k.private
    FROM counted_outfit_keys k
    JOIN outfit_levels() f ON f.ordering = k.ordering AND f.is_first
    CROSS JOIN LATERAL (SELECT 2147483648 AS tree UNION ALL SELECT t.owner FROM trees t WHERE t.owner = k.owner) t
  ), descent AS (
    SELECT p.level, p.tree, p.value, p.id, p.public, p.private, p.value >> l.value_shift AS bucket, ((p.id + 2147483648) >> l.id_shift)::integer AS block
    FROM placed p JOIN outfit_levels() l USING (level)
    UNION ALL
    SELECT l.level, d.tree, d.value, d.id, d.public, d.private, d.value >> l.value_shift, ((d.id + 2147483648) >> l.id_shift)::integer
    FROM descent d
    JOIN split s ON s.owner = d.tree AND s.level = d.level AND s.bucket = d.bucket AND s.block = d.block
    JOIN outfit_levels() l ON l.level = d.level + 1
  )
  SELECT owner, level::smallint, bucket, block, coalesce(c.rows, '{0,0}'), coalesce(o.rows, '{0,0}')
  FROM (
    SELECT c.owner, c.level::integer, c.bucket, c.block, ARRAY[c.public, c.private]::bigint[] AS rows FROM outfit_bucket_counts c
  ) c
  FULL JOIN (
    SELECT d.tree AS owner, d.level, d.bucket, d.block, ARRAY[sum(d.public), sum(d.private)] AS rows FROM descent d GROUP BY 1, 2, 3, 4
  ) o USING (owner, level, bucket, block)
  WHERE coalesce(c.rows, '{0,0}') <> coalesce(o.rows, '{0,0}')
$$;

-- Rows of likes that are missing, orphaned or have stale copies: none, unless triggers were disabled.
CREATE FUNCTION check_outfit_likes() RETURNS SETOF integer
LANGUAGE sql STABLE AS $$
  SELECT coalesce(o.id, l.id) FROM outfits o FULL JOIN outfit_like_counts l USING (id)
  WHERE (o.id, o.private, o.user_id) IS DISTINCT FROM (l.id, l.private, l.user_id)
$$;

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
  PERFORM split_queued_outfit_nodes(9223372036854775807);
  INSERT INTO outfit_changes (xid) VALUES (pg_current_xact_id());
END $$;

-- Audit: recounts, in each ordering, the nodes of a random outfit, in the trees of all outfits and of its user. Returns
-- the nodes with wrong counts (of public and of private outfits). Reads at most a few thousand entries of each index.
CREATE FUNCTION audit_outfit_counts()
RETURNS TABLE (owner bigint, ordering text, low bigint, high bigint, counted bigint[], found bigint[])
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off AS $$
DECLARE
  total bigint := count_outfits(2147483648, 2147483648);
  sample integer := (SELECT s.id FROM outfits_by_id(2147483648, 2147483648, floor(random() * total)::bigint, 1) s);
  node record;
  actual bigint[];
BEGIN
  FOR node IN
    SELECT c.owner, n.*, (
        SELECT ARRAY[c.public + coalesce(sum(m.public), 0), c.private + coalesce(sum(m.private), 0)]::bigint[]
        FROM pending_outfit_deltas(k.ordering) m
        WHERE c.owner IN (2147483648, m.owner) AND (m.value, m.id) >= (n.low, n.low_id) AND (m.value, m.id) <= (n.high, n.high_id)
      ) AS counted
    FROM outfit_keys k
    JOIN outfit_levels() l ON l.ordering = k.ordering
    JOIN outfit_bucket_counts c ON c.owner IN (2147483648, k.owner) AND c.level = l.level
      AND c.bucket = k.value >> l.value_shift AND c.block = ((k.id + 2147483648) >> l.id_shift)::integer
    CROSS JOIN LATERAL outfit_node_keys((c.owner, c.level, c.bucket, c.block)::outfit_split_queue) n
    WHERE k.id = sample AND NOT c.split
  LOOP
    EXECUTE format('SELECT ARRAY[
        (SELECT count(*) FROM %1$I WHERE NOT private AND %2$s), (SELECT count(*) FROM %1$I WHERE private AND %2$s)
      ]', node.table_name, node.range)
    INTO actual USING node.low, node.low_id, node.high, node.high_id;
    IF actual <> node.counted THEN
      RETURN QUERY SELECT node.owner::bigint, node.ordering::text, node.low, node.high, node.counted, actual;
    END IF;
  END LOOP;
END $$;

INSERT INTO outfit_counts_state (snapshot, oldest_kept_xid, prune_snapshot, prune_snapshot_at)
SELECT snapshot, pg_snapshot_xmax(snapshot), snapshot, now() FROM outfit_snapshot() AS snapshot;
