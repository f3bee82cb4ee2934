-- The tables whose changes are recorded, and what identifies each with its columns and its trigger: when this changes, changes
-- may be missing.
CREATE FUNCTION recorded_tables() RETURNS TABLE (name text, identity text)
LANGUAGE sql STABLE AS $$
  SELECT c.relname, concat_ws(' ', c.oid, c.xmin, (SELECT sum(a.xmin::text::bigint) FROM pg_attribute a WHERE a.attrelid = c.oid), t.oid, t.xmin)
  FROM pg_depend d JOIN pg_trigger t ON t.oid = d.objid JOIN pg_class c ON c.oid = t.tgrelid
  WHERE d.classid = 'pg_trigger'::regclass AND d.refclassid = 'pg_proc'::regclass AND d.refobjid = to_regproc('record_row_change')
    AND t.tgname = 'record_changed' AND t.tgenabled = 'A'
$$;
