-- Likes that an import took along as rows: the number of the source includes them, so an import does not add them to it.
ALTER TABLE "outfit_likes" ADD COLUMN "imported" BOOLEAN NOT NULL DEFAULT false;
