-- Returns whether the outfit exists; it is not liked by the user then.
CREATE FUNCTION delete_like(which integer, who integer) RETURNS boolean
LANGUAGE sql AS 'SELECT EXISTS (SELECT FROM like_outfit(which, who, false, true))';
