-- Records row by row where statement triggers do not fire: in logical replication, and in sessions with
-- session_replication_role = replica. An update is recorded as a row that went and one that came.
CREATE FUNCTION record_replicated() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  -- After ENABLE TRIGGER ALL, with which pg_restore may end, this trigger fires beside the statement triggers.
  IF current_setting('session_replication_role') <> 'replica' OR OLD IS NOT DISTINCT FROM NEW THEN
    RETURN NULL;
  END IF;
  PERFORM adopt_restored_outfit_changes() FROM outfit_counts_state WHERE pg_visible_in_snapshot(pg_current_xact_id_if_assigned(), snapshot);
  IF TG_TABLE_NAME = 'users' THEN
    INSERT INTO outfit_changes (xid, old_user_id, new_user_id) VALUES (pg_current_xact_id(), OLD.id, NEW.id);
    RETURN NULL;
  END IF;
  IF TG_TABLE_NAME = 'outfits' AND TG_OP <> 'INSERT' THEN
    INSERT INTO outfit_changes (xid, outfit_id, old_user_id, old_private, old_created, old_modified)
    VALUES (pg_current_xact_id(), OLD.id, OLD.user_id, OLD.private, OLD.created, OLD.modified);
  ELSIF TG_OP <> 'INSERT' THEN
    INSERT INTO outfit_changes (xid, outfit_id, old_user_id, old_private, old_likes)
    VALUES (pg_current_xact_id(), OLD.id, OLD.user_id, OLD.private, OLD.likes);
  END IF;
  IF TG_TABLE_NAME = 'outfits' AND TG_OP <> 'DELETE' THEN
    INSERT INTO outfit_changes (xid, outfit_id, new_user_id, new_private, new_created, new_modified)
    VALUES (pg_current_xact_id(), NEW.id, NEW.user_id, NEW.private, NEW.created, NEW.modified);
  ELSIF TG_OP <> 'DELETE' THEN
    INSERT INTO outfit_changes (xid, outfit_id, new_user_id, new_private, new_likes)
    VALUES (pg_current_xact_id(), NEW.id, NEW.user_id, NEW.private, NEW.likes);
  END IF;
  RETURN NULL;
END $$;
