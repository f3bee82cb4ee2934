-- Deletes a user with all outfits, likes and stored answers. Returns whether there was one.
CREATE FUNCTION delete_user(who integer) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  -- Twice: the lock waits for those who write for the user meanwhile, and keeps out others. Not first: a like locks the user last.
  FOR pass IN 1 .. 2 LOOP
    PERFORM delete_outfit(id) FROM (SELECT id FROM outfits WHERE user_id = who ORDER BY id) AS own;
    PERFORM delete_like(outfit_id, who) FROM (SELECT outfit_id FROM outfit_likes WHERE user_id = who ORDER BY outfit_id) AS liked;
    PERFORM FROM users WHERE id = who FOR UPDATE;
  END LOOP;
  DELETE FROM idempotency_keys WHERE user_id = who;
  DELETE FROM users WHERE id = who;
  RETURN FOUND;
END $$;
