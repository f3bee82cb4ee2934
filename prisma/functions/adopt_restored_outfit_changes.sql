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
