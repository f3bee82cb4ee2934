-- Pending changes as differences of counts in an ordering: -1 at the old place and +1 at the new one. Changes that
-- alter neither place nor `private` are left out. Those of transactions below `below`.
CREATE FUNCTION pending_outfit_deltas(ordering text, below xid8 DEFAULT '18446744073709551615')
RETURNS TABLE (value bigint, id integer, public integer, private integer, xid xid8)
LANGUAGE sql STABLE ROWS 100 AS $$
  WITH pending AS MATERIALIZED (
    SELECT * FROM (
      SELECT xid, outfit_id AS id, old_private, new_private,
        CASE ordering WHEN 'created' THEN old_created WHEN 'likes' THEN old_likes WHEN 'modified' THEN old_modified
          WHEN 'id' THEN CASE WHEN old_created IS NOT NULL THEN outfit_id END END AS old_value,
        CASE ordering WHEN 'created' THEN new_created WHEN 'likes' THEN new_likes WHEN 'modified' THEN new_modified
          WHEN 'id' THEN CASE WHEN new_created IS NOT NULL THEN outfit_id END END AS new_value
      FROM pending_outfit_changes(below)
    ) c
    -- Here, because most changes are likes, which move nothing in other orderings.
    WHERE (old_value, old_private) IS DISTINCT FROM (new_value, new_private) AND (old_value IS NOT NULL OR new_value IS NOT NULL)
  )
  SELECT old_value, id, -(NOT old_private)::integer, -old_private::integer, xid FROM pending WHERE old_value IS NOT NULL
  UNION ALL
  SELECT new_value, id, (NOT new_private)::integer, new_private::integer, xid FROM pending WHERE new_value IS NOT NULL
$$;
