-- The outfits of a user in each order, so that a page of theirs costs the same with any number of them. Alone in
-- its migration, because this statement, which lets writers go on, cannot be in a transaction.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "outfits_user_id_private_created_id_idx" ON "outfits"("user_id", "private", "created", "id");
