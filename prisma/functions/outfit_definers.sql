-- Functions that run with the rights of their owner, and name the schema in their search_path; those of attach, too.
CREATE FUNCTION outfit_definers() RETURNS TABLE (name regprocedure, is_wrong boolean)
LANGUAGE sql STABLE AS $$
  SELECT p.oid, ('search_path=' || pronamespace::regnamespace || ', pg_temp') <> ALL (proconfig)
  FROM pg_proc p
  WHERE pronamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('outfits')) AND proconfig::text LIKE '%search_path=%'
    AND (proname LIKE 'attached\_%' OR proname = 'apply_pending_outfit_changes' OR p.oid IN (SELECT tgfoid FROM pg_trigger JOIN outfit_triggers() t ON tgrelid = to_regclass(table_name) AND tgname = t.name))
$$;
