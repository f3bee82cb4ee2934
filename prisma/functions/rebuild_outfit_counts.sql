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
