-- As 0009.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "outfits_user_id_private_likes_id_idx" ON "outfits"("user_id", "private", "likes", "id");
