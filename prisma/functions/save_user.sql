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
