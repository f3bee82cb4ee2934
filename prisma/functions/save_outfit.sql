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
