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
