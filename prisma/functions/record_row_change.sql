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
