-- Writes: likes, stored answers of idempotent requests, and rate limits.

-- The functions that others may call with their own search_path keep this one.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- The number of likes of each outfit, by the id of the outfit. A separate table, because a like is the most frequent
-- write: it updates one narrow row and three indexes, and none of the outfit. `private` and `user_id` are copies for the
-- indexes; triggers maintain them.
CREATE TABLE "outfit_like_counts" (
    "id" INTEGER PRIMARY KEY,
    "private" BOOLEAN NOT NULL,
    "user_id" INTEGER NOT NULL,
    "likes" INTEGER NOT NULL
);

-- Read by: pages, keyset pages and ranges by likes.
CREATE INDEX "outfit_like_counts_private_likes_id_idx" ON "outfit_like_counts"("private", "likes", "id");
-- Read by: the same lists of one user, and a viewer's own private outfits by likes.
CREATE INDEX "outfit_like_counts_user_id_private_likes_id_idx" ON "outfit_like_counts"("user_id", "private", "likes", "id");

-- Likes that were given here. Likes from before an import are only part of the number.
CREATE TABLE "outfit_likes" (
    "outfit_id" INTEGER NOT NULL REFERENCES "outfits"("id") ON DELETE CASCADE ON UPDATE CASCADE,
    "user_id" INTEGER NOT NULL REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE,
    -- Whether an import took it along: the number of the source includes it, so an import does not add it to that.
    "imported" BOOLEAN NOT NULL DEFAULT false,
    -- Microseconds; null for an imported like whose source does not say when it was given.
    "created" BIGINT,
    PRIMARY KEY ("outfit_id","user_id")
);

-- Read by: likedOutfits.
CREATE INDEX "outfit_likes_user_id_idx" ON "outfit_likes"("user_id");

CREATE TABLE "idempotency_keys" (
    "user_id" INTEGER NOT NULL REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE,
    "key" TEXT NOT NULL,
    "input_hash" TEXT NOT NULL,
    "answer" JSONB NOT NULL,
    "created" BIGINT NOT NULL,
    PRIMARY KEY ("user_id","key")
);

-- Usage of the rate limit by sender: src/admission/rate-limit.ts. UNLOGGED saves WAL for each lease; a crash empties the
-- table, which only restarts the windows.
CREATE UNLOGGED TABLE "rate_limits" (
    "sender" TEXT PRIMARY KEY,
    "ends" BIGINT NOT NULL,
    "used" INTEGER NOT NULL,
    "leased" INTEGER NOT NULL
);

-- FUNCTION follow_outfit_likes
-- Inserts, updates and deletes the row of likes with the outfit, for statements of all clients. SECURITY DEFINER: a role
-- that writes only outfits needs no privilege on the likes.
CREATE FUNCTION follow_outfit_likes() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  inserted bigint;
BEGIN
  IF TG_OP = 'INSERT' THEN
    -- An import has already inserted these rows, with their likes.
    INSERT INTO outfit_like_counts SELECT id, private, user_id, 0 FROM added ORDER BY id ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS inserted = ROW_COUNT;
    IF inserted < (SELECT count(*) FROM added) THEN
      UPDATE outfit_like_counts l SET private = a.private, user_id = a.user_id
      FROM added a WHERE l.id = a.id AND (l.private, l.user_id) <> (a.private, a.user_id);
    END IF;
  ELSIF TG_OP = 'UPDATE' THEN
    -- A statement may delete outfits and reuse their ids; this can run before their rows of likes are deleted.
    IF NEW.id <> OLD.id THEN
      DELETE FROM outfit_like_counts WHERE id = NEW.id;
    END IF;
    UPDATE outfit_like_counts SET id = NEW.id, private = NEW.private, user_id = NEW.user_id WHERE id = OLD.id;
  ELSE
    -- A statement may delete outfits and reuse their ids. The lock: a snapshot of REPEATABLE READ shows outfits that were
    -- deleted since.
    DELETE FROM outfit_like_counts l USING removed
    WHERE l.id = removed.id AND NOT EXISTS (SELECT FROM outfits o WHERE o.id = removed.id FOR KEY SHARE);
  END IF;
  RETURN NULL;
END $$;
-- END follow_outfit_likes

CREATE TRIGGER likes_inserted AFTER INSERT ON outfits
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION follow_outfit_likes();
-- Not "UPDATE OF": a BEFORE trigger may change these columns too.
CREATE TRIGGER likes_updated AFTER UPDATE ON outfits
  FOR EACH ROW WHEN ((OLD.id, OLD.private, OLD.user_id) IS DISTINCT FROM (NEW.id, NEW.private, NEW.user_id))
  EXECUTE FUNCTION follow_outfit_likes();
CREATE TRIGGER likes_deleted AFTER DELETE ON outfits
  REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION follow_outfit_likes();

-- FUNCTION like_outfit
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
-- END like_outfit
