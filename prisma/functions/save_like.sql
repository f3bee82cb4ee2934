-- Returns whether the outfit exists; it is liked by the user then.
CREATE FUNCTION save_like(which integer, who integer) RETURNS boolean
LANGUAGE sql AS 'SELECT EXISTS (SELECT FROM like_outfit(which, who, true, true))';
