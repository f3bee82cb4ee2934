-- How many outfits of a list come before a value of an ordering: those before a bucket by the counts, the others by the
-- index. A list consists of the public outfits, or of all, and of a viewer's private ones.
CREATE FUNCTION rank_outfits(of_ordering text, with_private boolean, viewer integer, value bigint) RETURNS bigint
LANGUAGE plpgsql STABLE SET jit = off AS $$
DECLARE
  bucket record;
  found_in_index bigint;
BEGIN
  SELECT * INTO bucket FROM seek_outfits(of_ordering, with_private, NULL, NULL, NULL, value);
  EXECUTE format($sql$
    SELECT (SELECT count(*) FROM %2$I s WHERE NOT s.private AND (s.%1$I, s.id) >= ($1, $2) AND s.%1$I < $3)
      + (SELECT count(*) FROM %2$I s WHERE s.private AND $4 AND (s.%1$I, s.id) >= ($1, $2) AND s.%1$I < $3)
      + (SELECT count(*) FROM %2$I s WHERE s.user_id = $5 AND s.private AND s.%1$I < $3)
  $sql$, of_ordering, (SELECT o.table_name FROM outfit_orderings o WHERE o.ordering = of_ordering))
  INTO found_in_index USING bucket.value, bucket.id, value, with_private, viewer;
  RETURN bucket.preceding + found_in_index;
END $$;
