-- Rows of likes that are missing, orphaned or have stale copies: none, unless triggers were disabled.
CREATE FUNCTION check_outfit_likes() RETURNS SETOF integer
LANGUAGE sql STABLE AS $$
  SELECT coalesce(o.id, l.id) FROM outfits o FULL JOIN outfit_like_counts l USING (id)
  WHERE (o.id, o.private, o.user_id) IS DISTINCT FROM (l.id, l.private, l.user_id)
$$;
