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
    "likes" INTEGER NOT NULL DEFAULT 0,
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

-- CreateIndex
CREATE INDEX "users_username_id_idx" ON "users"("username", "id");

-- CreateIndex
CREATE INDEX "outfits_private_created_id_idx" ON "outfits"("private", "created", "id");

-- CreateIndex
CREATE INDEX "outfits_private_modified_id_idx" ON "outfits"("private", "modified", "id");

-- CreateIndex
CREATE INDEX "outfits_private_likes_id_idx" ON "outfits"("private", "likes", "id");

-- CreateIndex
CREATE INDEX "outfits_private_id_idx" ON "outfits"("private", "id");

-- CreateIndex
CREATE INDEX "outfits_user_id_created_id_idx" ON "outfits"("user_id", "created", "id");

-- AddForeignKey
ALTER TABLE "outfits" ADD CONSTRAINT "outfits_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

