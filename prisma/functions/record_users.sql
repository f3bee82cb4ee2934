-- Records a statement that writes users: they are not counted, but are part of answers.
CREATE FUNCTION record_users() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET jit = off AS $$
BEGIN
  PERFORM adopt_restored_outfit_changes() FROM outfit_counts_state WHERE pg_visible_in_snapshot(pg_current_xact_id_if_assigned(), snapshot);
  IF TG_OP = 'INSERT' THEN
    INSERT INTO outfit_changes (xid, new_user_id) SELECT pg_current_xact_id(), id FROM added;
  ELSIF TG_OP = 'DELETE' THEN
    INSERT INTO outfit_changes (xid, old_user_id) SELECT pg_current_xact_id(), id FROM removed;
  ELSE
    INSERT INTO outfit_changes (xid, old_user_id, new_user_id)
    SELECT pg_current_xact_id(), o.id, n.id FROM removed o FULL JOIN added n USING (id) WHERE o IS DISTINCT FROM n;
  END IF;
  RETURN NULL;
END $$;
