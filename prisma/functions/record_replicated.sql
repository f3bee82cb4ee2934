-- Records row by row where statement triggers do not fire: in logical replication, and in sessions with
-- session_replication_role = replica. An update is recorded as a row that went and one that came. By the
-- index: a plan that was made for an empty table is kept while it fills.
CREATE FUNCTION record_replicated() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off SET jit = off AS $$
BEGIN
  -- After ENABLE TRIGGER ALL, with which pg_restore may end, this trigger fires beside the statement triggers.
  IF current_setting('session_replication_role') <> 'replica' OR OLD IS NOT DISTINCT FROM NEW THEN
    RETURN NULL;
  END IF;
  PERFORM adopt_restored_outfit_changes() FROM outfit_counts_state WHERE pg_visible_in_snapshot(pg_current_xact_id_if_assigned(), snapshot);
  -- Columns that the table lacks are null.
  INSERT INTO outfit_changes (xid, outfit_id, old_user_id, old_private, old_likes, old_created, old_modified)
  SELECT pg_current_xact_id(), id, user_id, private, likes, created, modified
  FROM jsonb_to_record(to_jsonb(OLD)) AS o (id integer, user_id integer, private boolean, likes integer, created bigint, modified bigint)
  WHERE id IS NOT NULL;
  INSERT INTO outfit_changes (xid, outfit_id, new_user_id, new_private, new_likes, new_created, new_modified)
  SELECT pg_current_xact_id(), id, user_id, private, likes, created, modified
  FROM jsonb_to_record(to_jsonb(NEW)) AS n (id integer, user_id integer, private boolean, likes integer, created bigint, modified bigint)
  WHERE id IS NOT NULL;
  -- The first copy of a subscription copies each table by itself: lists by likes were read without this outfit.
  IF TG_OP = 'INSERT' AND TG_TABLE_NAME = 'outfits' THEN
    INSERT INTO outfit_changes (xid) SELECT pg_current_xact_id() FROM outfit_like_counts WHERE id = NEW.id;
  END IF;
  RETURN NULL;
END $$;
