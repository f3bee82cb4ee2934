-- Refuses a database that a version before 1.0 made: its migrations are others, and cannot be continued
-- (docs/from-before-1.0.md). A migration of its own that is one statement, since only then may the statement commit.
-- "prisma migrate deploy" has written a row for this migration that says it has begun: left there, that row would stop
-- the gateways of the older version. It is marked here as "prisma migrate resolve --rolled-back" marks it.
DO $do$
BEGIN
  IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('outfits') AND attname = 'likes' AND NOT attisdropped) THEN
    IF to_regclass('_prisma_migrations') IS NOT NULL THEN
      UPDATE _prisma_migrations SET rolled_back_at = now()
      WHERE migration_name = '1000_no_older_database' AND finished_at IS NULL AND rolled_back_at IS NULL;
      IF FOUND THEN
        COMMIT;
      END IF;
    END IF;
    RAISE EXCEPTION 'This database was made by a version before 1.0 and cannot be migrated: export its listing with that version, and import the file into a new database (docs/from-before-1.0.md).';
  END IF;
END $do$;
