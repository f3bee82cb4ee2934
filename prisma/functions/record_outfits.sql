-- Records a statement that writes outfits: it only inserts, so writers never wait for each other. The full join is hashed
-- or merged, so a generic plan made for one row is good for a million. SECURITY DEFINER: roles that write outfits need no
-- privilege on the changes.
CREATE FUNCTION record_outfits() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET jit = off AS $$
BEGIN
  PERFORM adopt_restored_outfit_changes() FROM outfit_counts_state WHERE pg_visible_in_snapshot(pg_current_xact_id_if_assigned(), snapshot);
  IF TG_OP = 'INSERT' THEN
    INSERT INTO outfit_changes (xid, outfit_id, new_user_id, new_private, new_created, new_modified)
    SELECT pg_current_xact_id(), id, user_id, private, created, modified FROM added;
  ELSIF TG_OP = 'DELETE' THEN
    INSERT INTO outfit_changes (xid, outfit_id, old_user_id, old_private, old_created, old_modified)
    SELECT pg_current_xact_id(), id, user_id, private, created, modified FROM removed;
  ELSE
    INSERT INTO outfit_changes (xid, outfit_id, old_user_id, old_private, old_created, old_modified, new_user_id, new_private, new_created, new_modified)
    SELECT pg_current_xact_id(), id, o.user_id, o.private, o.created, o.modified, n.user_id, n.private, n.created, n.modified
    FROM removed o FULL JOIN added n USING (id) WHERE o IS DISTINCT FROM n;
  END IF;
  RETURN NULL;
END $$;
