-- The triggers on outfits, likes and users, with tgenabled: O (origin), R (replica) or A (always).
CREATE FUNCTION outfit_triggers() RETURNS TABLE (table_name text, name text, enabled "char")
LANGUAGE sql IMMUTABLE AS $$
  SELECT table_name, name, enabled
  FROM (VALUES
    ('{outfits,outfit_like_counts}'::text[], '{record_inserted,record_updated,record_deleted}'::text[], 'O'::"char"),
    ('{outfits,outfit_like_counts}', '{record_replicated}', 'R'),
    ('{users}', '{record_changed}', 'A'),
    ('{outfits,outfit_like_counts}', '{record_truncated}', 'A'),
    ('{outfits}', '{likes_inserted,likes_updated,likes_deleted,text_inserted,text_deleted}', 'O'),
    ('{outfits}', '{text_updated}', 'A'),
    ('{outfits}', '{text_replicated}', 'R')
  ) AS kinds (table_names, names, enabled), unnest(table_names) AS table_name, unnest(names) AS name
$$;
