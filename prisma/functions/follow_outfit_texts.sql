-- Updates outfit_texts with the outfits, for statements of all clients, and for each row of an update and of logical
-- replication, which fires no triggers of statements. SECURITY DEFINER: other roles need no privilege on the texts.
CREATE FUNCTION follow_outfit_texts() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  IF TG_LEVEL = 'ROW' THEN
    IF OLD.id IS DISTINCT FROM NEW.id THEN
      DELETE FROM outfit_texts WHERE outfit_id = OLD.id;
    END IF;
    INSERT INTO outfit_texts
    SELECT NEW.id, outfit_text(NEW.title, NEW.description), outfit_hashtags(NEW.title || E'\n' || NEW.description) WHERE TG_OP <> 'DELETE'
    ON CONFLICT (outfit_id) DO UPDATE SET folded = excluded.folded, hashtags = excluded.hashtags;
  ELSIF TG_OP = 'INSERT' THEN
    INSERT INTO outfit_texts
    SELECT id, outfit_text(title, description), outfit_hashtags(title || E'\n' || description) FROM added ORDER BY id
    ON CONFLICT (outfit_id) DO UPDATE SET folded = excluded.folded, hashtags = excluded.hashtags;
  ELSE
    -- A statement may delete outfits and reuse their ids; this can run after the new texts are inserted.
    DELETE FROM outfit_texts t USING removed
    WHERE t.outfit_id = removed.id AND NOT EXISTS (SELECT FROM outfits o WHERE o.id = removed.id);
  END IF;
  RETURN NULL;
END $$;
