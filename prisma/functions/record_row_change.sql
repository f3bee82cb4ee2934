-- Records the change of a row. Arguments: the columns of the primary key. SECURITY DEFINER: a role that writes the table
-- needs no privilege on the changes. TRUNCATE alters pg_class: recorded_tables(). By the index: a plan that was made for an
-- empty table is kept while it fills.
CREATE FUNCTION record_row_change() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  IF OLD IS DISTINCT FROM NEW THEN
    INSERT INTO outfit_changes (xid, table_name, row_key)
    SELECT DISTINCT pg_current_xact_id(), TG_TABLE_NAME, (SELECT string_agg(image ->> name, ',' ORDER BY nth) FROM unnest(TG_ARGV) WITH ORDINALITY AS t (name, nth))
    FROM unnest(ARRAY[to_jsonb(OLD), to_jsonb(NEW)]) AS image WHERE image IS NOT NULL;
    -- The first copy of a subscription copies each table by itself: the outfits of this user were left out of what was read.
    IF TG_OP = 'INSERT' AND TG_RELID = 'users'::regclass AND current_setting('session_replication_role') = 'replica' THEN
      INSERT INTO outfit_changes (xid) SELECT pg_current_xact_id() WHERE EXISTS (SELECT FROM outfits WHERE user_id = NEW.id);
    END IF;
  END IF;
  RETURN NULL;
END $$;
