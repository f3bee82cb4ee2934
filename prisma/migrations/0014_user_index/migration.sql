-- That of 0001, for which those of 0009 to 0012 serve.
DROP INDEX CONCURRENTLY IF EXISTS "outfits_user_id_created_id_idx";
