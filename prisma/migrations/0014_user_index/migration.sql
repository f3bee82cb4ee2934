-- That of 0001, for which the four before this one serve.
DROP INDEX "outfits_user_id_created_id_idx";
