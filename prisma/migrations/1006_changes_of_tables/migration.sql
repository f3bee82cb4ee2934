-- Changes of other tables: in outfit_changes, with the name of the table and the primary key of the row (its columns in
-- the order of their names, separated by commas).
ALTER TABLE "outfit_changes" ADD COLUMN "table_name" TEXT, ADD COLUMN "row_key" TEXT;

-- Records the change of a row. Arguments: the columns of the primary key. SECURITY DEFINER: a role that writes the table
-- needs no privilege on the changes, which are in the schema of the table. TRUNCATE alters pg_class: recorded_tables().
CREATE FUNCTION record_row_change() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF OLD IS DISTINCT FROM NEW THEN
    EXECUTE format('INSERT INTO %I.outfit_changes (xid, table_name, row_key)
      SELECT DISTINCT pg_current_xact_id(), $1, (SELECT string_agg(image ->> name, '','' ORDER BY nth) FROM unnest($2) WITH ORDINALITY AS t (name, nth))
      FROM unnest($3) AS image WHERE image IS NOT NULL', TG_TABLE_SCHEMA) USING TG_TABLE_NAME, TG_ARGV, ARRAY[to_jsonb(OLD), to_jsonb(NEW)];
  END IF;
  RETURN NULL;
END $$;

-- Records the changes of a table with a primary key from now on, replicated ones too. To be run again after a restore
-- that ends with ENABLE TRIGGER ALL, or with another primary key.
CREATE FUNCTION record_changes_of(target regclass) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE OR REPLACE TRIGGER record_changed AFTER INSERT OR UPDATE OR DELETE ON %s
    FOR EACH ROW EXECUTE FUNCTION record_row_change(%s)', target,
    (SELECT string_agg(quote_literal(attname), ', ' ORDER BY attname COLLATE "C")
     FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey) WHERE indrelid = target AND indisprimary));
  EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER record_changed', target);
END $$;

-- The tables whose changes are recorded, and what identifies each with its trigger: when this changes, changes may be
-- missing.
CREATE FUNCTION recorded_tables() RETURNS TABLE (name text, identity text)
LANGUAGE sql STABLE AS $$
  SELECT c.relname, concat_ws(' ', c.oid, c.xmin, t.oid, t.xmin)
  FROM pg_depend d JOIN pg_trigger t ON t.oid = d.objid JOIN pg_class c ON c.oid = t.tgrelid
  WHERE d.classid = 'pg_trigger'::regclass AND d.refclassid = 'pg_proc'::regclass AND d.refobjid = to_regproc('record_row_change')
    AND t.tgname = 'record_changed' AND t.tgenabled = 'A'
$$;
