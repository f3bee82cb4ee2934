-- Enables the triggers in their modes, and sets the search_path of their functions to the schema of the tables. Runs at the
-- end of the migrations, and after a restore that ends with ENABLE TRIGGER ALL or into a renamed schema.
CREATE FUNCTION enable_outfit_triggers() RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  current record;
  home regnamespace := (SELECT relnamespace FROM pg_class WHERE oid = 'outfits'::regclass);
BEGIN
  LOCK TABLE users, outfits, outfit_like_counts IN SHARE ROW EXCLUSIVE MODE;
  FOR current IN SELECT * FROM outfit_triggers() LOOP
    EXECUTE format('ALTER TABLE %I ENABLE %s TRIGGER %I', current.table_name,
      CASE current.enabled WHEN 'R' THEN 'REPLICA' WHEN 'A' THEN 'ALWAYS' ELSE '' END, current.name);
  END LOOP;
  FOR current IN SELECT * FROM outfit_definers() LOOP
    EXECUTE format('ALTER FUNCTION %s SET search_path TO %s, pg_temp', current.name, home);
  END LOOP;
END $$;
