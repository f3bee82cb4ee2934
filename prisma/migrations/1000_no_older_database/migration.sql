-- Refuses a database of a version before 1.0: its migrations differ and cannot be continued (docs/upgrading.md).
-- A separate migration of one statement, because only a single statement may COMMIT. "prisma migrate deploy" has already
-- written a row that this migration was started; an unfinished row would stop gateways of the older version. The row is
-- marked as "prisma migrate resolve --rolled-back" does.
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
    RAISE EXCEPTION 'This database was made by a version before 1.0 and cannot be migrated: export its listing with that version, and import the file into a new database (docs/upgrading.md).';
  END IF;
END $do$;
