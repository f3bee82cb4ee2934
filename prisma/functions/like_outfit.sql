-- Likes or unlikes an outfit, and adjusts the number of likes. Idempotent for each user; what changes nothing writes nothing.
-- Returns the outfit with its new number and its user, which the snapshot of the calling statement does not show; no row when
-- there is no such outfit, or when it is private, of another user, and not `sees_private`. Lock order as in a DELETE of the
-- outfit, to avoid deadlocks: the outfit first (FOR KEY SHARE, as the foreign key does anyway), then its number, then the
-- like. Whoever changes `private` holds the number until the commit: so the last SELECT, of one snapshot, returns what its
-- condition has judged. The error OG001: there is no such user.
CREATE FUNCTION like_outfit(which integer, who integer, liked boolean, sees_private boolean, OUT outfit outfits, OUT likes integer, OUT owner users)
RETURNS SETOF record LANGUAGE plpgsql ROWS 1 AS $$
DECLARE
  step integer := CASE WHEN liked THEN 1 ELSE -1 END;
  most_likes CONSTANT integer := 2147483647;
  -- Null: the number was not changed.
  is_visible boolean;
  is_written boolean := false;
BEGIN
  IF NOT EXISTS (SELECT FROM outfits o WHERE o.id = which AND (NOT o.private OR o.user_id = who OR sees_private)) THEN
    RETURN;
  END IF;
  IF to_regproc('attached_write_like') IS NOT NULL THEN
    -- Attached both ways, it is written there, and carried over.
    EXECUTE 'SELECT attached_write_like($1, $2, $3)' USING which, who, liked;
  ELSIF liked <> EXISTS (SELECT FROM outfit_likes g WHERE g.outfit_id = which AND g.user_id = who) THEN
    PERFORM FROM outfits o WHERE o.id = which FOR KEY SHARE;
    -- A like above the maximum is not stored: an unlike would subtract it.
    UPDATE outfit_like_counts l SET likes = l.likes + step
    WHERE FOUND AND l.id = which AND l.likes + step::bigint BETWEEN 0 AND most_likes
    RETURNING NOT l.private OR l.user_id = who OR sees_private INTO is_visible;
    IF liked AND is_visible AND NOT EXISTS (SELECT FROM outfit_likes g WHERE g.outfit_id = which AND g.user_id = who) THEN
      INSERT INTO outfit_likes (outfit_id, user_id, created) VALUES (which, who, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint);
      is_written := true;
    ELSIF NOT liked AND is_visible IS NOT FALSE THEN
      DELETE FROM outfit_likes g WHERE g.outfit_id = which AND g.user_id = who;
      is_written := FOUND;
    END IF;
    IF is_visible IS NOT NULL AND NOT is_written THEN
      -- While this waited, another request of this user was first, or the outfit became private.
      UPDATE outfit_like_counts l SET likes = l.likes - step WHERE l.id = which;
    END IF;
  END IF;
  RETURN QUERY SELECT o, l.likes, u FROM outfits o JOIN outfit_like_counts l ON l.id = o.id JOIN users u ON u.id = o.user_id
  WHERE o.id = which AND (NOT o.private OR o.user_id = who OR sees_private);
  -- The foreign key checks the user only when a like was written.
  IF FOUND AND NOT is_written AND NOT EXISTS (SELECT FROM users WHERE id = who) THEN
    RAISE SQLSTATE 'OG001' USING MESSAGE = format('There is no user with the id %s.', who);
  END IF;
END $$;
