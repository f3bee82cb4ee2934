-- Where the ids of outfits that are made here begin, in at most one row: src/outfits/first-id.ts. Who
-- imports without FIRST_ID, or with another one, must not take them for those of the source.
CREATE TABLE "first_id" (
    "is_only" BOOLEAN NOT NULL DEFAULT true CHECK ("is_only"),
    "value" INTEGER NOT NULL,

    CONSTRAINT "first_id_pkey" PRIMARY KEY ("is_only")
);
