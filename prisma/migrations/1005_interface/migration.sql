-- The functions that SQL of others may call (docs/attach.md).

-- FUNCTION save_user
-- Inserts a user, or updates the given columns of one. Promised to SQL of others, with delete_user, save_outfit, delete_outfit,
-- save_like and delete_like: docs/attach.md. They need no trigger that does not fire in logical replication.
CREATE FUNCTION save_user(given jsonb) RETURNS users
LANGUAGE plpgsql AS $$
DECLARE
  which integer := given ->> 'id';
  saved users;
BEGIN
  SELECT * INTO saved FROM users u WHERE u.id = which FOR NO KEY UPDATE;
  IF FOUND THEN
    saved := jsonb_populate_record(saved, given);
    UPDATE users u SET (avatar_key, username, first_name, last_name) = ROW(saved.avatar_key, saved.username, saved.first_name, saved.last_name)
    WHERE u.id = saved.id AND u IS DISTINCT FROM saved;
  ELSE
    -- Ids that were given to others are passed over.
    WHILE which IS NULL OR given ->> 'id' IS NULL AND EXISTS (SELECT FROM users u WHERE u.id = which) LOOP
      which := nextval('users_id_seq');
    END LOOP;
    saved := jsonb_populate_record(NULL::users, jsonb_build_object('avatar_key', '', 'first_name', '', 'last_name', '') || given || jsonb_build_object('id', which));
    INSERT INTO users SELECT saved.*;
  END IF;
  RETURN saved;
END $$;
-- END save_user
-- FUNCTION save_outfit
-- Inserts an outfit, or updates the given columns of one. Returns no row if the outfit is not that of `owner`, where one is
-- named, or if tables are attached both ways and do not have it: then it is written there, and
-- carried over; the row there is the lock: who holds one here could wait for another row there, whose holder waits here.
CREATE FUNCTION save_outfit(given jsonb, owner integer DEFAULT NULL) RETURNS SETOF outfits
LANGUAGE plpgsql ROWS 1 AS $$
DECLARE
  which integer := given ->> 'id';
  old outfits;
  new outfits;
  now bigint := extract(epoch FROM clock_timestamp()) * 1000000;
  is_attached boolean := to_regproc('attached_write_outfit') IS NOT NULL;
BEGIN
  IF is_attached AND which IS NOT NULL THEN
    EXECUTE 'SELECT attached_lock_outfit($1)' USING which;
    SELECT * INTO old FROM outfits o WHERE o.id = which;
  ELSE
    SELECT * INTO old FROM outfits o WHERE o.id = which FOR NO KEY UPDATE;
  END IF;
  IF FOUND THEN
    IF old.user_id <> owner THEN
      RETURN;
    END IF;
    new := jsonb_populate_record(old, given);
  ELSIF owner IS NOT NULL OR is_attached AND which IS NOT NULL THEN
    RETURN;
  ELSE
    -- Ids that were given to others are passed over.
    WHILE NOT is_attached AND (which IS NULL OR given ->> 'id' IS NULL AND EXISTS (SELECT FROM outfits o WHERE o.id = which)) LOOP
      which := nextval('outfits_id_seq');
    END LOOP;
    new := jsonb_populate_record(NULL::outfits, jsonb_build_object('title', '', 'description', '', 'image_original_key', given -> 'image_key',
      'complete', true, 'quality', 3, 'private', false, 'background_color', '', 'play_video', given ->> 'video_key' IS NOT NULL, 'created', now, 'modified', now,
      'creation_device', 'web', 'modification_device', '') || given || jsonb_build_object('id', which));
  END IF;
  IF is_attached THEN
    EXECUTE 'SELECT attached_write_outfit($1, $2)' INTO which USING new, old;
    RETURN QUERY SELECT * FROM outfits o WHERE o.id = which;
    RETURN;
  END IF;
  IF old IS NULL THEN
    INSERT INTO outfits SELECT new.*;
    INSERT INTO outfit_like_counts VALUES (new.id, new.private, new.user_id, 0) ON CONFLICT DO NOTHING;
  ELSIF old IS DISTINCT FROM new THEN
    UPDATE outfits o SET (title, description, image_key, image_original_key, complete, user_id, quality, private, background_color, video_key, play_video, created, modified, creation_device, modification_device)
      = ROW(new.title, new.description, new.image_key, new.image_original_key, new.complete, new.user_id, new.quality, new.private, new.background_color, new.video_key, new.play_video, new.created, new.modified, new.creation_device, new.modification_device)
    WHERE o.id = new.id;
    UPDATE outfit_like_counts c SET private = new.private, user_id = new.user_id WHERE c.id = new.id AND (c.private, c.user_id) <> (new.private, new.user_id);
  END IF;
  RETURN NEXT new;
END $$;
-- END save_outfit
-- FUNCTION delete_outfit
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
-- END delete_outfit
-- FUNCTION save_like
-- Returns whether the outfit exists; it is liked by the user then.
CREATE FUNCTION save_like(which integer, who integer) RETURNS boolean
LANGUAGE sql AS 'SELECT EXISTS (SELECT FROM like_outfit(which, who, true, true))';
-- END save_like
-- FUNCTION delete_like
-- Returns whether the outfit exists; it is not liked by the user then.
CREATE FUNCTION delete_like(which integer, who integer) RETURNS boolean
LANGUAGE sql AS 'SELECT EXISTS (SELECT FROM like_outfit(which, who, false, true))';
-- END delete_like
-- FUNCTION delete_user
-- Deletes a user with all outfits, likes and stored answers. Returns whether there was one. Locks the outfits first, in one
-- order, as a like and the deletion of an outfit do, or of a user who likes it. Refused for attached tables.
CREATE FUNCTION delete_user(who integer) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  own integer[];
  locked integer[];
BEGIN
  FOR pass IN 1 .. 100 LOOP
    SELECT array_agg(id) FILTER (WHERE user_id = who), array_agg(id) INTO own, locked
    FROM (
      SELECT id, user_id FROM outfits
      WHERE id IN (SELECT id FROM outfits WHERE user_id = who UNION SELECT outfit_id FROM outfit_likes WHERE user_id = who)
      ORDER BY id FOR UPDATE
    ) o;
    DELETE FROM outfit_like_counts WHERE id = ANY (own);
    DELETE FROM outfit_likes WHERE outfit_id = ANY (own);
    DELETE FROM outfits WHERE id = ANY (own);
    WITH gone AS (
      DELETE FROM outfit_likes WHERE user_id = who AND outfit_id = ANY (locked) RETURNING outfit_id
    )
    UPDATE outfit_like_counts c SET likes = greatest(c.likes - 1, 0) FROM gone WHERE c.id = gone.outfit_id;
    BEGIN
      -- This lock waits for those who write for the user meanwhile, and keeps out others.
      PERFORM FROM users WHERE id = who FOR UPDATE;
      EXIT WHEN NOT EXISTS (SELECT FROM outfits WHERE user_id = who) AND NOT EXISTS (SELECT FROM outfit_likes WHERE user_id = who);
      RAISE SQLSTATE 'OG002';
    EXCEPTION WHEN SQLSTATE 'OG002' THEN
      -- Takes the lock back, and begins again: a like of what was written may have locked that, and wait for the user.
      IF pass = 100 THEN
        RAISE SQLSTATE '40001' USING MESSAGE = format('user %s is written again and again: try again', who);
      END IF;
    END;
  END LOOP;
  DELETE FROM idempotency_keys WHERE user_id = who;
  DELETE FROM users WHERE id = who;
  RETURN FOUND;
END $$;
-- END delete_user

REVOKE EXECUTE ON FUNCTION save_user, delete_user, save_outfit, delete_outfit, save_like, delete_like FROM PUBLIC;
