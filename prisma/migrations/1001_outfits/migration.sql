-- Outfits and the users who publish them.

-- CreateTable
CREATE TABLE "users" (
    "id" SERIAL NOT NULL,
    "avatar_key" TEXT NOT NULL DEFAULT '',
    "username" TEXT NOT NULL,
    "first_name" TEXT NOT NULL DEFAULT '',
    "last_name" TEXT NOT NULL DEFAULT '',

    CONSTRAINT "users_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "outfits" (
    "id" SERIAL NOT NULL,
    "title" TEXT NOT NULL DEFAULT '',
    "description" TEXT NOT NULL DEFAULT '',
    "image_key" TEXT NOT NULL,
    "image_original_key" TEXT NOT NULL,
    "complete" BOOLEAN NOT NULL DEFAULT true,
    "user_id" INTEGER NOT NULL,
    "quality" INTEGER NOT NULL DEFAULT 3,
    "private" BOOLEAN NOT NULL DEFAULT false,
    "background_color" TEXT NOT NULL DEFAULT '',
    "video_key" TEXT,
    "play_video" BOOLEAN NOT NULL DEFAULT false,
    "created" BIGINT NOT NULL,
    "modified" BIGINT NOT NULL,
    "creation_device" TEXT NOT NULL DEFAULT 'web',
    "modification_device" TEXT NOT NULL DEFAULT '',

    CONSTRAINT "outfits_pkey" PRIMARY KEY ("id")
);

-- Read by: userNamed.
-- CreateIndex
CREATE INDEX "users_username_id_idx" ON "users"("username", "id");

-- Indexes of lists begin with `private`: "all" (a merge of two ranges) and "public only" (one range) are both index
-- scans. They end with the id, the tie-breaker in both directions.

-- Read by: pages, keyset pages and ranges by created.
-- CreateIndex
CREATE INDEX "outfits_private_created_id_idx" ON "outfits"("private", "created", "id");

-- Read by: pages and keyset pages by modified.
-- CreateIndex
CREATE INDEX "outfits_private_modified_id_idx" ON "outfits"("private", "modified", "id");

-- Read by: pages and keyset pages by id.
-- CreateIndex
CREATE INDEX "outfits_private_id_idx" ON "outfits"("private", "id");

-- Read by: the same lists of one user, and a viewer's own private outfits, in each of these orderings.
-- CreateIndex
CREATE INDEX "outfits_user_id_private_created_id_idx" ON "outfits"("user_id", "private", "created", "id");

-- CreateIndex
CREATE INDEX "outfits_user_id_private_modified_id_idx" ON "outfits"("user_id", "private", "modified", "id");

-- CreateIndex
CREATE INDEX "outfits_user_id_private_id_idx" ON "outfits"("user_id", "private", "id");

-- AddForeignKey
ALTER TABLE "outfits" ADD CONSTRAINT "outfits_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- The first id of outfits that are created here, in at most one row: src/outfits/writes/bulk.ts. An import without
-- FIRST_ID, or with another value, must not take their ids for ids of the source.
CREATE TABLE "first_id" (
    "is_only" BOOLEAN NOT NULL DEFAULT true CHECK ("is_only"),
    "value" INTEGER NOT NULL,

    CONSTRAINT "first_id_pkey" PRIMARY KEY ("is_only")
);
