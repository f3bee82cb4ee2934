-- Adds the pending changes that are visible in `upto` to the buckets and groups. Returns whether a bucket has become too
-- large, or small.
CREATE FUNCTION add_changes_to_outfit_buckets(upto pg_snapshot) RETURNS boolean
LANGUAGE sql AS $$
  WITH deltas AS MATERIALIZED (
    SELECT o.ordering, m.value, m.id, sum(m.public) AS public, sum(m.private) AS private
    FROM outfit_orderings o CROSS JOIN LATERAL pending_outfit_deltas(o.ordering, pg_snapshot_xmax(upto)) m
    WHERE pg_visible_in_snapshot(m.xid, upto)
    GROUP BY 1, 2, 3 HAVING sum(m.public) <> 0 OR sum(m.private) <> 0
  ), moved AS MATERIALIZED (
    SELECT b.ordering, b.is_group, b.from_value, b.from_id, sum(d.public) AS public, sum(d.private) AS private
    FROM deltas d CROSS JOIN (VALUES (true), (false)) AS level (is_group)
    CROSS JOIN LATERAL (
      SELECT b.* FROM outfit_buckets b
      WHERE b.ordering = d.ordering AND b.is_group = level.is_group AND (b.from_value, b.from_id) <= (d.value, d.id)
      ORDER BY b.from_value DESC, b.from_id DESC LIMIT 1
    ) b
    GROUP BY 1, 2, 3, 4 HAVING sum(d.public) <> 0 OR sum(d.private) <> 0
  ), updated AS (
    UPDATE outfit_buckets b SET public = b.public + m.public, private = b.private + m.private
    FROM moved m
    WHERE b.ordering = m.ordering AND b.is_group = m.is_group AND b.from_value = m.from_value AND b.from_id = m.from_id
    RETURNING b.is_group, b.public + b.private AS size, m.public + m.private AS added
  )
  SELECT coalesce(bool_or(size > 2 * outfit_bucket_size() OR added < 0 AND size < outfit_bucket_size() / 4), false)
  FROM updated WHERE NOT is_group
$$;
