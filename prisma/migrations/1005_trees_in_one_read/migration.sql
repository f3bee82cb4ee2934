-- A tree is created, and a node split, by one read of its outfits, instead of one for each level: after a bulk insert,
-- pages are fast several seconds sooner. These functions replace those of 1003_counting, which older gateways call too.

-- The key range of a node: the lowest and the highest possible sort key, and `range`, a SQL condition on `table_name`
-- with these as $1 to $4. The level above the first one stands for a whole tree.
CREATE OR REPLACE FUNCTION outfit_node_keys(
  node outfit_split_queue, OUT ordering text, OUT table_name text, OUT range text,
  OUT low bigint, OUT low_id integer, OUT high bigint, OUT high_id integer
)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT l.ordering, l.table_name, format('%s (%2$I, id) >= ($1, $2) AND (%2$I, id) <= ($3, $4)', t.owned_by || ' AND', l.ordering),
    node.bucket << l.value_shift, ((node.block::bigint << l.id_shift) - 2147483648)::integer,
    (node.bucket << l.value_shift) | ((1::bigint << l.value_shift) - 1),
    ((node.block::bigint << l.id_shift) + (1::bigint << l.id_shift) - 2147483649)::integer
  FROM outfit_levels() l, (SELECT 'user_id = ' || nullif(node.owner, 2147483648) AS owned_by) t WHERE l.level = node.level
  UNION ALL
  SELECT l.ordering, l.table_name, coalesce(t.owned_by, 'true'), -9223372036854775808, -2147483648, 9223372036854775807, 2147483647
  FROM outfit_levels() l, (SELECT 'user_id = ' || nullif(node.owner, 2147483648) AS owned_by) t
  WHERE l.level = node.level + 1 AND l.is_first
$$;

-- pending_outfit_deltas() in a statement that reads whole tables: without statistics the planner would read all changes too.
CREATE FUNCTION pending_outfit_deltas_by_index(ordering text)
RETURNS TABLE (value bigint, id integer, owner integer, public integer, private integer, xid xid8)
LANGUAGE sql STABLE SET enable_seqscan = off SET enable_bitmapscan = off AS 'SELECT * FROM pending_outfit_deltas(ordering)';

-- Splits a node, or creates a tree (`outfit_node_keys`): counts the outfits in its key range, minus pending changes, on the
-- next levels. They are read once and grouped on the deepest level that has at most `bound` nodes between the two ends of
-- the range; the levels above are sums. When there is one node only (outfits with the same value, for example), and its
-- count is known, nothing is read. Returns the number of index entries read.
CREATE OR REPLACE FUNCTION split_outfit_node(node outfit_split_queue) RETURNS bigint
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_nestloop = off SET jit = off AS $$
DECLARE
  counted outfit_bucket_counts;
  keys record;
  ends record;
  target record;
  bound integer := 16384;
  outfits text;
BEGIN
  SELECT * INTO keys FROM outfit_node_keys(node);
  IF node.level IN (SELECT level FROM outfit_levels()) THEN
    UPDATE outfit_bucket_counts c SET split = true
    WHERE c.owner = node.owner AND c.level = node.level AND c.bucket = node.bucket AND c.block = node.block
      AND NOT c.split AND c.public + c.private > outfit_split_threshold()
    RETURNING * INTO counted;
    IF NOT FOUND THEN
      RETURN 0;
    END IF;
    bound := least(bound, (counted.public + counted.private) / 8);
  END IF;
  EXECUTE format($sql$
    SELECT min(value) AS low, max(value) AS high, min(id) AS low_id, max(id) AS high_id FROM (
      (SELECT %1$I::bigint AS value, id FROM %2$I WHERE NOT private AND %3$s ORDER BY private, %1$I, id LIMIT 1)
      UNION ALL (SELECT %1$I, id FROM %2$I WHERE NOT private AND %3$s ORDER BY private DESC, %1$I DESC, id DESC LIMIT 1)
      UNION ALL (SELECT %1$I, id FROM %2$I WHERE private AND %3$s ORDER BY private, %1$I, id LIMIT 1)
      UNION ALL (SELECT %1$I, id FROM %2$I WHERE private AND %3$s ORDER BY private DESC, %1$I DESC, id DESC LIMIT 1)
      UNION ALL
      SELECT m.value, m.id FROM pending_outfit_deltas(%1$L) m
      WHERE $5 IN (2147483648, m.owner) AND (m.value, m.id) >= ($1, $2) AND (m.value, m.id) <= ($3, $4)
    ) ends
  $sql$, keys.ordering, keys.table_name, keys.range)
  INTO ends USING keys.low, keys.low_id, keys.high, keys.high_id, node.owner;
  -- Only the levels of outfits with the same value divide by id.
  SELECT l.*, l.nodes = 1 AS is_one INTO target
  FROM (
    SELECT l.*, 1 + CASE WHEN l.id_shift = 32 THEN (ends.high >> l.value_shift)::numeric - (ends.low >> l.value_shift)
      WHEN ends.low = ends.high THEN ((ends.high_id + 2147483648) >> l.id_shift) - ((ends.low_id + 2147483648) >> l.id_shift) END AS nodes
    FROM outfit_levels() l WHERE l.ordering = keys.ordering AND l.level > node.level
  ) l
  WHERE l.level = node.level + 1 OR l.nodes <= bound
  ORDER BY l.level DESC LIMIT 1;
  IF counted IS NOT NULL AND target.is_one THEN
    outfits := format('SELECT %L::bigint AS value, %s AS id, %s AS public, %s AS private', ends.low, ends.low_id, counted.public, counted.private);
  ELSE
    PERFORM set_config('enable_seqscan', CASE WHEN keys.range = 'true' THEN 'on' ELSE 'off' END, true);
    outfits := format($sql$
      SELECT %1$I::bigint AS value, id, 1 AS public, 0 AS private FROM %2$I WHERE NOT private AND %3$s
      UNION ALL
      SELECT %1$I, id, 0, 1 FROM %2$I WHERE private AND %3$s
      UNION ALL
      SELECT m.value, m.id, -m.public, -m.private FROM pending_outfit_deltas_by_index(%1$L) m
      WHERE $5 IN (2147483648, m.owner) AND (m.value, m.id) >= ($1, $2) AND (m.value, m.id) <= ($3, $4)
    $sql$, keys.ordering, keys.table_name, keys.range);
  END IF;
  EXECUTE format($sql$
    WITH deepest AS MATERIALIZED (
      SELECT k.value >> $8 AS bucket, (k.id + 2147483648) >> $9 AS block, sum(k.public) AS public, sum(k.private) AS private
      FROM (%s) k GROUP BY 1, 2
    ), nodes AS MATERIALIZED (
      SELECT l.level, d.bucket >> (l.value_shift - $8) AS bucket, d.block >> (l.id_shift - $9) AS block, sum(d.public) AS public, sum(d.private) AS private,
        d.bucket >> (above.value_shift - $8) AS bucket_above, d.block >> (above.id_shift - $9) AS block_above
      FROM deepest d
      CROSS JOIN outfit_levels() l LEFT JOIN outfit_levels() above ON above.level = l.level - 1
      WHERE l.level BETWEEN $6 AND $7
      GROUP BY 1, 2, 3, 6, 7 HAVING sum(d.public) <> 0 OR sum(d.private) <> 0
    ), crowded AS MATERIALIZED (
      SELECT level, bucket, block FROM nodes WHERE public + private > outfit_split_threshold()
    ), queued AS (
      INSERT INTO outfit_split_queue SELECT $5, level, bucket, block FROM crowded WHERE level = $7 AND NOT $10
    )
    INSERT INTO outfit_bucket_counts
    SELECT $5, n.level, n.bucket, n.block, n.public, n.private, n.level < $7 AND n.public + n.private > outfit_split_threshold()
    FROM (
      SELECT * FROM nodes WHERE level = $6
      UNION ALL
      SELECT n.* FROM nodes n JOIN crowded c ON (c.level, c.bucket, c.block) = (n.level - 1, n.bucket_above, n.block_above)
    ) n
  $sql$, outfits)
  USING keys.low, keys.low_id, keys.high, keys.high_id, node.owner, node.level + 1, target.level, target.value_shift, target.id_shift, target.is_last;
  RETURN CASE WHEN target.is_one THEN 0 ELSE counted.public + counted.private END;
END $$;

-- Creates the trees of an owner.
CREATE OR REPLACE FUNCTION create_outfit_trees(tree bigint) RETURNS void
LANGUAGE sql AS $$
  SELECT split_outfit_node(ROW(tree, level - 1, 0, 0)::outfit_split_queue) FROM outfit_levels() WHERE is_first
$$;
