-- Search and hashtags by an index, for all scripts and locales: see src/outfits/filters.md.

SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- The folded text of an outfit, and its hashtags. A separate table, so that an update of other columns does not rewrite its index.
CREATE TABLE "outfit_texts" (
    "outfit_id" INTEGER PRIMARY KEY,
    "folded" TEXT NOT NULL,
    "hashtags" TEXT[]
);

-- outfit_casefold: normalizes a text to NFC and folds its case, for comparison. The collation is explicit, the best one of
-- the server, because under the locale of the database letters may be ASCII only. It is chosen once: an upgrade of the
-- server does not change it, so index and queries agree.
DO $do$
DECLARE
  version integer := current_setting('server_version_num');
  folding text := CASE
    WHEN version >= 180000 THEN 'casefold(given COLLATE "pg_unicode_fast")'
    WHEN version >= 170000 THEN 'lower(upper(given COLLATE "pg_c_utf8"))'
    WHEN EXISTS (SELECT FROM pg_collation WHERE collname = 'und-x-icu')
      -- Final sigma equals sigma.
      THEN $$replace(lower(upper(given COLLATE "und-x-icu")), U&'\03C2', U&'\03C3')$$
    ELSE 'lower(upper(given))'
  END;
BEGIN
  EXECUTE format($sql$
    CREATE FUNCTION outfit_casefold(given text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $body$
    BEGIN
      -- Nearly every text is in NFC, and the check takes a third of the time of normalize.
      IF given IS NOT NFC NORMALIZED THEN
        given := normalize(given);
      END IF;
      given := %s;
      RETURN CASE WHEN given IS NFC NORMALIZED THEN given ELSE normalize(given) END;
    END $body$
  $sql$, folding);
END $do$;

-- FUNCTION outfit_unaccent
-- A case-folded text without accents of Latin letters, for search: the marks U+0300 to U+036F after a Latin letter are
-- dropped, and letters that have no such mark are replaced by the table below (src/outfits/filters.md). It calls no other
-- function, because indexes call it with any search_path.
CREATE FUNCTION outfit_unaccent(folded text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  -- ASCII has no accents, and most texts are ASCII.
  IF octet_length(folded) = length(folded) THEN
    RETURN folded;
  END IF;
  folded := translate(normalize(folded, NFD), 'øłđðħŧı', 'olddhti');
  folded := replace(replace(replace(replace(replace(folded, 'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe'), 'þ', 'th'), 'ĳ', 'ij');
  RETURN normalize(regexp_replace(folded,
    '(?<=[a-z\u00df-\u00f6\u00f8-\u02af\u1e00-\u1eff\u2c60-\u2c7f\ua722-\ua7ff])[\u0300-\u036f]+', '', 'g'));
END $$;
-- END outfit_unaccent
-- FUNCTION outfit_text
-- The searched text of an outfit, truncated: the terms of a longer text would exceed the size of a tsvector.
CREATE FUNCTION outfit_text(title text, description text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT left(outfit_unaccent(outfit_casefold(title || E'\n' || description)), 60000)
$$;
-- END outfit_text
-- FUNCTION outfit_terms
-- The search terms of a folded text: all trigrams of each word, so a word of three or more characters is found by all its
-- trigrams. In words that are not ASCII, also the last two characters and the last one: a shorter word is found as a prefix
-- of a term. Searches for fewer than three ASCII letters are refused.
-- PL/pgSQL, because a SQL function takes longer to start than to run here. High COST, so that the planner uses the index
-- instead of computing terms for the whole table.
CREATE FUNCTION outfit_terms(folded text) RETURNS tsvector
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 10000 AS $$
DECLARE
  terms text[] := '{}';
  word text;
  letters text[];
BEGIN
  FOREACH word IN ARRAY string_to_array(translate(folded, E'\n\r\t', '   '), ' ') LOOP
    -- substr counts letters from the start, which is faster than an array in words that are short.
    letters := CASE WHEN length(word) > 100 THEN string_to_array(word, NULL) END;
    FOR place IN 1..length(word) - CASE WHEN octet_length(word) = length(word) THEN 2 ELSE 0 END LOOP
      IF letters IS NULL THEN
        terms := terms || substr(word, place, 3);
      ELSE
        terms := terms || concat(letters[place], letters[place + 1], letters[place + 2]);
      END IF;
    END LOOP;
  END LOOP;
  RETURN array_to_tsvector(terms);
END $$;
-- END outfit_terms
-- FUNCTION outfit_search
-- A tsquery for texts that contain all these words.
CREATE FUNCTION outfit_search(words text[]) RETURNS tsquery
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT string_agg(DISTINCT format('''%s''%s',
    replace(replace(term, '\', '\\'), '''', ''''''), CASE WHEN length(term) < 3 THEN ':*' END
  ), ' & ')::tsquery
  FROM (SELECT outfit_unaccent(outfit_casefold(word)) AS folded FROM unnest(words) AS word) w,
    generate_series(1, greatest(length(folded) - 2, 1)) AS place,
    substr(folded, place, 3) AS term
$$;
-- END outfit_search
-- FUNCTION outfit_patterns
-- Patterns of LIKE for folded texts that contain these words.
CREATE FUNCTION outfit_patterns(words text[]) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT array_agg('%' || regexp_replace(outfit_unaccent(outfit_casefold(word)), '([\\%_])', '\\\1', 'g') || '%') FROM unnest(words) AS word
$$;
-- END outfit_patterns
-- FUNCTION outfit_hashtags
-- The hashtags of a text, case-folded, the first 100 characters of each. Null for none: so the planner knows how few texts
-- have one. PL/pgSQL, whose plan is kept: PostgreSQL plans a SQL function in each statement. A hashtag consists of letters, marks, digits and underscores; the character class excludes all others. Unicode
-- 17.0: ranges without letters, marks and digits, which may contain unassigned code points.
CREATE FUNCTION outfit_hashtags(given text) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  IF given !~ '[#\uff03]' THEN
    RETURN NULL;
  END IF;
  RETURN (SELECT array_agg(DISTINCT left(outfit_casefold(tag[1]), 100))
  FROM regexp_matches(left(given, 60000), '[#\uff03]([^\x01-/:-@\[-^`{-\x7f\u0080-\u00a9\u00ab-\u00b1\u00b4\u00b6-\u00b8\u00bb\u00bf\u00d7\u00f7\u02c2-\u02c5\u02d2-\u02df\u02e5-\u02eb\u02ed\u02ef-\u02ff\u0375\u037e\u0384-\u0385\u0387\u03f6\u0482\u055a-\u055f\u0589-\u058f\u05be\u05c0\u05c3\u05c6\u05f3-\u060f\u061b-\u061f\u066a-\u066d\u06d4\u06dd-\u06de\u06e9\u06fd-\u06fe\u0700-\u070f\u07f6-\u07f9\u07fe-\u07ff\u0830-\u083e\u085e\u0888\u0890-\u0891\u08e2\u0964-\u0965\u0970\u09f2-\u09f3\u09fa-\u09fb\u09fd\u0a76\u0af0-\u0af1\u0b70\u0bf3-\u0bfa\u0c77\u0c7f\u0c84\u0d4f\u0d79\u0df4\u0e3f\u0e4f\u0e5a-\u0e5b\u0f01-\u0f17\u0f1a-\u0f1f\u0f34\u0f36\u0f38\u0f3a-\u0f3d\u0f85\u0fbe-\u0fc5\u0fc7-\u0fda\u104a-\u104f\u109e-\u109f\u10fb\u1360-\u1368\u1390-\u1399\u1400\u166d-\u166e\u1680\u169b-\u169c\u16eb-\u16ed\u1735-\u1736\u17d4-\u17d6\u17d8-\u17db\u1800-\u180a\u180e\u1940-\u1945\u19de-\u19ff\u1a1e-\u1a1f\u1aa0-\u1aa6\u1aa8-\u1aad\u1b4e-\u1b4f\u1b5a-\u1b6a\u1b74-\u1b7f\u1bfc-\u1bff\u1c3b-\u1c3f\u1c7e-\u1c7f\u1cc0-\u1cc7\u1cd3\u1fbd\u1fbf-\u1fc1\u1fcd-\u1fcf\u1fdd-\u1fdf\u1fed-\u1fef\u1ffd-\u206f\u207a-\u207e\u208a-\u208e\u20a0-\u20c1\u2100-\u2101\u2103-\u2106\u2108-\u2109\u2114\u2116-\u2118\u211e-\u2123\u2125\u2127\u2129\u212e\u213a-\u213b\u2140-\u2144\u214a-\u214d\u214f\u218a-\u244a\u249c-\u24e9\u2500-\u2775\u2794-\u2bff\u2ce5-\u2cea\u2cf9-\u2cfc\u2cfe-\u2cff\u2d70\u2e00-\u2e2e\u2e30-\u3004\u3008-\u3020\u3030\u3036-\u3037\u303d-\u303f\u309b-\u309c\u30a0\u30fb\u3190-\u3191\u3196-\u319f\u31c0-\u31ef\u3200-\u321e\u322a-\u3247\u3250\u3260-\u327f\u328a-\u32b0\u32c0-\u33ff\u4dc0-\u4dff\ua490-\ua4c6\ua4fe-\ua4ff\ua60d-\ua60f\ua673\ua67e\ua6f2-\ua716\ua720-\ua721\ua789-\ua78a\ua828-\ua82b\ua836-\ua839\ua874-\ua877\ua8ce-\ua8cf\ua8f8-\ua8fa\ua8fc\ua92e-\ua92f\ua95f\ua9c1-\ua9cd\ua9de-\ua9df\uaa5c-\uaa5f\uaa77-\uaa79\uaade-\uaadf\uaaf0-\uaaf1\uab5b\uab6a-\uab6b\uabeb\ue000-\uf8ff\ufb29\ufbb2-\ufbd2\ufd3e-\ufd4f\ufd90-\ufd91\ufdc8-\ufdcf\ufdfc-\ufdff\ufe10-\ufe19\ufe30-\ufe6b\ufeff-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65\uffe0-\ufffd\U00010100-\U00010102\U00010137-\U0001013f\U00010179-\U00010189\U0001018c-\U000101fc\U0001039f\U000103d0\U0001056f\U00010857\U00010877-\U00010878\U0001091f\U0001093f\U00010a50-\U00010a58\U00010a7f\U00010ac8\U00010af0-\U00010af6\U00010b39-\U00010b3f\U00010b99-\U00010b9c\U00010d6e\U00010d8e-\U00010d8f\U00010ead\U00010ed0-\U00010ed8\U00010f55-\U00010f59\U00010f86-\U00010f89\U00011047-\U0001104d\U000110bb-\U000110c1\U000110cd\U00011140-\U00011143\U00011174-\U00011175\U000111c5-\U000111c8\U000111cd\U000111db\U000111dd-\U000111df\U00011238-\U0001123d\U000112a9\U000113d4-\U000113d8\U0001144b-\U0001144f\U0001145a-\U0001145d\U000114c6\U000115c1-\U000115d7\U00011641-\U00011643\U00011660-\U0001166c\U000116b9\U0001173c-\U0001173f\U0001183b\U00011944-\U00011946\U000119e2\U00011a3f-\U00011a46\U00011a9a-\U00011a9c\U00011a9e-\U00011aa2\U00011b00-\U00011b09\U00011be1\U00011c41-\U00011c45\U00011c70-\U00011c71\U00011ef7-\U00011ef8\U00011f43-\U00011f4f\U00011fd5-\U00011fff\U00012470-\U00012474\U00012ff1-\U00012ff2\U00013430-\U0001343f\U00016a6e-\U00016a6f\U00016af5\U00016b37-\U00016b3f\U00016b44-\U00016b45\U00016d6d-\U00016d6f\U00016e97-\U00016e9a\U00016fe2\U0001bc9c\U0001bc9f-\U0001ccef\U0001ccfa-\U0001cef0\U0001cf50-\U0001d164\U0001d16a-\U0001d16c\U0001d173-\U0001d17a\U0001d183-\U0001d184\U0001d18c-\U0001d1a9\U0001d1ae-\U0001d241\U0001d245\U0001d300-\U0001d356\U0001d6c1\U0001d6db\U0001d6fb\U0001d715\U0001d735\U0001d74f\U0001d76f\U0001d789\U0001d7a9\U0001d7c3\U0001d800-\U0001d9ff\U0001da37-\U0001da3a\U0001da6d-\U0001da74\U0001da76-\U0001da83\U0001da85-\U0001da8b\U0001e14f\U0001e2ff\U0001e5ff\U0001e95e-\U0001e95f\U0001ecac\U0001ecb0\U0001ed2e\U0001eef0-\U0001f0f5\U0001f10d-\U0001fbef\U0001fbfa\U000e0001-\U000e007f\U000f0000-\U0010fffd]+)', 'g') AS tag);
END $$;
-- END outfit_hashtags
-- FUNCTION follow_outfit_texts
-- Updates outfit_texts with the outfits, for statements of all clients, and for each row of an update and of logical
-- replication, which fires no triggers of statements. SECURITY DEFINER: other roles need no privilege on the texts.
CREATE FUNCTION follow_outfit_texts() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  IF TG_LEVEL = 'ROW' THEN
    IF OLD.id IS DISTINCT FROM NEW.id THEN
      DELETE FROM outfit_texts WHERE outfit_id = OLD.id;
    END IF;
    INSERT INTO outfit_texts
    SELECT NEW.id, outfit_text(NEW.title, NEW.description), outfit_hashtags(NEW.title || E'\n' || NEW.description) WHERE TG_OP <> 'DELETE'
    ON CONFLICT (outfit_id) DO UPDATE SET folded = excluded.folded, hashtags = excluded.hashtags;
  ELSIF TG_OP = 'INSERT' THEN
    INSERT INTO outfit_texts
    SELECT id, outfit_text(title, description), outfit_hashtags(title || E'\n' || description) FROM added ORDER BY id
    ON CONFLICT (outfit_id) DO UPDATE SET folded = excluded.folded, hashtags = excluded.hashtags;
  ELSE
    -- A statement may delete outfits and reuse their ids; this can run after the new texts are inserted.
    DELETE FROM outfit_texts t USING removed
    WHERE t.outfit_id = removed.id AND NOT EXISTS (SELECT FROM outfits o WHERE o.id = removed.id);
  END IF;
  RETURN NULL;
END $$;
-- END follow_outfit_texts

CREATE TRIGGER text_inserted AFTER INSERT ON outfits
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION follow_outfit_texts();
-- Not "UPDATE OF": a BEFORE trigger may change these columns too.
CREATE TRIGGER text_updated AFTER UPDATE ON outfits
  FOR EACH ROW WHEN ((OLD.id, OLD.title, OLD.description) IS DISTINCT FROM (NEW.id, NEW.title, NEW.description))
  EXECUTE FUNCTION follow_outfit_texts();
CREATE TRIGGER text_deleted AFTER DELETE ON outfits
  REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION follow_outfit_texts();
CREATE TRIGGER text_replicated AFTER INSERT OR DELETE ON outfits
  FOR EACH ROW EXECUTE FUNCTION follow_outfit_texts();

-- Read by: search.
CREATE INDEX "outfit_texts_terms" ON "outfit_texts" USING gin (outfit_terms("folded"));
-- Read by: hashtags. Without a list of pending entries, which each read would scan: a text has few hashtags.
CREATE INDEX "outfit_texts_hashtags_idx" ON "outfit_texts" USING gin ("hashtags") WITH (fastupdate = off);

-- Read by: users(search). Not a separate table: names rarely change, and an update of the avatar leaves the index alone.
-- The first 1,000 characters are enough for names, and the terms of any text would not fit.
CREATE INDEX "users_terms" ON "users"
  USING gin (outfit_terms(outfit_unaccent(outfit_casefold(left("username" || E'\n' || "first_name" || E'\n' || "last_name", 1000)))));

-- FUNCTION rebuild_outfit_texts
-- Rewrites all texts, for example after a restore without triggers. Blocks writers.
CREATE FUNCTION rebuild_outfit_texts() RETURNS void
LANGUAGE sql AS $$
  LOCK TABLE outfits IN SHARE MODE;
  DELETE FROM outfit_texts;
  INSERT INTO outfit_texts
  SELECT id, outfit_text(title, description), outfit_hashtags(title || E'\n' || description) FROM outfits;
  INSERT INTO outfit_changes (xid) VALUES (pg_current_xact_id());
$$;
-- END rebuild_outfit_texts

SELECT enable_outfit_triggers();
