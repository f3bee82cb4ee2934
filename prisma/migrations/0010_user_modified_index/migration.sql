-- As 0009.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "outfits_user_id_private_modified_id_idx" ON "outfits"("user_id", "private", "modified", "id");
