-- Outfits and the users who publish them.

CREATE TABLE "users" (
    "id" SERIAL PRIMARY KEY,
    "avatar_key" TEXT NOT NULL DEFAULT '',
    "username" TEXT NOT NULL,
    "first_name" TEXT NOT NULL DEFAULT '',
    "last_name" TEXT NOT NULL DEFAULT ''
);

CREATE TABLE "outfits" (
    "id" SERIAL PRIMARY KEY,
    "title" TEXT NOT NULL DEFAULT '',
    "description" TEXT NOT NULL DEFAULT '',
    "image_key" TEXT NOT NULL,
    "image_original_key" TEXT NOT NULL,
    "complete" BOOLEAN NOT NULL DEFAULT true,
    "user_id" INTEGER NOT NULL REFERENCES "users"("id") ON DELETE RESTRICT ON UPDATE CASCADE,
    "quality" INTEGER NOT NULL DEFAULT 3,
    "private" BOOLEAN NOT NULL DEFAULT false,
    "background_color" TEXT NOT NULL DEFAULT '',
    "video_key" TEXT,
    "play_video" BOOLEAN NOT NULL DEFAULT false,
    "created" BIGINT NOT NULL,
    "modified" BIGINT NOT NULL,
    "creation_device" TEXT NOT NULL DEFAULT 'web',
    "modification_device" TEXT NOT NULL DEFAULT ''
);

-- Read by: userNamed.
CREATE INDEX "users_username_id_idx" ON "users"("username", "id");

-- Indexes of lists begin with `private`: "all" (a merge of two ranges) and "public only" (one range) are both index
-- scans. They end with the id, the tie-breaker in both directions.

-- Read by: pages, keyset pages and ranges by created.
CREATE INDEX "outfits_private_created_id_idx" ON "outfits"("private", "created", "id");
-- Read by: pages and keyset pages by modified.
CREATE INDEX "outfits_private_modified_id_idx" ON "outfits"("private", "modified", "id");
-- Read by: pages and keyset pages by id.
CREATE INDEX "outfits_private_id_idx" ON "outfits"("private", "id");
-- Read by: the same lists of one user, and a viewer's own private outfits, in each of these orderings.
CREATE INDEX "outfits_user_id_private_created_id_idx" ON "outfits"("user_id", "private", "created", "id");
CREATE INDEX "outfits_user_id_private_modified_id_idx" ON "outfits"("user_id", "private", "modified", "id");
CREATE INDEX "outfits_user_id_private_id_idx" ON "outfits"("user_id", "private", "id");

-- The first id of outfits that are created here, in at most one row: src/outfits/writes/bulk.ts. An import without
-- FIRST_ID, or with another value, must not take their ids for ids of the source.
CREATE TABLE "first_id" (
    "is_only" BOOLEAN PRIMARY KEY DEFAULT true CHECK ("is_only"),
    "value" INTEGER NOT NULL
);
