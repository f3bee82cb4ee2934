-- The same for outfit_like_counts.
CREATE FUNCTION record_outfit_like_counts() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET jit = off AS $$
BEGIN
  PERFORM adopt_restored_outfit_changes() FROM outfit_counts_state WHERE pg_visible_in_snapshot(pg_current_xact_id_if_assigned(), snapshot);
  IF TG_OP = 'INSERT' THEN
    INSERT INTO outfit_changes (xid, outfit_id, new_user_id, new_private, new_likes)
    SELECT pg_current_xact_id(), id, user_id, private, likes FROM added;
  ELSIF TG_OP = 'DELETE' THEN
    INSERT INTO outfit_changes (xid, outfit_id, old_user_id, old_private, old_likes)
    SELECT pg_current_xact_id(), id, user_id, private, likes FROM removed;
  ELSE
    INSERT INTO outfit_changes (xid, outfit_id, old_user_id, old_private, old_likes, new_user_id, new_private, new_likes)
    SELECT pg_current_xact_id(), id, o.user_id, o.private, o.likes, n.user_id, n.private, n.likes
    FROM removed o FULL JOIN added n USING (id) WHERE o IS DISTINCT FROM n;
  END IF;
  RETURN NULL;
END $$;
