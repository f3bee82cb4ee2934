-- Triggers that are missing, disabled or enabled in the wrong mode, and functions that search the schema by a former name, one
-- sentence for each.
CREATE FUNCTION check_outfit_triggers() RETURNS SETOF text
LANGUAGE sql STABLE AS $$
  SELECT format('the trigger %s on %s %s', wanted.name, wanted.table_name,
    CASE WHEN t.tgenabled IS NULL THEN 'is missing' WHEN t.tgenabled = 'D' THEN 'is off' ELSE 'does not fire when it should' END)
  FROM outfit_triggers() wanted
  LEFT JOIN pg_trigger t ON t.tgrelid = to_regclass(wanted.table_name) AND t.tgname = wanted.name
  WHERE t.tgenabled IS DISTINCT FROM wanted.enabled
  UNION ALL SELECT format('the function %s has the search path of another schema', name) FROM outfit_definers() WHERE is_wrong
  ORDER BY 1
$$;
