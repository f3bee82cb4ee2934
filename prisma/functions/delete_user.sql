-- Deletes a user with all outfits, likes and stored answers. Returns whether there was one.
CREATE FUNCTION delete_user(who integer) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM delete_outfit(id) FROM (SELECT id FROM outfits WHERE user_id = who ORDER BY id) AS own;
  PERFORM delete_like(outfit_id, who) FROM (SELECT outfit_id FROM outfit_likes WHERE user_id = who ORDER BY outfit_id) AS liked;
  DELETE FROM idempotency_keys WHERE user_id = who;
  DELETE FROM users WHERE id = who;
  RETURN FOUND;
END $$;
