-- Returns whether the outfit exists; it is not liked by the user then.
CREATE FUNCTION delete_like(which integer, who integer) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  IF to_regproc('attached_write_like') IS NOT NULL THEN
    EXECUTE 'SELECT attached_write_like($1, $2, false)' USING which, who;
  END IF;
  PERFORM FROM like_outfit(which, who, false, true);
  RETURN FOUND;
END $$;
