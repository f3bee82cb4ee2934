-- Finds a bucket of a list in ascending order: the one with the outfit at offset `skip`, or the last one that begins with a
-- lower value than `below`. Returns its key, and how many outfits of the list come before that. A list consists of the
-- public outfits, or of all, and of `own_*`: the keys of a viewer's private outfits, in order. Counts, pending changes and
-- own outfits are added, first for each group, then for each bucket of the group found.
CREATE FUNCTION seek_outfits(
  of_ordering text, with_private boolean, own_values bigint[], own_ids bigint[], skip bigint, below bigint,
  OUT preceding bigint, OUT value bigint, OUT id integer
)
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  of_groups boolean;
  pending_values bigint[];
  pending_ids bigint[];
  pending_sums bigint[];
  -- In the buckets before the group found, without pending changes and own outfits.
  counted bigint := 0;
  -- The key after the group found.
  end_value bigint;
  end_id bigint;
BEGIN
  SELECT l.* INTO value, id, end_value, end_id FROM outfit_key_limits l;
  -- Most reads find nothing pending: a probe of two indexes costs a third of the aggregate over no rows.
  IF EXISTS (SELECT FROM pending_outfit_changes()) THEN
    SELECT array_agg(m.value), array_agg(m.id), array_agg(m.sum) INTO pending_values, pending_ids, pending_sums
    FROM (
      SELECT m.value, m.id, sum(m.public + CASE WHEN with_private THEN m.private ELSE 0 END) OVER list
      FROM pending_outfit_deltas(of_ordering) m WINDOW list AS (ORDER BY m.value, m.id ROWS UNBOUNDED PRECEDING)
      ORDER BY m.value, m.id
    ) m;
  END IF;
  FOREACH of_groups IN ARRAY '{true,false}'::boolean[] LOOP
    -- Materialized: the functions below would copy a variable at each call.
    WITH sorted AS MATERIALIZED (SELECT own_values, own_ids, pending_values, pending_ids, pending_sums)
    SELECT b.* INTO counted, preceding, value, id, end_value, end_id
    FROM (
      SELECT b.counted, b.counted + coalesce(own.preceding, 0) + coalesce(s.pending_sums[pending.preceding], 0) AS preceding,
        b.from_value, b.from_id, b.to_value, b.to_id
      FROM sorted s
      CROSS JOIN (
        SELECT b.from_value, b.from_id,
          lead(b.from_value, 1, end_value) OVER list AS to_value, lead(b.from_id::bigint, 1, end_id) OVER list AS to_id,
          counted + sum(b.public + CASE WHEN with_private THEN b.private ELSE 0 END) OVER list
            - b.public - CASE WHEN with_private THEN b.private ELSE 0 END AS counted
        FROM outfit_buckets b
        WHERE b.ordering = of_ordering AND b.is_group = of_groups
          AND (b.from_value, b.from_id) >= (value, id) AND (b.from_value, b.from_id) < (end_value, end_id)
        WINDOW list AS (ORDER BY b.from_value, b.from_id)
      ) b
      CROSS JOIN outfit_keys_before(s.own_values, s.own_ids, b.from_value, b.from_id) own
      CROSS JOIN outfit_keys_before(s.pending_values, s.pending_ids, b.from_value, b.from_id) pending
      OFFSET 0 -- The sort would copy the arrays with each row.
    ) b
    WHERE b.preceding <= coalesce(skip, 0) OR b.from_value < below
    ORDER BY b.from_value DESC, b.from_id DESC LIMIT 1;
  END LOOP;
END $$;
