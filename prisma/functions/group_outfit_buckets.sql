-- Makes the groups of an ordering anew from its buckets: about as many as each of them has buckets.
CREATE FUNCTION group_outfit_buckets(of_ordering text) RETURNS void
LANGUAGE sql AS $$
  DELETE FROM outfit_buckets b WHERE b.ordering = of_ordering AND b.is_group;
  INSERT INTO outfit_buckets
  SELECT of_ordering, true, min(b.from_value), (array_agg(b.from_id ORDER BY b.from_value, b.from_id))[1], sum(b.public), sum(b.private)
  FROM (
    SELECT b.*, ntile((SELECT ceil(sqrt(count(*)))::integer FROM outfit_buckets WHERE ordering = of_ordering)) OVER (ORDER BY b.from_value, b.from_id) AS piece
    FROM outfit_buckets b WHERE b.ordering = of_ordering
  ) b
  GROUP BY b.piece;
$$;
