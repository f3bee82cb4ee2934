-- A far page takes two thirds of the time, since most of what it took to find its place went into starting statements
-- that are made for everything. src/outfits/counting.md explains the design.

-- Finds the outfit with `skip` others before it in a list, as near as the counts tell: the least and the
-- greatest sort key of a node that holds it, how many outfits of the node are before it, and how many it has
-- (null: the node is the whole list, and nobody has counted). `low` is null when there is no such outfit. Looks no
-- further once it is `near` an end: to walk so far along the index costs less than another level.
CREATE OR REPLACE FUNCTION seek_outfit(
  ordering text, publics bigint, privates bigint, INOUT skip bigint, near bigint DEFAULT 300,
  OUT low bigint, OUT low_id integer, OUT high bigint, OUT high_id integer, OUT rows bigint
)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  current_level integer := CASE ordering WHEN 'created' THEN 100 WHEN 'id' THEN 200 WHEN 'likes' THEN 300 ELSE 400 END;
  leaf_level integer := CASE ordering WHEN 'created' THEN 103 WHEN 'id' THEN 202 WHEN 'likes' THEN 304 ELSE 403 END;
  shift integer;
  id_shift integer;
  -- The children of the chosen node.
  low_bucket bigint := -9223372036854775808;
  high_bucket bigint := 9223372036854775807;
  low_block integer := -2147483648;
  high_block integer := 2147483647;
  found_bucket bigint;
  found_block integer;
  found_rows bigint;
  -- What is pending in this ordering, and private outfits that are not counted in nodes: whether there is any, and
  -- what is left of it in the nodes that are looked at.
  moved boolean;
  move_values bigint[];
  move_ids integer[];
  move_rows bigint[];
  -- Whose private outfits are read, because there are few.
  few integer;
BEGIN
  low := -9223372036854775808;
  low_id := -2147483648;
  high := 9223372036854775807;
  high_id := 2147483647;
  IF skip <= near THEN
    RETURN;
  END IF;
  IF publics <> 2147483648 AND NOT has_outfit_nodes(publics) THEN
    rows := count_outfits(publics, privates);
    IF skip >= rows THEN
      low := NULL;
    END IF;
    RETURN;
  END IF;
  IF privates <> 2147483648 AND NOT has_outfit_nodes(privates) THEN
    few := privates;
    privates := NULL;
  END IF;
  -- Down to the leaves, only the leaf matters: likes up and down make up for each other.
  shift := outfit_value_shift(leaf_level);
  SELECT array_agg(m.value) FILTER (WHERE m.rows <> 0), array_agg(0) FILTER (WHERE m.rows <> 0),
    array_agg(m.rows) FILTER (WHERE m.rows <> 0), count(*) > 0
  INTO move_values, move_ids, move_rows, moved
  FROM (
    SELECT m.value >> shift << shift AS value, sum(m.rows) AS rows
    FROM listed_outfit_moves(leaf_level, publics, privates, few) m
    GROUP BY 1
  ) m;
  LOOP
    shift := outfit_value_shift(current_level);
    id_shift := outfit_id_shift(current_level);
    rows := NULL;
    IF move_values IS NULL AND (privates IS NULL OR privates = publics) THEN
      -- The same as below, with the counts of one owner alone.
      FOR found_bucket, found_block, found_rows IN
        SELECT c.bucket, c.block, c.public + CASE WHEN privates IS NULL THEN 0 ELSE c.private END
        FROM outfit_bucket_counts c
        WHERE c.owner = publics AND c.level = current_level
          AND c.bucket BETWEEN low_bucket AND high_bucket AND c.block BETWEEN low_block AND high_block
        ORDER BY c.bucket, c.block
      LOOP
        IF skip < found_rows THEN
          rows := found_rows;
          EXIT;
        END IF;
        skip := skip - found_rows;
      END LOOP;
    ELSE
      FOR found_bucket, found_block, found_rows IN
        SELECT a.bucket, a.block, sum(a.rows)
        FROM (
          SELECT c.bucket, c.block, c.public + CASE WHEN privates = publics THEN c.private ELSE 0 END AS rows
          FROM outfit_bucket_counts c
          WHERE c.owner = publics AND c.level = current_level
            AND c.bucket BETWEEN low_bucket AND high_bucket AND c.block BETWEEN low_block AND high_block
          UNION ALL
          SELECT c.bucket, c.block, c.private
          FROM outfit_bucket_counts c
          WHERE privates IS DISTINCT FROM publics AND c.owner = privates AND c.level = current_level
            AND c.bucket BETWEEN low_bucket AND high_bucket AND c.block BETWEEN low_block AND high_block
          UNION ALL
          SELECT m.value >> shift, coalesce(m.id >> id_shift, 0), m.rows
          FROM unnest(move_values, move_ids, move_rows) AS m (value, id, rows)
          WHERE (m.value, m.id) >= (low, low_id) AND (m.value, m.id) <= (high, high_id)
        ) a
        GROUP BY 1, 2 ORDER BY 1, 2
      LOOP
        IF skip < found_rows THEN
          rows := found_rows;
          EXIT;
        END IF;
        skip := skip - found_rows;
      END LOOP;
    END IF;
    IF rows IS NULL THEN
      low := NULL;
      RETURN;
    END IF;
    low := found_bucket << shift;
    high := low | ((1::bigint << shift) - 1);
    IF id_shift IS NOT NULL THEN
      low_id := found_block << id_shift;
      high_id := low_id | ((1 << id_shift) - 1);
    END IF;
    IF skip <= near OR rows - skip <= near THEN
      RETURN;
    END IF;
    IF current_level >= leaf_level AND (
      SELECT c.split FROM outfit_bucket_counts c
      WHERE c.owner = 2147483648 AND c.level = current_level AND c.bucket = found_bucket AND c.block = found_block
    ) IS NOT TRUE THEN
      RETURN;
    END IF;
    IF current_level = leaf_level AND moved THEN
      SELECT array_agg(m.value), array_agg(m.id), array_agg(m.rows) INTO move_values, move_ids, move_rows
      FROM (
        SELECT m.value, m.id, sum(m.rows) AS rows
        FROM listed_outfit_moves(leaf_level, publics, privates, few) m
        WHERE m.value BETWEEN low AND high
        GROUP BY 1, 2
      ) m WHERE m.rows <> 0;
    END IF;
    current_level := current_level + 1;
    shift := outfit_value_shift(current_level);
    id_shift := outfit_id_shift(current_level);
    low_bucket := low >> shift;
    high_bucket := high >> shift;
    low_block := coalesce(low_id >> id_shift, 0);
    high_block := coalesce(high_id >> id_shift, 0);
  END LOOP;
END $$;

-- outfits_by_created, outfits_by_id, outfits_by_likes, outfits_by_modified: the ids of `take`
-- outfits of a list in ascending order after skipping `skip`, with their places. One function per ordering,
-- so that its plan can be kept: planning would take longer than the rest. Sequential and bitmap
-- scans are off in it, because the planner cannot know how few rows the limit leaves.
DO $do$
DECLARE
  field text;
  key text;
  low text;
  high text;
  value text;
  -- The index ranges that a list is merged from: four, of which those that it has are read. OFFSET 0 keeps
  -- them apart, so that they are merged and not sorted.
  ranges text;
BEGIN
  SELECT string_agg(format($sql$
    (SELECT %%1$s FROM outfits o
     WHERE %s AND (%%1$s) %%2$s ORDER BY %%3$s OFFSET 0)$sql$, range), ' UNION ALL ')
  INTO ranges
  FROM unnest(ARRAY[
    'publics = 2147483648 AND NOT o.private', 'privates = 2147483648 AND o.private',
    'publics <> 2147483648 AND o.user_id = publics::integer AND NOT o.private',
    'privates <> 2147483648 AND o.user_id = privates::integer AND o.private'
  ]) AS range;
  FOREACH field IN ARRAY '{created,id,likes,modified}'::text[] LOOP
    key := CASE field WHEN 'id' THEN 'o.id' ELSE format('o.%s, o.id', field) END;
    low := CASE field WHEN 'id' THEN 'node.low' ELSE 'node.low, node.low_id' END;
    high := CASE field WHEN 'id' THEN 'node.high' ELSE 'node.high, node.high_id' END;
    value := CASE field WHEN 'id' THEN 'id, id' ELSE format('%s, id', field) END;
    EXECUTE format($sql$
      CREATE OR REPLACE FUNCTION outfits_by_%1$s(publics bigint, privates bigint, skip bigint, take integer)
      RETURNS TABLE ("position" bigint, id integer)
      LANGUAGE plpgsql STABLE ROWS 20
      SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $body$
      #variable_conflict use_column
      DECLARE
        node record;
      BEGIN
        SELECT * INTO node FROM seek_outfit('%1$s', publics, privates, skip);
        IF node.low IS NULL THEN
          RETURN;
        END IF;
        IF node.skip - (node.rows - node.skip) > 300 THEN
          -- Much nearer to the end of the node: its first outfit is found from there.
          SELECT %2$s INTO node.low, node.low_id FROM (%3$s
            ORDER BY %4$s OFFSET node.rows - node.skip - 1 LIMIT 1
          ) first;
          node.skip := 0;
        END IF;
        RETURN QUERY SELECT row_number() OVER (), page.id FROM (%5$s
          ORDER BY %6$s OFFSET node.skip LIMIT take
        ) page;
      END $body$
    $sql$, field, value,
      format(ranges, key, format('<= (%s)', high), regexp_replace(key, '(,|$)', ' DESC\1', 'g')),
      regexp_replace(replace(key, 'o.', ''), '(,|$)', ' DESC\1', 'g'),
      format(ranges, key, format('>= (%s)', low), key), replace(key, 'o.', ''));
  END LOOP;
END $do$;
