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
