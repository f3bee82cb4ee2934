-- Likes an outfit or takes that back, and counts it, once per user however often it is asked for.
-- Gives the outfit as it is then: the statement that calls this could not see what it has done. Takes
-- the place of set_outfit_like, which stays for gateways of before that run beside newer ones.
-- The outfit is locked first, as deleting it does, so that the two never wait for each other in a
-- circle. What was imported with the outfit stays in the count: only changes are added to it.
CREATE FUNCTION like_outfit(which integer, who integer, liked boolean) RETURNS SETOF outfits
LANGUAGE plpgsql ROWS 1 AS $$
DECLARE
  outfit outfits;
BEGIN
  SELECT * INTO outfit FROM outfits WHERE id = which FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  IF NOT liked THEN
    DELETE FROM outfit_likes WHERE outfit_id = which AND user_id = who;
    IF FOUND AND outfit.likes > 0 THEN
      UPDATE outfits SET likes = likes - 1 WHERE id = which RETURNING * INTO outfit;
    END IF;
  -- One that cannot be counted is none, or else taking it back would count.
  ELSIF outfit.likes < 2147483647 THEN
    INSERT INTO outfit_likes (outfit_id, user_id) VALUES (which, who) ON CONFLICT DO NOTHING;
    IF FOUND THEN
      UPDATE outfits SET likes = likes + 1 WHERE id = which RETURNING * INTO outfit;
    END IF;
  END IF;
  -- The foreign key tells only where a row was written.
  IF NOT EXISTS (SELECT FROM users WHERE id = who) THEN
    RAISE foreign_key_violation USING MESSAGE = format('There is no user with the id %s.', who);
  END IF;
  RETURN NEXT outfit;
END $$;
