-- CreateTable
CREATE TABLE "outfit_likes" (
    "outfit_id" INTEGER NOT NULL,
    "user_id" INTEGER NOT NULL,

    CONSTRAINT "outfit_likes_pkey" PRIMARY KEY ("outfit_id","user_id")
);

-- CreateTable
CREATE TABLE "idempotency_keys" (
    "user_id" INTEGER NOT NULL,
    "key" TEXT NOT NULL,
    "input_hash" TEXT NOT NULL,
    "answer" JSONB NOT NULL,
    "created" BIGINT NOT NULL,

    CONSTRAINT "idempotency_keys_pkey" PRIMARY KEY ("user_id","key")
);

-- CreateIndex
CREATE INDEX "outfit_likes_user_id_idx" ON "outfit_likes"("user_id");

-- AddForeignKey
ALTER TABLE "outfit_likes" ADD CONSTRAINT "outfit_likes_outfit_id_fkey" FOREIGN KEY ("outfit_id") REFERENCES "outfits"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "outfit_likes" ADD CONSTRAINT "outfit_likes_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "idempotency_keys" ADD CONSTRAINT "idempotency_keys_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- Likes an outfit or takes that back, and counts it, once per user however often it is asked for.
-- The outfit is locked first, as deleting it does, so that the two never wait for each other in a
-- circle. What was imported with the outfit stays in the count: only changes are added to it.
CREATE FUNCTION set_outfit_like(which integer, who integer, liked boolean) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM outfits WHERE id = which FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN 'no such outfit';
  END IF;
  PERFORM FROM users WHERE id = who FOR KEY SHARE;
  IF NOT FOUND THEN
    RETURN 'no such user';
  END IF;
  IF liked THEN
    -- One that cannot be counted is none, or else taking it back would count.
    INSERT INTO outfit_likes (outfit_id, user_id)
    SELECT id, who FROM outfits WHERE id = which AND likes < 2147483647
    ON CONFLICT DO NOTHING;
    IF FOUND THEN
      UPDATE outfits SET likes = likes + 1 WHERE id = which;
    END IF;
  ELSE
    DELETE FROM outfit_likes WHERE outfit_id = which AND user_id = who;
    IF FOUND THEN
      UPDATE outfits SET likes = likes - 1 WHERE id = which AND likes > 0;
    END IF;
  END IF;
  RETURN 'done';
END $$;
