-- Counting without a price for writers: src/outfits/counting.md explains the design.

-- Nobody writes from here on until the end, so the counts of before hold. LOCK takes no snapshot: also
-- at other isolation levels, what follows sees all that was written before.
LOCK TABLE outfits, users IN SHARE ROW EXCLUSIVE MODE;

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

-- How many outfits fall into each node of each ordering, as of the snapshot of outfit_fold.
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
LANGUAGE plpgsql SECURITY DEFINER AS $$
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
    FROM removed o FULL JOIN added n USING (id) WHERE o IS DISTINCT FROM n;
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
LANGUAGE plpgsql SECURITY DEFINER AS $$
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
    kept_from = pg_snapshot_xmax(outfit_snapshot()), crowded = false;
  INSERT INTO outfit_changes (xid) VALUES (pg_current_xact_id());
  RETURN NULL;
END $$;

CREATE TRIGGER note_inserted AFTER INSERT ON outfits
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION note_outfits();
CREATE TRIGGER note_updated AFTER UPDATE ON outfits
  REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION note_outfits();
CREATE TRIGGER note_deleted AFTER DELETE ON outfits
  REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION note_outfits();
CREATE TRIGGER note_replicated AFTER INSERT OR UPDATE OR DELETE ON outfits
  FOR EACH ROW EXECUTE FUNCTION note_replicated_outfit();
CREATE TRIGGER note_truncated AFTER TRUNCATE ON outfits
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
BEGIN
  FOREACH name IN ARRAY '{note_inserted,note_updated,note_deleted}'::text[] LOOP
    EXECUTE format('ALTER TABLE outfits ENABLE TRIGGER %I', name);
    EXECUTE format('ALTER TABLE users ENABLE TRIGGER %I', name);
  END LOOP;
  ALTER TABLE outfits ENABLE REPLICA TRIGGER note_replicated;
  ALTER TABLE users ENABLE REPLICA TRIGGER note_replicated;
  ALTER TABLE outfits ENABLE ALWAYS TRIGGER note_truncated;
  FOREACH name IN ARRAY '{note_outfits,note_replicated_outfit,note_users,note_replicated_user,note_truncated_outfits}'::text[] LOOP
    EXECUTE format('ALTER FUNCTION %I() SET search_path TO %I, pg_temp', name, current_schema());
  END LOOP;
END $$;

SELECT arm_outfit_triggers();

INSERT INTO outfit_fold (snapshot, kept_from, mark, marked_at, crowded)
SELECT snapshot, pg_snapshot_xmax(snapshot), snapshot, now(), true FROM outfit_snapshot() AS snapshot;
