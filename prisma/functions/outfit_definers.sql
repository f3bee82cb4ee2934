-- Functions that run with the rights of their owner, and name the schema in their search_path; those of attach, too.
CREATE FUNCTION outfit_definers() RETURNS TABLE (name regprocedure, is_wrong boolean)
LANGUAGE sql STABLE AS $$
  -- Without quotes, which depend on the session that has set it.
  SELECT p.oid, replace('search_path=' || nspname || ', pg_temp', '"', '') <> ALL (SELECT replace(setting, '"', '') FROM unnest(proconfig) AS setting)
  FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace
  WHERE pronamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('outfits')) AND proconfig::text LIKE '%search_path=%'
    AND (proname LIKE 'attached\_%' OR proname = 'apply_pending_outfit_changes' OR p.oid IN (SELECT tgfoid FROM pg_trigger JOIN outfit_triggers() t ON tgrelid = to_regclass(table_name) AND tgname = t.name))
$$;
