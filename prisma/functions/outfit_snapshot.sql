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
