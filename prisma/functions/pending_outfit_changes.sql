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
