-- What "outfit-gateway attach" makes beside the gateway's tables; src/attach/README.md says why. Words in braces are parts
-- that src/attach/statements.ts makes of the mapping: such as one for a query of the old users, as users here.
-- Triggers on the old tables only note which ids a statement has changed. What these ids are there is read, and written here,
-- at COMMIT, in the order of ids: no lock is taken here that a later statement of the same transaction could wait for.

CREATE TABLE IF NOT EXISTS attachment (is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only), mapping json NOT NULL);
-- Ids that a statement has changed: of users, of outfits, and of likes the outfits and who likes them. The last row of a
-- transaction repeats its first one, and carries.
CREATE TABLE IF NOT EXISTS attached_changes (
  xid xid8 NOT NULL DEFAULT pg_current_xact_id(), users bigint[], outfits bigint[], liked bigint[], likers bigint[], is_last boolean NOT NULL DEFAULT false);
CREATE INDEX IF NOT EXISTS attached_changes_xid_idx ON attached_changes (xid);
-- What cannot be represented here. Without a problem, what waits: as a like whose outfit or user is not here. user_id is the
-- user that an outfit or a like needs, else 0.
CREATE TABLE IF NOT EXISTS attached_problems (
  kind text, id bigint, user_id bigint, problem text, PRIMARY KEY (kind, id, user_id));
-- The number of likes in the old service that is part of the number here, where likes are a number there.
CREATE TABLE IF NOT EXISTS attached_likes (outfit_id integer PRIMARY KEY, likes bigint NOT NULL);

-- Locks the old tables, as reading them does. Before rows here: whoever has one of them exclusively may wait for these rows.
CREATE OR REPLACE FUNCTION attached_open_tables() RETURNS void
LANGUAGE plpgsql AS $attached$
BEGIN
  PERFORM FROM ({users}) u, ({outfits}) o, ({likes}) l WHERE false;
END $attached$;

-- In each of these functions rows here are locked before the old tables are read: who has waited reads what is committed.
-- The order of locks: users, outfits in the order of ids, and then the number and the likes of these outfits. An outfit that
-- goes is locked like the others, and all FOR UPDATE: a like, which holds KEY SHARE, would wait for a number with it.
-- Where all rows are new, or all differ, one statement is enough. Others are gone, wrong, or as they were.
-- Gone are those that the old tables do not have. A column of the old tables may have the name of a variable.
-- EACH of users and outfits
CREATE OR REPLACE FUNCTION attached_save_{kind}(given bigint[], OUT arrived integer[], OUT gone integer[])
LANGUAGE plpgsql AS $attached$
#variable_conflict use_column
DECLARE
  number integer := cardinality(given);
  here integer;
  edited integer := 0;
BEGIN
  PERFORM FROM {kind} WHERE id = ANY (given) ORDER BY id FOR {lock};
  GET DIAGNOSTICS here = ROW_COUNT;
  IF here < number THEN
    WITH solved AS (
      DELETE FROM attached_problems WHERE kind = '{kind}' AND id = ANY (given)
    ), added AS (
      INSERT INTO {kind} (id, {columns}) SELECT id, {columns} FROM ({rows}) s WHERE id = ANY (given) AND problem IS NULL
      ORDER BY id ON CONFLICT DO NOTHING RETURNING id
    )
    SELECT array_agg(id) INTO arrived FROM added;
    number := number - coalesce(cardinality(arrived), 0);
    IF here < number THEN
      -- Another transaction may have inserted them meanwhile.
      PERFORM FROM {kind} WHERE id = ANY (given) ORDER BY id FOR {lock};
    END IF;
  END IF;
  IF number > 0 THEN
    WITH solved AS (
      DELETE FROM attached_problems WHERE kind = '{kind}' AND id = ANY (given)
    )
    UPDATE {kind} h SET ({columns}) = ROW({new}) FROM ({rows}) s
    WHERE s.id = ANY (given) AND h.id = s.id AND problem IS NULL AND ({old}) IS DISTINCT FROM ({new});
    GET DIAGNOSTICS edited = ROW_COUNT;
  END IF;
  IF edited < number THEN
    -- What a row has missed may have been committed meanwhile: without a problem it is tried again.
    INSERT INTO attached_problems SELECT '{kind}', id, coalesce(needed_user_id, 0), problem FROM ({rows}) s
    WHERE id = ANY (given) AND (problem IS NOT NULL OR NOT EXISTS (SELECT FROM {kind} h WHERE h.id = s.id)) ON CONFLICT DO NOTHING;
    SELECT array_agg(id) INTO gone FROM (SELECT id FROM {kind} WHERE id = ANY (given) EXCEPT SELECT id FROM ({rows}) s WHERE id = ANY (given)) g;
  END IF;
END $attached$;
-- END

CREATE OR REPLACE FUNCTION attached_save_likes(outfit_ids bigint[], liker_ids bigint[]) RETURNS void
LANGUAGE plpgsql AS $attached$
#variable_conflict use_column
DECLARE
  waiting attached_problems[];
BEGIN
  PERFORM FROM outfits WHERE id = ANY (outfit_ids) ORDER BY id FOR KEY SHARE;
  PERFORM FROM outfit_like_counts WHERE id = ANY (outfit_ids) ORDER BY id FOR NO KEY UPDATE;
  -- The like of a user, which the statement for all cases would take half as long again for.
  IF cardinality(outfit_ids) = 1 THEN
    INSERT INTO outfit_likes (outfit_id, user_id, imported, created)
    SELECT outfit_id, user_id, true, created FROM ({likes}) s
    WHERE s.outfit_id = outfit_ids[1] AND s.user_id = liker_ids[1]
      AND (SELECT o.id FROM outfits o WHERE o.id = s.outfit_id) IS NOT NULL AND (SELECT u.id FROM users u WHERE u.id = s.user_id) IS NOT NULL
    ON CONFLICT DO NOTHING;
    IF FOUND THEN
      DELETE FROM attached_problems WHERE kind = 'likes' AND id = outfit_ids[1] AND user_id = liker_ids[1];
      IF NOT {has_number} THEN
        UPDATE outfit_like_counts SET likes = likes + 1 WHERE id = outfit_ids[1];
      END IF;
      RETURN;
    END IF;
  END IF;
  WITH given AS MATERIALIZED (
    SELECT DISTINCT outfit_id, user_id FROM unnest(outfit_ids, liker_ids) AS g (outfit_id, user_id)
  ), found AS MATERIALIZED (
    SELECT g.*, created, (SELECT o.id FROM outfits o WHERE o.id = g.outfit_id) IS NULL OR (SELECT u.id FROM users u WHERE u.id = g.user_id) IS NULL AS waits
    FROM given g JOIN ({likes}) s ON s.outfit_id = g.outfit_id AND s.user_id = g.user_id
  ), solved AS (
    DELETE FROM attached_problems p USING given g WHERE kind = 'likes' AND p.id = g.outfit_id AND p.user_id = g.user_id
  ), added AS (
    INSERT INTO outfit_likes (outfit_id, user_id, imported, created)
    SELECT outfit_id, user_id, true, created FROM found WHERE NOT waits ORDER BY 1, 2
    ON CONFLICT DO NOTHING RETURNING outfit_id, 1 AS step
  ), dated AS (
    UPDATE outfit_likes l SET created = f.created FROM found f
    WHERE l.outfit_id = f.outfit_id AND l.user_id = f.user_id AND l.created IS DISTINCT FROM coalesce(f.created, l.created)
  ), removed AS (
    DELETE FROM outfit_likes l USING given g WHERE l.outfit_id = g.outfit_id AND l.user_id = g.user_id
      AND NOT EXISTS (SELECT FROM found f WHERE f.outfit_id = g.outfit_id AND f.user_id = g.user_id)
    RETURNING l.outfit_id, -1 AS step
  ), counted AS (
    UPDATE outfit_like_counts c SET likes = greatest(c.likes + s.step, 0)
    FROM (SELECT outfit_id, sum(step)::integer AS step FROM (TABLE added UNION ALL TABLE removed) AS steps GROUP BY 1) AS s
    WHERE c.id = s.outfit_id AND s.step <> 0 AND NOT {has_number}
  )
  SELECT array_agg(('likes', outfit_id, user_id, NULL)::attached_problems) INTO waiting FROM found WHERE waits;
  IF waiting IS NOT NULL THEN
    INSERT INTO attached_problems SELECT * FROM unnest(waiting) ON CONFLICT DO NOTHING;
  END IF;
END $attached$;

-- After their outfits and likes.
CREATE OR REPLACE FUNCTION attached_remove_users(gone integer[]) RETURNS void
LANGUAGE plpgsql AS $attached$
DECLARE
  kept integer[];
  liked bigint[];
  likers bigint[];
BEGIN
  -- Waits for an outfit that arrives with likes of them, whose foreign key would delete these uncounted.
  PERFORM FROM users WHERE id = ANY (gone) ORDER BY id FOR UPDATE;
  kept := ARRAY(SELECT DISTINCT user_id FROM outfits WHERE user_id = ANY (gone));
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
END $attached$;

-- Carries over what is given, as far as it can be represented, with the same texts of times and bytes in each session. Writes here are refused but between the two lines that set
-- the marker. An assignment costs less than PERFORM.
CREATE OR REPLACE FUNCTION attached_save(given_users bigint[], given_outfits bigint[], liked bigint[], likers bigint[]) RETURNS void
LANGUAGE plpgsql SET TimeZone = 'UTC' SET DateStyle = 'ISO' SET IntervalStyle = postgres SET bytea_output = hex SET extra_float_digits = 1 AS $attached$
#variable_conflict use_column
DECLARE
  arrived integer[];
  gone integer[];
  gone_users integer[];
  nothing text := set_config('outfit_gateway.attached', pg_current_xact_id()::text, true);
BEGIN
  nothing := attached_open_tables();
  IF given_users IS NOT NULL THEN
    SELECT * INTO arrived, gone_users FROM attached_save_users(given_users);
    IF arrived IS NOT NULL THEN
      -- What has waited for these users.
      SELECT given_outfits || array_agg(id) FILTER (WHERE kind = 'outfits'), liked || array_agg(id) FILTER (WHERE kind = 'likes'), likers || array_agg(user_id) FILTER (WHERE kind = 'likes')
      INTO given_outfits, liked, likers FROM attached_problems WHERE user_id = ANY (arrived);
    END IF;
  END IF;
  IF given_outfits IS NOT NULL AND liked IS NOT NULL OR gone_users IS NOT NULL THEN
    PERFORM FROM outfits WHERE id = ANY (given_outfits || liked || ARRAY(SELECT outfit_id::bigint FROM outfit_likes WHERE user_id = ANY (gone_users)))
    ORDER BY id FOR UPDATE;
  END IF;
  IF given_outfits IS NOT NULL THEN
    SELECT * INTO arrived, gone FROM attached_save_outfits(given_outfits);
    IF gone IS NOT NULL THEN
      -- Not left to foreign keys and triggers, which do not fire in logical replication.
      DELETE FROM outfit_like_counts WHERE id = ANY (gone);
      DELETE FROM outfit_likes WHERE outfit_id = ANY (gone);
      DELETE FROM attached_likes WHERE outfit_id = ANY (gone);
      DELETE FROM outfits WHERE id = ANY (gone);
    END IF;
    IF current_setting('session_replication_role') = 'replica' THEN
      INSERT INTO outfit_like_counts SELECT id, private, user_id, 0 FROM outfits WHERE id = ANY (arrived) ORDER BY id ON CONFLICT DO NOTHING;
      UPDATE outfit_like_counts c SET private = o.private, user_id = o.user_id
      FROM outfits o WHERE o.id = ANY (given_outfits) AND c.id = o.id AND (c.private, c.user_id) <> (o.private, o.user_id);
    END IF;
    IF {has_number} THEN
      PERFORM FROM outfit_like_counts WHERE id = ANY (given_outfits) ORDER BY id FOR NO KEY UPDATE;
      -- At first, as after an import: what is here counts the likes there already, but those that were given here.
      WITH now AS (
        SELECT s.id::integer, s.likes, s.likes - coalesce(a.likes, n.likes - (SELECT count(*) FROM outfit_likes WHERE outfit_id = n.id AND NOT imported)) AS step
        FROM ({outfits}) s LEFT JOIN attached_likes a ON a.outfit_id = s.id LEFT JOIN outfit_like_counts n ON n.id = s.id
        WHERE s.id = ANY (given_outfits) AND problem IS NULL AND s.likes IS DISTINCT FROM a.likes
      ), kept AS (
        INSERT INTO attached_likes SELECT id, likes FROM now ORDER BY id ON CONFLICT (outfit_id) DO UPDATE SET likes = excluded.likes
      )
      UPDATE outfit_like_counts c SET likes = least(greatest(c.likes + step, 0), 2147483647) FROM now WHERE c.id = now.id AND step <> 0;
    END IF;
    IF arrived IS NOT NULL THEN
      SELECT liked || array_agg(outfit_id), likers || array_agg(user_id) INTO liked, likers FROM ({likes}) s WHERE outfit_id = ANY (arrived);
    END IF;
  END IF;
  IF liked IS NOT NULL THEN
    nothing := attached_save_likes(liked, likers);
  END IF;
  IF gone_users IS NOT NULL THEN
    nothing := attached_remove_users(gone_users);
  END IF;
  nothing := set_config('outfit_gateway.attached', '', true);
END $attached$;

-- Each alone: one that fails is recorded, and the others are saved. Errors of concurrency are the caller's.
CREATE OR REPLACE FUNCTION attached_save_each(given_users bigint[], given_outfits bigint[], liked bigint[], likers bigint[]) RETURNS void
LANGUAGE plpgsql SET TimeZone = 'UTC' SET DateStyle = 'ISO' SET IntervalStyle = postgres SET bytea_output = hex SET extra_float_digits = 1 AS $attached$
DECLARE
  one record;
BEGIN
  -- With what has waited for these users, each of it alone, too.
  SELECT given_outfits || array_agg(id) FILTER (WHERE kind = 'outfits'), liked || array_agg(id) FILTER (WHERE kind = 'likes'), likers || array_agg(user_id) FILTER (WHERE kind = 'likes')
  INTO given_outfits, liked, likers FROM attached_problems WHERE kind <> 'users' AND user_id = ANY (given_users);
  -- In the order of attached_save: an outfit is saved before likes of others, whose ids may be lower.
  PERFORM FROM users WHERE id = ANY (given_users) ORDER BY id FOR NO KEY UPDATE;
  IF given_outfits IS NOT NULL THEN
    PERFORM FROM outfits WHERE id = ANY (given_outfits || liked) ORDER BY id FOR UPDATE;
  END IF;
  -- Users first without what needs them, and again at last: those that are gone, after their outfits and likes.
  FOR one IN
    SELECT 'users' AS kind, id, 0::bigint AS user_id, nth FROM unnest(given_users) AS id, unnest(ARRAY[1, 4]) AS nth UNION SELECT 'outfits', id, 0, 2 FROM unnest(given_outfits) AS id
    UNION SELECT 'likes', id, user_id, 3 FROM unnest(liked, likers) AS l (id, user_id) ORDER BY nth, id, user_id
  LOOP
    BEGIN
      IF one.nth = 1 THEN
        PERFORM set_config('outfit_gateway.attached', pg_current_xact_id()::text, true);
        PERFORM attached_save_users(ARRAY[one.id]);
        PERFORM set_config('outfit_gateway.attached', '', true);
      ELSE
        PERFORM attached_save(CASE one.nth WHEN 4 THEN ARRAY[one.id] END, CASE one.nth WHEN 2 THEN ARRAY[one.id] END,
          CASE one.nth WHEN 3 THEN ARRAY[one.id] END, CASE one.nth WHEN 3 THEN ARRAY[one.user_id] END);
      END IF;
    EXCEPTION WHEN transaction_rollback OR lock_not_available THEN
      RAISE;
    WHEN OTHERS THEN
      DELETE FROM attached_problems WHERE kind = one.kind AND id = one.id AND (kind <> 'likes' OR user_id = one.user_id);
      INSERT INTO attached_problems VALUES (one.kind, one.id, one.user_id, SQLERRM) ON CONFLICT (kind, id, user_id) DO UPDATE SET problem = excluded.problem;
    END;
  END LOOP;
END $attached$;

-- Plans for a few ids are made once for a session: planning takes ten times as long as running them. By indexes, so that such
-- a plan is right for a million, too.
CREATE OR REPLACE FUNCTION attached_try(given_users bigint[], given_outfits bigint[], liked bigint[], likers bigint[]) RETURNS void
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET jit = off AS $attached$
DECLARE
  nothing text;
BEGIN
  nothing := attached_save(given_users, given_outfits, liked, likers);
EXCEPTION WHEN transaction_rollback OR lock_not_available THEN
  RAISE;
WHEN OTHERS THEN
  PERFORM attached_save_each(given_users, given_outfits, liked, likers);
END $attached$;

-- Carries over what a transaction has changed: the calling one, or one that is committed.
CREATE OR REPLACE FUNCTION attached_carry(whose xid8) RETURNS void
LANGUAGE plpgsql AS $attached$
DECLARE
  noted record;
BEGIN
  WITH taken AS (DELETE FROM attached_changes WHERE xid = whose RETURNING *)
  SELECT array_agg(DISTINCT a) FILTER (WHERE a IS NOT NULL) AS users, array_agg(DISTINCT b) FILTER (WHERE b IS NOT NULL) AS outfits,
    array_agg(c) FILTER (WHERE c IS NOT NULL) AS liked, array_agg(d) FILTER (WHERE c IS NOT NULL) AS likers
  INTO noted FROM taken, unnest(users, outfits, liked, likers) AS ids (a, b, c, d);
  IF noted.users IS NOT NULL OR noted.outfits IS NOT NULL OR noted.liked IS NOT NULL THEN
    PERFORM attached_try(noted.users, noted.outfits, noted.liked, noted.likers);
  END IF;
END $attached$;

-- At COMMIT, behind all other deferred triggers: foreign keys lock rows of the old tables, and whoever has locked one here
-- must not wait there. So the first note of a transaction adds a last one, which carries. A transaction of another isolation
-- level does not see what others commit meanwhile: it would fail for reasons that it would not have had alone. One that
-- needs an old table that another has exclusively would wait for long. Their changes stay noted, and a gateway carries them over.
CREATE OR REPLACE FUNCTION attached_carry_own() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $attached$
DECLARE
  nothing text;
  patience text := current_setting('lock_timeout');
BEGIN
  {find_schema}
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RETURN NULL;
  ELSIF NOT NEW.is_last THEN
    IF current_setting('outfit_gateway.noted', true) IS DISTINCT FROM NEW.xid::text THEN
      nothing := set_config('outfit_gateway.noted', NEW.xid::text, true);
      IF current_setting('outfit_gateway.carried', true) IS DISTINCT FROM NEW.xid::text THEN
        INSERT INTO attached_changes VALUES (NEW.xid, NEW.users, NEW.outfits, NEW.liked, NEW.likers, true);
      ELSE
        -- Both ways, what was written here is carried over already: what is still noted is the rest.
        INSERT INTO attached_changes (is_last) VALUES (true);
      END IF;
    END IF;
    RETURN NULL;
  END IF;
  BEGIN
    PERFORM set_config('lock_timeout', '100', true), attached_open_tables(), set_config('lock_timeout', patience, true);
  EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
    RETURN NULL;
  WHEN OTHERS THEN
    -- What cannot be read is recorded below.
  END;
  -- A deferred trigger of the old service may have noted more since the first note.
  IF (SELECT count(*) FROM attached_changes WHERE xid = NEW.xid AND (users, outfits, liked, likers) IS DISTINCT FROM (NEW.users, NEW.outfits, NEW.liked, NEW.likers)) = 0
    AND current_setting('outfit_gateway.carried', true) IS DISTINCT FROM NEW.xid::text THEN
    DELETE FROM attached_changes WHERE xid = NEW.xid;
    nothing := attached_try(NEW.users, NEW.outfits, NEW.liked, NEW.likers);
  ELSE
    nothing := attached_carry(NEW.xid);
  END IF;
  nothing := set_config('outfit_gateway.noted', '', true);
  RETURN NULL;
END $attached$;

CREATE OR REPLACE FUNCTION attached_refuse() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $attached$
BEGIN
  RAISE SQLSTATE 'OG002' USING MESSAGE = 'outfits, users and likes follow the attached tables of the old service',
    HINT = 'Write to these tables. Attached both ways, save_outfit and its like do so.';
END $attached$;
