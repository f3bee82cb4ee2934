-- Whether the counts were restored from a dump of another cluster: transaction ids start anew there, so a transaction
-- in progress is visible in the stored snapshot, or the snapshot is from the future.
CREATE FUNCTION is_outfit_snapshot_restored() RETURNS boolean
LANGUAGE sql STABLE AS $$
  SELECT pg_snapshot_xmax(pg_current_snapshot()) < pg_snapshot_xmax(snapshot)
    OR coalesce(pg_visible_in_snapshot(pg_current_xact_id_if_assigned(), snapshot), false)
    OR EXISTS (SELECT FROM pg_snapshot_xip(pg_current_snapshot()) xid WHERE pg_visible_in_snapshot(xid, snapshot))
  FROM outfit_counts_state
$$;
