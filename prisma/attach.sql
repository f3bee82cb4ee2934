-- What "outfit-gateway attach" makes beside the gateway's tables; src/attach/README.md says why. Words in braces are parts
-- that src/attach/statements.ts makes of the mapping: such as one for a query of the old users, as users here.
-- Triggers on the old tables only note which ids a statement has changed. What these ids are there is read, and written here,
-- at COMMIT, in the order of ids: no lock is taken here that a later statement of the same transaction could wait for.

CREATE TABLE IF NOT EXISTS attachment (is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only), mapping json NOT NULL);
CREATE TABLE IF NOT EXISTS attached_changes (xid xid8 NOT NULL DEFAULT pg_current_xact_id(), kind text NOT NULL, ids bigint[] NOT NULL, user_ids bigint[]);
CREATE INDEX IF NOT EXISTS attached_changes_xid_idx ON attached_changes (xid);
-- What cannot be represented here. user_id is the user that an outfit or a like needs, else 0.
CREATE TABLE IF NOT EXISTS attached_problems (
  kind text, id bigint, user_id bigint, problem text NOT NULL, since timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (kind, id, user_id));
-- The number of likes in the old service that is part of the number here.
CREATE TABLE IF NOT EXISTS attached_likes (outfit_id integer PRIMARY KEY, likes bigint NOT NULL);

-- Where statement triggers do not fire: in logical replication, and with session_replication_role = replica.
-- Arguments: the kind, and the columns that have the id and, for a like, the user's.
CREATE OR REPLACE FUNCTION attached_note_row() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  INSERT INTO attached_changes (kind, ids, user_ids)
  SELECT TG_ARGV[0], ARRAY[(image ->> TG_ARGV[1])::bigint], CASE WHEN TG_NARGS > 2 THEN ARRAY[(image ->> TG_ARGV[2])::bigint] END
  FROM (SELECT to_jsonb(OLD) UNION SELECT to_jsonb(NEW)) AS images (image) WHERE image ->> TG_ARGV[1] IS NOT NULL;
  RETURN NULL;
END $$;

-- All ids that are here: TRUNCATE names none.
CREATE OR REPLACE FUNCTION attached_note_all() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  INSERT INTO attached_changes (kind, ids, user_ids)
  SELECT TG_ARGV[0], array_agg(id), array_agg(user_id)
  FROM (SELECT 'users' AS kind, id, NULL::integer AS user_id FROM users UNION ALL SELECT 'outfits', id, NULL FROM outfits
    UNION ALL SELECT 'likes', outfit_id, user_id FROM outfit_likes) AS here WHERE kind = TG_ARGV[0] HAVING count(*) > 0;
  RETURN NULL;
END $$;

-- In each of these functions rows here are locked before the old tables are read: who has waited reads what is committed.
CREATE OR REPLACE FUNCTION attached_save_users(given bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  arrived integer[];
BEGIN
  PERFORM FROM users WHERE id = ANY (given) ORDER BY id FOR NO KEY UPDATE;
  DELETE FROM attached_problems WHERE kind = 'users' AND id = ANY (given);
  INSERT INTO attached_problems SELECT 'users', id, 0, problem FROM ({users}) s WHERE id = ANY (given) AND problem IS NOT NULL ON CONFLICT DO NOTHING;
  WITH added AS (
    INSERT INTO users (id, {user_columns})
    SELECT id, {user_columns} FROM ({users}) s WHERE id = ANY (given) AND problem IS NULL AND NOT EXISTS (SELECT FROM users u WHERE u.id = s.id)
    ORDER BY id ON CONFLICT DO NOTHING RETURNING id
  )
  SELECT array_agg(id) INTO arrived FROM added;
  UPDATE users u SET ({user_columns}) = ROW({user_new}) FROM ({users}) s
  WHERE s.id = ANY (given) AND u.id = s.id AND problem IS NULL AND ({user_old}) IS DISTINCT FROM ({user_new});
  -- What has waited for these users.
  PERFORM attached_save_outfits(array_agg(id)) FROM attached_problems WHERE kind = 'outfits' AND user_id = ANY (arrived) HAVING count(*) > 0;
  PERFORM attached_save_likes(array_agg(id), array_agg(user_id)) FROM attached_problems WHERE kind = 'likes' AND user_id = ANY (arrived) HAVING count(*) > 0;
END $$;

CREATE OR REPLACE FUNCTION attached_save_outfits(given bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  gone integer[];
  arrived integer[];
BEGIN
  PERFORM FROM outfits WHERE id = ANY (given) ORDER BY id FOR NO KEY UPDATE;
  DELETE FROM attached_problems WHERE kind = 'outfits' AND id = ANY (given);
  INSERT INTO attached_problems SELECT 'outfits', id, coalesce(needed_user_id, 0), problem FROM ({outfits}) s WHERE id = ANY (given) AND problem IS NOT NULL ON CONFLICT DO NOTHING;
  gone := ARRAY(SELECT id FROM outfits o WHERE id = ANY (given) AND NOT EXISTS (SELECT FROM ({outfits}) s WHERE s.id = o.id AND s.id = ANY (given)));
  IF gone <> '{}' THEN
    -- Not left to foreign keys and triggers, which do not fire in logical replication.
    DELETE FROM outfit_like_counts WHERE id = ANY (gone);
    DELETE FROM outfit_likes WHERE outfit_id = ANY (gone);
    DELETE FROM attached_likes WHERE outfit_id = ANY (gone);
    DELETE FROM outfits WHERE id = ANY (gone);
  END IF;
  WITH added AS (
    INSERT INTO outfits (id, {outfit_columns})
    SELECT id, {outfit_columns} FROM ({outfits}) s WHERE id = ANY (given) AND problem IS NULL AND NOT EXISTS (SELECT FROM outfits o WHERE o.id = s.id)
    ORDER BY id ON CONFLICT DO NOTHING RETURNING id
  )
  SELECT array_agg(id) INTO arrived FROM added;
  UPDATE outfits o SET ({outfit_columns}) = ROW({outfit_new}) FROM ({outfits}) s
  WHERE s.id = ANY (given) AND o.id = s.id AND problem IS NULL AND ({outfit_old}) IS DISTINCT FROM ({outfit_new});
  IF current_setting('session_replication_role') = 'replica' THEN
    INSERT INTO outfit_like_counts SELECT id, private, user_id, 0 FROM outfits WHERE id = ANY (arrived) ORDER BY id ON CONFLICT DO NOTHING;
    UPDATE outfit_like_counts c SET private = o.private, user_id = o.user_id
    FROM outfits o WHERE o.id = ANY (given) AND c.id = o.id AND (c.private, c.user_id) <> (o.private, o.user_id);
  END IF;
  IF {has_number} THEN
    PERFORM FROM outfit_like_counts WHERE id = ANY (given) ORDER BY id FOR NO KEY UPDATE;
    WITH now AS (
      SELECT s.id::integer, s.likes, s.likes - coalesce(a.likes, 0) AS step FROM ({outfits}) s LEFT JOIN attached_likes a ON a.outfit_id = s.id
      WHERE s.id = ANY (given) AND problem IS NULL AND s.likes IS DISTINCT FROM a.likes
    ), kept AS (
      INSERT INTO attached_likes SELECT id, likes FROM now ORDER BY id ON CONFLICT (outfit_id) DO UPDATE SET likes = excluded.likes
    )
    UPDATE outfit_like_counts c SET likes = least(greatest(c.likes + step, 0), 2147483647) FROM now WHERE c.id = now.id AND step <> 0;
  END IF;
  PERFORM attached_save_likes(array_agg(outfit_id), array_agg(user_id)) FROM ({likes}) s WHERE outfit_id = ANY (arrived) HAVING count(*) > 0;
END $$;

CREATE OR REPLACE FUNCTION attached_save_likes(outfit_ids bigint[], liker_ids bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  -- The order of locks of a like: its outfit, the number, the like.
  PERFORM FROM outfits WHERE id = ANY (outfit_ids) ORDER BY id FOR KEY SHARE;
  PERFORM FROM outfit_like_counts WHERE id = ANY (outfit_ids) ORDER BY id FOR NO KEY UPDATE;
  WITH given AS MATERIALIZED (
    SELECT DISTINCT outfit_id, user_id FROM unnest(outfit_ids, liker_ids) AS g (outfit_id, user_id)
  ), found AS MATERIALIZED (
    SELECT g.*, created, CASE WHEN NOT EXISTS (SELECT FROM outfits o WHERE o.id = g.outfit_id) THEN 'its outfit is not here'
      WHEN NOT EXISTS (SELECT FROM users u WHERE u.id = g.user_id) THEN 'its user is not here' END AS problem
    FROM given g JOIN ({likes}) s ON s.outfit_id = g.outfit_id AND s.user_id = g.user_id
  ), solved AS (
    DELETE FROM attached_problems p USING given g WHERE kind = 'likes' AND p.id = g.outfit_id AND p.user_id = g.user_id
      AND NOT EXISTS (SELECT FROM found f WHERE f.outfit_id = p.id AND f.user_id = p.user_id AND problem IS NOT NULL)
  ), unsolved AS (
    INSERT INTO attached_problems SELECT 'likes', outfit_id, user_id, problem FROM found WHERE problem IS NOT NULL ON CONFLICT DO NOTHING
  ), added AS (
    INSERT INTO outfit_likes (outfit_id, user_id, imported, created)
    SELECT outfit_id, user_id, true, created FROM found WHERE problem IS NULL ORDER BY 1, 2
    ON CONFLICT DO NOTHING RETURNING outfit_id, 1 AS step
  ), removed AS (
    DELETE FROM outfit_likes l USING given g WHERE l.outfit_id = g.outfit_id AND l.user_id = g.user_id
      AND NOT EXISTS (SELECT FROM found f WHERE f.outfit_id = g.outfit_id AND f.user_id = g.user_id)
    RETURNING l.outfit_id, -1 AS step
  )
  UPDATE outfit_like_counts c SET likes = greatest(c.likes + s.step, 0)
  FROM (SELECT outfit_id, sum(step)::integer AS step FROM (TABLE added UNION ALL TABLE removed) AS steps GROUP BY 1) AS s
  WHERE c.id = s.outfit_id AND s.step <> 0 AND NOT {has_number};
END $$;

-- After their outfits and likes.
CREATE OR REPLACE FUNCTION attached_remove_users(given bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  gone integer[] := ARRAY(SELECT id FROM users u WHERE id = ANY (given) AND NOT EXISTS (SELECT FROM ({users}) s WHERE s.id = u.id AND s.id = ANY (given)));
  kept integer[] := ARRAY(SELECT DISTINCT user_id FROM outfits WHERE user_id = ANY (gone));
  liked bigint[];
  likers bigint[];
BEGIN
  IF gone = '{}' THEN
    RETURN;
  END IF;
  INSERT INTO attached_problems SELECT 'users', id, 0, 'the old service has outfits of this user, but not the user' FROM unnest(kept) AS id ON CONFLICT DO NOTHING;
  gone := ARRAY(SELECT id FROM unnest(gone) AS id WHERE id <> ALL (kept));
  SELECT array_agg(outfit_id), array_agg(user_id) INTO liked, likers FROM outfit_likes WHERE user_id = ANY (gone);
  PERFORM FROM outfit_like_counts WHERE id = ANY (liked) ORDER BY id FOR NO KEY UPDATE;
  WITH removed AS (DELETE FROM outfit_likes WHERE user_id = ANY (gone) RETURNING outfit_id)
  UPDATE outfit_like_counts c SET likes = greatest(c.likes - r.number, 0)
  FROM (SELECT outfit_id, count(*)::integer AS number FROM removed GROUP BY 1) r WHERE c.id = r.outfit_id AND NOT {has_number};
  DELETE FROM idempotency_keys WHERE user_id = ANY (gone);
  DELETE FROM users WHERE id = ANY (gone);
  PERFORM attached_save_likes(liked, likers) WHERE liked IS NOT NULL;
END $$;

-- Carries over what is given, as far as it can be represented. Writes here are refused but between the two lines that set
-- the marker.
CREATE OR REPLACE FUNCTION attached_save(given_users bigint[], given_outfits bigint[], liked bigint[], likers bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  PERFORM set_config('outfit_gateway.attached', pg_current_xact_id()::text, true);
  IF given_outfits IS NOT NULL AND liked IS NOT NULL THEN
    -- All outfits before all numbers, as a like locks them.
    PERFORM FROM outfits WHERE id = ANY (given_outfits) ORDER BY id FOR NO KEY UPDATE;
    PERFORM FROM outfits WHERE id = ANY (liked) ORDER BY id FOR KEY SHARE;
    PERFORM FROM outfit_like_counts WHERE id = ANY (given_outfits || liked) ORDER BY id FOR NO KEY UPDATE;
  END IF;
  PERFORM attached_save_users(given_users) WHERE given_users IS NOT NULL;
  PERFORM attached_save_outfits(given_outfits) WHERE given_outfits IS NOT NULL;
  PERFORM attached_save_likes(liked, likers) WHERE liked IS NOT NULL;
  PERFORM attached_remove_users(given_users) WHERE given_users IS NOT NULL;
  PERFORM set_config('outfit_gateway.attached', '', true);
END $$;

-- Each alone: one that fails is recorded, and the others are saved. Errors of concurrency are the caller's.
CREATE OR REPLACE FUNCTION attached_save_each(given_users bigint[], given_outfits bigint[], liked bigint[], likers bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  one record;
BEGIN
  FOR one IN
    SELECT 'users' AS kind, id, 0::bigint AS user_id, 1 AS nth FROM unnest(given_users) AS id UNION SELECT 'outfits', id, 0, 2 FROM unnest(given_outfits) AS id
    UNION SELECT 'likes', id, user_id, 3 FROM unnest(liked, likers) AS l (id, user_id) ORDER BY nth, id, user_id
  LOOP
    BEGIN
      PERFORM attached_save(CASE one.nth WHEN 1 THEN ARRAY[one.id] END, CASE one.nth WHEN 2 THEN ARRAY[one.id] END,
        CASE one.nth WHEN 3 THEN ARRAY[one.id] END, CASE one.nth WHEN 3 THEN ARRAY[one.user_id] END);
    EXCEPTION WHEN OTHERS THEN
      IF SQLSTATE IN ('40001', '40P01', '55P03') THEN
        RAISE;
      END IF;
      INSERT INTO attached_problems VALUES (one.kind, one.id, one.user_id, SQLERRM) ON CONFLICT (kind, id, user_id) DO UPDATE SET problem = excluded.problem;
    END;
  END LOOP;
END $$;

-- Carries over what a transaction has changed: the calling one, or one that is committed.
CREATE OR REPLACE FUNCTION attached_carry(whose xid8) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  noted record;
BEGIN
  WITH taken AS (DELETE FROM attached_changes WHERE xid = whose RETURNING *), pairs AS (
    SELECT DISTINCT p.id, p.user_id FROM taken, unnest(ids, user_ids) AS p (id, user_id) WHERE kind = 'likes'
  )
  SELECT (SELECT array_agg(DISTINCT id) FROM taken, unnest(ids) AS id WHERE kind = 'users') AS users,
    (SELECT array_agg(DISTINCT id) FROM taken, unnest(ids) AS id WHERE kind = 'outfits') AS outfits,
    (SELECT array_agg(id ORDER BY id, user_id) FROM pairs) AS liked, (SELECT array_agg(user_id ORDER BY id, user_id) FROM pairs) AS likers INTO noted;
  IF noted.users IS NULL AND noted.outfits IS NULL AND noted.liked IS NULL THEN
    RETURN;
  END IF;
  BEGIN
    PERFORM attached_save(noted.users, noted.outfits, noted.liked, noted.likers);
  EXCEPTION WHEN OTHERS THEN
    IF SQLSTATE IN ('40001', '40P01', '55P03') THEN
      RAISE;
    END IF;
    PERFORM attached_save_each(noted.users, noted.outfits, noted.liked, noted.likers);
  END;
END $$;

-- At COMMIT, behind all other deferred triggers: foreign keys lock rows of the old tables, and whoever has locked one here
-- must not wait there. So the first note of a transaction adds one more, which carries. A transaction of another isolation level does not see what others commit meanwhile: it would fail for reasons that
-- it would not have had alone. Its changes stay noted, and a gateway carries them over.
CREATE OR REPLACE FUNCTION attached_carry_own() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  IF current_setting('transaction_isolation') IN ('read committed', 'read uncommitted') THEN
    IF NEW.kind = 'last' THEN
      PERFORM attached_carry(NEW.xid);
    ELSE
      INSERT INTO attached_changes (kind, ids) SELECT 'last', '{}' FROM attached_changes WHERE xid = NEW.xid HAVING bool_and(kind <> 'last');
    END IF;
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION attached_refuse() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  IF current_setting('outfit_gateway.attached', true) IS DISTINCT FROM pg_current_xact_id()::text THEN
    RAISE object_not_in_prerequisite_state USING MESSAGE = 'outfits, users and likes follow the attached tables of the old service',
      HINT = 'Write to these tables. Attached both ways, save_outfit and its like do so.';
  END IF;
  RETURN NULL;
END $$;
