// The migrations, held against schema.prisma and against Prisma's own engine.
import { readFileSync } from 'node:fs';
import type { SchemaEngine } from '@prisma/schema-engine-wasm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readConfig } from '../src/config.ts';
import { type Database, openDatabase } from '../src/database/database.ts';
import { findPendingMigrations, MigrationError, migrate } from '../src/database/migrations.ts';
import { makePlace, makeUnmigratedPlace } from './gateway.ts';
import { laneKinds } from './lane.ts';
import type { TestPlace } from './places.ts';
import { migrationList, noFilters, openSchemaEngine, schemaDatamodel } from './schema-engine.ts';

const names = migrationList().migrationDirectories.map(({ path }) => path);

/** The SQL that would bring the live database to schema.prisma; empty when nothing is missing. */
async function findDrift(engine: SchemaEngine): Promise<string> {
  const { stdout } = await engine.diff({
    from: { ...schemaDatamodel(), tag: 'schemaDatasource', configDir: '' },
    to: schemaDatamodel(),
    script: true,
    exitCode: null,
    filters: noFilters,
  });
  return (stdout ?? '').replace('-- This is an empty migration.', '').trim();
}

describe.each(laneKinds)('on %s', (kind) => {
  let place: TestPlace;
  let database: Database;
  let engine: SchemaEngine;

  const open = async () => {
    place = await makeUnmigratedPlace(kind);
    database = await openDatabase(readConfig(place.environment));
    engine = await openSchemaEngine(database.pool);
  };
  const close = async () => {
    engine.free();
    await database.close();
    await place.remove();
  };
  const applied = async () => {
    const { rows } = await database.pool.query(
      'SELECT migration_name, checksum, applied_steps_count, finished_at IS NOT NULL AS finished FROM _prisma_migrations ORDER BY 1',
    );
    return rows;
  };

  describe('a database that our migrator has migrated', () => {
    beforeAll(async () => {
      await open();
      expect(await findPendingMigrations(database.pool)).toEqual(names);
      expect(await migrate(database.pool, () => {})).toEqual(names);
    });
    afterAll(() => close());

    test('is exactly what schema.prisma says', async () => {
      expect(await findDrift(engine)).toBe('');
    });

    test('gets an index anew of which an attempt that was stopped has left a part', async () => {
      const { pool } = database;
      await pool.query(
        `DELETE FROM _prisma_migrations WHERE migration_name = '0011_user_likes_index'`,
      );
      const index = `'outfits_user_id_private_likes_id_idx'::regclass`;
      const isValid = async () => {
        const { rows } = await pool.query(
          `SELECT indisvalid FROM pg_index WHERE indexrelid = ${index}`,
        );
        return rows[0].indisvalid;
      };
      await pool.query(`UPDATE pg_index SET indisvalid = false WHERE indexrelid = ${index}`);
      expect(await isValid()).toBe(false);
      expect(await migrate(pool, () => {})).toEqual(['0011_user_likes_index']);
      expect(await isValid()).toBe(true);
      // One that is whole stays.
      const numberOf = async () => (await pool.query(`SELECT ${index}::oid::int AS id`)).rows[0].id;
      const made = await numberOf();
      await pool.query(
        `DELETE FROM _prisma_migrations WHERE migration_name = '0011_user_likes_index'`,
      );
      expect(await migrate(pool, () => {})).toEqual(['0011_user_likes_index']);
      expect(await numberOf()).toBe(made);
    });

    test('has nothing left to do for us or for Prisma', async () => {
      expect(await findPendingMigrations(database.pool)).toEqual([]);
      expect(await migrate(database.pool, () => {})).toEqual([]);
      const before = await applied();
      const { appliedMigrationNames } = await engine.applyMigrations({
        migrationsList: migrationList(),
        filters: noFilters,
      });
      expect(appliedMigrationNames).toEqual([]);
      expect(await applied()).toEqual(before);
    });

    test('is seen to drift when it does', async () => {
      await database.pool.query('DROP INDEX outfits_private_likes_id_idx');
      await database.pool.query('ALTER TABLE users ADD COLUMN extra text');
      const drift = await findDrift(engine);
      expect(drift).toContain('CREATE INDEX "outfits_private_likes_id_idx"');
      expect(drift).toContain('DROP COLUMN "extra"');
    });
  });

  describe('a database that Prisma has migrated', () => {
    beforeAll(async () => {
      await open();
      const { appliedMigrationNames } = await engine.applyMigrations({
        migrationsList: migrationList(),
        filters: noFilters,
      });
      expect(appliedMigrationNames).toEqual(names);
    });
    afterAll(() => close());

    test('is exactly what schema.prisma says', async () => {
      expect(await findDrift(engine)).toBe('');
    });

    test('has nothing left to do for us', async () => {
      const before = await applied();
      expect(await findPendingMigrations(database.pool)).toEqual([]);
      expect(await migrate(database.pool, () => expect.fail('applied one'))).toEqual([]);
      expect(await applied()).toEqual(before);
    });

    test('has the history that our migrator writes', async () => {
      const other = await makeUnmigratedPlace(kind);
      const ours = await openDatabase(readConfig(other.environment));
      try {
        await migrate(ours.pool, () => {});
        const { rows } = await ours.pool.query(
          'SELECT migration_name, checksum, applied_steps_count, finished_at IS NOT NULL AS finished FROM _prisma_migrations ORDER BY 1',
        );
        expect(await applied()).toEqual(rows);
        const columns = `SELECT column_name, data_type, character_maximum_length, is_nullable, column_default
          FROM information_schema.columns WHERE table_name = '_prisma_migrations' ORDER BY ordinal_position`;
        expect((await ours.pool.query(columns)).rows).toEqual(
          (await database.pool.query(columns)).rows,
        );
      } finally {
        await ours.close();
        await other.remove();
      }
    });
  });

  describe('a history that does not fit the folder', () => {
    beforeAll(async () => {
      await open();
      await migrate(database.pool, () => {});
    });
    afterAll(() => close());

    const failure = async () => {
      await expect(findPendingMigrations(database.pool)).rejects.toThrow(MigrationError);
      const error = await migrate(database.pool, () => {}).catch((reason: unknown) => reason);
      return error instanceof MigrationError ? error.message : String(error);
    };

    test('is refused when an applied migration was edited', async () => {
      const { rows } = await database.pool.query(
        `SELECT migration_name AS name, checksum FROM _prisma_migrations ORDER BY 1 LIMIT 1`,
      );
      const setChecksum = 'UPDATE _prisma_migrations SET checksum = $1 WHERE migration_name = $2';
      await database.pool.query(setChecksum, ['0'.repeat(64), rows[0].name]);
      expect(await failure()).toBe(
        `Migration ${rows[0].name} is not the text that this database was migrated with: restore that file and add a new migration instead.`,
      );
      await database.pool.query(setChecksum, [rows[0].checksum, rows[0].name]);
      expect(await findPendingMigrations(database.pool)).toEqual([]);
    });

    test('is refused while a migration of another tool has not finished', async () => {
      await database.pool.query('UPDATE _prisma_migrations SET finished_at = NULL');
      expect(await failure()).toContain('was started by another tool and never finished');
      await database.pool.query('UPDATE _prisma_migrations SET finished_at = now()');
      expect(await findPendingMigrations(database.pool)).toEqual([]);
    });

    test('leaves the connection usable after each refusal', async () => {
      await database.pool.query('UPDATE _prisma_migrations SET finished_at = NULL');
      await failure();
      const { rows } = await database.pool.query(
        `SELECT count(*)::int AS locks FROM pg_locks WHERE locktype = 'advisory'`,
      );
      expect(rows[0].locks).toBe(0);
    });
  });

  describe('a migration that fails', () => {
    beforeAll(open);
    afterAll(() => close());

    test('is named, taken back whole, and can be run again', async () => {
      // The last statement but one of the first migration finds its index taken.
      await database.pool.query('CREATE TABLE blocker (id int)');
      await database.pool.query('CREATE INDEX outfits_private_id_idx ON blocker (id)');
      const error = await migrate(database.pool, () => {}).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(MigrationError);
      expect(String(error)).toMatch(/0001_outfits failed and was taken back: .*already exists/);
      expect(await applied()).toEqual([]);
      const { rows } = await database.pool.query(`SELECT to_regclass('outfits') AS found`);
      expect(rows[0].found).toBeNull();
      await database.pool.query('DROP TABLE blocker');
      expect(await migrate(database.pool, () => {})).toEqual(names);
      expect(await findDrift(engine)).toBe('');
    });
  });
});

test('two migrators at the same time apply every migration once', async () => {
  const place = await makePlace('PostgreSQL');
  const databases = [1, 2, 3].map(() => openDatabase(readConfig(place.environment)));
  try {
    const runs = await Promise.all(
      databases.map(async (database) => migrate((await database).pool, () => {})),
    );
    expect(runs.flat()).toEqual(names);
  } finally {
    for (const database of databases) await (await database).close();
    await place.remove();
  }
});

test('the migrations folder is for PostgreSQL', () => {
  expect(migrationList().lockfile.content).toContain('provider = "postgresql"');
  expect(readFileSync(new URL('../prisma/schema.prisma', import.meta.url), 'utf8')).toContain(
    'provider = "postgresql"',
  );
});
