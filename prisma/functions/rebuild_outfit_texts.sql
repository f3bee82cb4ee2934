-- Rewrites all texts, for example after a restore without triggers. Blocks writers.
CREATE FUNCTION rebuild_outfit_texts() RETURNS void
LANGUAGE sql AS $$
  LOCK TABLE outfits IN SHARE MODE;
  DELETE FROM outfit_texts;
  INSERT INTO outfit_texts
  SELECT id, outfit_text(title, description), outfit_hashtags(title || E'\n' || description) FROM outfits;
  INSERT INTO outfit_changes (xid) VALUES (pg_current_xact_id());
$$;
