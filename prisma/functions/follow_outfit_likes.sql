-- Inserts, updates and deletes the row of likes with the outfit, for statements of all clients. SECURITY DEFINER: a role
-- that writes only outfits needs no privilege on the likes.
CREATE FUNCTION follow_outfit_likes() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  inserted bigint;
BEGIN
  IF TG_OP = 'INSERT' THEN
    -- An import has already inserted these rows, with their likes.
    INSERT INTO outfit_like_counts SELECT id, private, user_id, 0 FROM added ORDER BY id ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS inserted = ROW_COUNT;
    IF inserted < (SELECT count(*) FROM added) THEN
      UPDATE outfit_like_counts l SET private = a.private, user_id = a.user_id
      FROM added a WHERE l.id = a.id AND (l.private, l.user_id) <> (a.private, a.user_id);
    END IF;
  ELSIF TG_OP = 'UPDATE' THEN
    -- A statement may delete outfits and reuse their ids; this can run before their rows of likes are deleted.
    IF NEW.id <> OLD.id THEN
      DELETE FROM outfit_like_counts WHERE id = NEW.id;
    END IF;
    UPDATE outfit_like_counts SET id = NEW.id, private = NEW.private, user_id = NEW.user_id WHERE id = OLD.id;
  ELSE
    -- A statement may delete outfits and reuse their ids. The lock: a snapshot of REPEATABLE READ shows outfits that were
    -- deleted since.
    DELETE FROM outfit_like_counts l USING removed
    WHERE l.id = removed.id AND NOT EXISTS (SELECT FROM outfits o WHERE o.id = removed.id FOR KEY SHARE);
  END IF;
  RETURN NULL;
END $$;
