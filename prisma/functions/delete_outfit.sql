-- Deletes an outfit with its likes, if it is that of `owner`, where one is named. Returns whether it did.
CREATE FUNCTION delete_outfit(which integer, owner integer DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  IF to_regproc('attached_delete_outfit') IS NOT NULL THEN
    -- The row there is the lock, as in save_outfit.
    EXECUTE 'SELECT attached_lock_outfit($1)' USING which;
    PERFORM FROM outfits o WHERE o.id = which AND (owner IS NULL OR o.user_id = owner);
    IF NOT FOUND THEN
      RETURN false;
    END IF;
    EXECUTE 'SELECT attached_delete_outfit($1)' USING which;
    RETURN NOT EXISTS (SELECT FROM outfits o WHERE o.id = which);
  END IF;
  PERFORM FROM outfits o WHERE o.id = which AND (owner IS NULL OR o.user_id = owner) FOR UPDATE;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  DELETE FROM outfit_like_counts c WHERE c.id = which;
  DELETE FROM outfit_likes l WHERE l.outfit_id = which;
  DELETE FROM outfits o WHERE o.id = which;
  RETURN true;
END $$;
