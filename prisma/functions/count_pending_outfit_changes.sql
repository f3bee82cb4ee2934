-- The number of pending changes, at most `enough`.
CREATE FUNCTION count_pending_outfit_changes(enough integer) RETURNS integer
LANGUAGE sql STABLE SET enable_seqscan = off SET jit = off AS $$
  SELECT count(*)::integer FROM (SELECT FROM pending_outfit_changes() LIMIT enough) AS pending
$$;
