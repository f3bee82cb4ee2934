-- TRUNCATE waits for all writers of the table, and its snapshot must include what they wrote: READ COMMITTED only.
-- TRUNCATE of the likes alone is refused, because each outfit has a row of likes.
CREATE FUNCTION record_truncated_outfits() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE feature_not_supported USING
      MESSAGE = format('%s cannot be truncated at this isolation level, whose snapshot may lack what others have written', TG_TABLE_NAME),
      HINT = 'Use READ COMMITTED, or DELETE FROM outfits.';
  END IF;
  IF EXISTS (SELECT FROM outfits) THEN
    RAISE feature_not_supported USING
      MESSAGE = 'outfit_like_counts cannot be truncated without outfits', HINT = 'UPDATE outfit_like_counts SET likes = 0.';
  END IF;
  PERFORM FROM outfit_counts_state FOR UPDATE;
  -- Not TRUNCATE: deadlock with readers that have locked these tables and wait for the outfits.
  DELETE FROM outfit_like_counts;
  DELETE FROM outfit_texts;
  PERFORM empty_outfit_buckets();
  WITH gone AS (DELETE FROM outfit_changes)
  UPDATE outfit_counts_state SET snapshot = outfit_snapshot(), prune_snapshot = outfit_snapshot(), prune_snapshot_at = now(),
    oldest_kept_xid = pg_snapshot_xmax(outfit_snapshot());
  INSERT INTO outfit_changes (xid) VALUES (pg_current_xact_id());
  RETURN NULL;
END $$;
