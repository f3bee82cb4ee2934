-- Pending changes: of transactions that were in progress in the snapshot of the counts, or that started later. The index
-- finds them without reading others, also when a transaction has been in progress for a day.
CREATE FUNCTION pending_outfit_changes() RETURNS SETOF outfit_changes
LANGUAGE sql STABLE ROWS 100 AS $$
  SELECT * FROM outfit_changes WHERE xid >= (SELECT pg_snapshot_xmax(snapshot) FROM outfit_counts_state)
  UNION ALL
  SELECT * FROM outfit_changes WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip((SELECT snapshot FROM outfit_counts_state))))
$$;
