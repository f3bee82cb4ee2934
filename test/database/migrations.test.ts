// The migrations, held against schema.prisma and against Prisma's own engine.
import { randomUUID } from 'node:crypto';
import type { SchemaEngine } from '@prisma/schema-engine-wasm';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import * as check from '../../src/commands/check.ts';
import * as migrateCommand from '../../src/commands/migrate.ts';
import { readConfig } from '../../src/config/config.ts';
import { type Database, openDatabase } from '../../src/database/database.ts';
import {
  findPendingMigrations,
  MigrationError,
  migrate,
  readMigrations,
  toMigration,
} from '../../src/database/migrations.ts';
import { checkReady } from '../../src/database/readiness.ts';
import { callCommand } from '../support/cli/commands.ts';
import { execute } from '../support/databases/connections.ts';
import {
  migrationList,
  noFilters,
  openSchemaEngine,
  schemaDatamodel,
} from '../support/databases/schema-engine.ts';
import type { TestDatabase } from '../support/databases/test-database.ts';
import { makeEmptyDatabase } from '../support/gateway.ts';

const historyColumns = `SELECT column_name, data_type, character_maximum_length, is_nullable, column_default
  FROM information_schema.columns WHERE table_name = '_prisma_migrations' ORDER BY ordinal_position`;

const names = migrationList().migrationDirectories.map(({ path }) => path);

const history = readMigrations().map(({ name, checksum }) => ({
  ...{ migration_name: name, checksum, applied_steps_count: 1, finished: true },
}));

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

describe('on PostgreSQL', () => {
  let testDatabase: TestDatabase;
  let database: Database;
  let engine: SchemaEngine;

  const open = async () => {
    testDatabase = await makeEmptyDatabase('PostgreSQL');
    database = await openDatabase(readConfig(testDatabase.environment));
    engine = await openSchemaEngine(database.pool);
  };
  const close = async () => {
    engine.free();
    await database.close();
    await testDatabase.remove();
  };
  /** As Prisma does it. */
  const deploy = () =>
    engine.applyMigrations({ migrationsList: migrationList(), filters: noFilters });
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
      expect(await applied()).toEqual(history);
    });
    afterAll(() => close());

    test('a database that our migrator has migrated is exactly what schema.prisma says', async () => {
      expect(await findDrift(engine)).toBe('');
    });

    test('a database that our migrator has migrated gets an index again of which an attempt that was stopped has left a part', async () => {
      const { pool } = database;
      const script =
        'CREATE INDEX CONCURRENTLY IF NOT EXISTS "outfits_quality_idx" ON "outfits"("quality");';
      const later = [...readMigrations(), toMigration('1005_index', script)];
      const apply = () => migrate(pool, () => {}, later);
      const forget = () =>
        pool.query(`DELETE FROM _prisma_migrations WHERE migration_name = '1005_index'`);
      const index = `'outfits_quality_idx'::regclass`;
      const look = async () => {
        const found = `SELECT indisvalid, indexrelid FROM pg_index WHERE indexrelid = ${index}`;
        return (await pool.query(found)).rows[0];
      };
      expect(await apply()).toEqual(['1005_index']);
      await forget();
      await pool.query(`UPDATE pg_index SET indisvalid = false WHERE indexrelid = ${index}`);
      expect(await apply()).toEqual(['1005_index']);
      const made = await look();
      expect(made.indisvalid).toBe(true);
      // One that is whole stays.
      await forget();
      expect(await apply()).toEqual(['1005_index']);
      expect(await look()).toEqual(made);
      await forget();
      await pool.query('DROP INDEX outfits_quality_idx');
    });

    // Before Prisma is asked, which keeps its lock.
    const failure = async () => {
      const error = await migrate(database.pool, () => {}).catch((reason: unknown) => reason);
      return error instanceof MigrationError ? error.message : String(error);
    };

    test('a database that our migrator has migrated is refused when an applied migration was edited', async () => {
      const { rows } = await database.pool.query(
        `SELECT migration_name AS name, checksum FROM _prisma_migrations ORDER BY 1 LIMIT 1`,
      );
      const setChecksum = 'UPDATE _prisma_migrations SET checksum = $1 WHERE migration_name = $2';
      await database.pool.query(setChecksum, ['0'.repeat(64), rows[0].name]);
      await expect(findPendingMigrations(database.pool)).rejects.toThrow(MigrationError);
      expect(await failure()).toBe(
        `Migration ${rows[0].name} is not the text that this database was migrated with: restore that file and add a new migration instead.`,
      );
      await database.pool.query(setChecksum, [rows[0].checksum, rows[0].name]);
      expect(await findPendingMigrations(database.pool)).toEqual([]);
    });

    test('is refused while a migration of another tool has not finished, and nothing stays locked', async () => {
      await database.pool.query('UPDATE _prisma_migrations SET finished_at = NULL');
      expect(await findPendingMigrations(database.pool)).toEqual(names);
      expect(await failure()).toContain('was started by another tool and never finished');
      const { rowCount } = await database.pool.query(
        `SELECT FROM pg_locks JOIN pg_database d ON d.oid = database
         WHERE locktype = 'advisory' AND datname = current_database()`,
      );
      expect(rowCount).toBe(0);
      await database.pool.query('UPDATE _prisma_migrations SET finished_at = now()');
      expect(await findPendingMigrations(database.pool)).toEqual([]);
    });

    test('a migration of a later version that another tool is applying leaves a gateway ready', async () => {
      await database.pool.query(
        `INSERT INTO _prisma_migrations (id, checksum, migration_name) VALUES ('later', '', '9000_later')`,
      );
      expect(await checkReady(database.pool, '', () => {})).toBeUndefined();
      await database.pool.query(`DELETE FROM _prisma_migrations WHERE id = 'later'`);
    });

    test('a database that our migrator has migrated has nothing left to do for us or for Prisma', async () => {
      expect(await findPendingMigrations(database.pool)).toEqual([]);
      expect(await migrate(database.pool, () => {})).toEqual([]);
      const before = await applied();
      const { appliedMigrationNames } = await deploy();
      expect(appliedMigrationNames).toEqual([]);
      expect(await applied()).toEqual(before);
    });

    test('a database that our migrator has migrated is seen to drift when it does', async () => {
      await database.pool.query('DROP INDEX outfit_like_counts_private_likes_id_idx');
      await database.pool.query('ALTER TABLE users ADD COLUMN extra text');
      const drift = await findDrift(engine);
      expect(drift).toContain('CREATE INDEX "outfit_like_counts_private_likes_id_idx"');
      expect(drift).toContain('DROP COLUMN "extra"');
    });
  });

  describe('a database that Prisma has migrated', () => {
    beforeAll(async () => {
      await open();
      const { appliedMigrationNames } = await deploy();
      expect(appliedMigrationNames).toEqual(names);
    });
    afterAll(() => close());

    test('a database that Prisma has migrated has the history that our migrator writes', async () => {
      expect(await applied()).toEqual(history);
      const { rows } = await database.pool.query(historyColumns);
      await database.pool.query('DROP TABLE _prisma_migrations');
      const lost =
        'has the tables of a gateway without their history: restore the table _prisma_migrations, too.';
      await expect(migrate(database.pool, () => {})).rejects.toThrow(lost);
      await database.pool.query('CREATE SCHEMA own; SET search_path = own');
      expect(await migrate(database.pool, () => {})).toEqual(names);
      expect((await database.pool.query(historyColumns)).rows).toEqual(rows);
    });
  });

  describe('a database that a version before 1.0 has made', () => {
    const sentence =
      /^(MigrationError: )?This database was made by a version before 1\.0 and cannot be migrated: export its listing with that version, and import the file into a new database \(docs\/upgrading\.md\)\.$/;
    const state = async () => {
      const { rows } = await database.pool.query(
        `SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1`,
      );
      return rows.map(({ relname }) => relname);
    };
    beforeAll(open);
    afterAll(() => close());

    test('a database that a version before 1.0 has made is refused with one sentence, by Prisma too, and left as it is', async () => {
      const { pool } = database;
      // The evidence: the history, and the likes that are a column of the outfits.
      await pool.query(`
        CREATE TABLE users (id serial PRIMARY KEY);
        CREATE TABLE outfits (id serial PRIMARY KEY, likes integer NOT NULL DEFAULT 0);
        CREATE TABLE _prisma_migrations (
          id varchar(36) PRIMARY KEY, checksum varchar(64) NOT NULL, finished_at timestamptz,
          migration_name varchar(255) NOT NULL, logs text, rolled_back_at timestamptz,
          started_at timestamptz NOT NULL DEFAULT now(), applied_steps_count integer NOT NULL DEFAULT 0
        );
        INSERT INTO _prisma_migrations (id, checksum, finished_at, migration_name)
        VALUES ('a', 'b', now(), '0001_outfits')`);
      const before = [await state(), await applied()];
      await expect(findPendingMigrations(pool)).rejects.toThrow(sentence);
      await expect(migrate(pool, () => {})).rejects.toThrow(sentence);
      expect([await state(), await applied()]).toEqual(before);
      // Its adapter for tests says no more than that it failed; nothing is left that stops the older version.
      await expect(deploy()).rejects.toThrow();
      expect(await state()).toEqual(before[0]);
      const { rows } = await pool.query(
        `SELECT migration_name AS name, rolled_back_at IS NOT NULL AS "isRolledBack"
         FROM _prisma_migrations WHERE finished_at IS NULL`,
      );
      expect(rows).toEqual([{ name: '1000_no_older_database', isRolledBack: true }]);
      const { script } = readMigrations()[0] as { script: string };
      await expect(pool.query(script)).rejects.toThrow(sentence);
    });
  });

  describe('a migration that fails', () => {
    beforeAll(open);
    afterAll(() => close());

    test('a migration that fails is named, taken back whole, and can be run again', async () => {
      // A statement of the second migration finds the name of its index taken.
      await database.pool.query('CREATE SEQUENCE outfits_private_id_idx');
      const error = await migrate(database.pool, () => {}).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(MigrationError);
      expect(String(error)).toMatch(/1001_outfits failed and was taken back: .*already exists/);
      expect(await applied()).toMatchObject([{ migration_name: '1000_no_older_database' }]);
      const { rows } = await database.pool.query(`SELECT to_regclass('outfits') AS found`);
      expect(rows[0].found).toBeNull();
      await database.pool.query('DROP SEQUENCE outfits_private_id_idx');
      expect(await migrate(database.pool, () => {})).toEqual(names.slice(1));
      expect(await findDrift(engine)).toBe('');
    });
  });
});

/** An empty PostgreSQL database for the running test. */
async function makeEmpty() {
  const { environment, remove } = await makeEmptyDatabase('PostgreSQL');
  onTestFinished(remove);
  const { DATABASE_URL = '' } = environment;
  const open = async () => {
    const database = await openDatabase(readConfig(environment));
    onTestFinished(() => database.close());
    return database.pool;
  };
  return { environment, DATABASE_URL, open };
}

test.each([
  ['CREATE TABLE orders (id int)', 'has tables (orders) of another program: use another database'],
  ['CREATE TABLE users (id int); CREATE VIEW v AS SELECT 1', 'has tables (users, v) of another'],
  [
    `CREATE TABLE _prisma_migrations (id text, checksum text, finished_at timestamptz DEFAULT now(),
       migration_name text, rolled_back_at timestamptz);
     INSERT INTO _prisma_migrations (migration_name) VALUES ('20240101_init')`,
    'has migrations (20240101_init) of another program: use another database',
  ],
])('a PostgreSQL database of another program is left as it is: %s', async (made, sentence) => {
  const { environment, DATABASE_URL } = await makeEmpty();
  await execute(DATABASE_URL, made);
  const relations = `SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1`;
  const { rows } = await execute(DATABASE_URL, relations);
  const refused = await callCommand(migrateCommand, [], environment);
  expect(refused).toMatchObject({ code: 1, stdout: '' });
  expect(refused.stderr).toMatch(/^[^\n]+\.\n$/);
  expect(refused.stderr).toContain(sentence);
  const checked = await callCommand(check, [], environment);
  expect(checked.stdout).toContain(refused.stderr.trim());
  expect((await execute(DATABASE_URL, relations)).rows).toEqual(rows);
  // What the sentence says.
  const [, added = ''] = /add (\S+) to DATABASE_URL/.exec(refused.stderr) ?? [];
  const own = { DATABASE_URL: `${DATABASE_URL}${added}` };
  expect(await callCommand(migrateCommand, [], own)).toMatchObject({ code: 0 });
  expect((await execute(DATABASE_URL, relations)).rows).toEqual(rows);
});

test('a PostgreSQL database in another encoding is refused before anything is made', async () => {
  const server = inject('postgresUrl');
  const url = new URL(server);
  url.pathname = 'encoded';
  await execute(
    server,
    `CREATE DATABASE encoded ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`,
  );
  onTestFinished(async () => void (await execute(server, 'DROP DATABASE encoded WITH (FORCE)')));
  const environment = { DATABASE_URL: url.href };
  const sentence = expect.stringContaining('is encoded in LATIN1: use one that was made by');
  const refused = await callCommand(migrateCommand, [], environment);
  expect(refused).toEqual({ code: 1, stdout: '', stderr: sentence });
  expect((await callCommand(check, [], environment)).stdout).toEqual(sentence);
  const relations = `SELECT FROM pg_class WHERE relnamespace = 'public'::regnamespace`;
  expect(await execute(url.href, relations)).toMatchObject({ rowCount: 0 });
});

test.each([
  [
    'with a search path without a schema',
    `ALTER ROLE $ROLE SET search_path = ''`,
    'names no schema',
  ],
  [
    'with a schema that it may not make',
    `REVOKE CREATE ON DATABASE $DATABASE FROM PUBLIC; ALTER ROLE $ROLE SET search_path = own`,
    'names no schema',
  ],
  [
    'without CREATE',
    'REVOKE CREATE ON SCHEMA public FROM PUBLIC',
    'may not make tables in the schema',
  ],
])('a PostgreSQL role %s is told what mends it', async (_what, statement, sentence) => {
  const { DATABASE_URL } = await makeEmpty();
  const role = `migrator_${randomUUID().slice(0, 8)}`;
  await execute(DATABASE_URL, `CREATE ROLE ${role} LOGIN PASSWORD 'postgres'`);
  onTestFinished(async () => {
    await execute(DATABASE_URL, `DROP OWNED BY ${role} CASCADE; DROP ROLE ${role}`);
  });
  await execute(DATABASE_URL, `GRANT CREATE ON SCHEMA public TO ${role}`);
  await execute(DATABASE_URL, `REVOKE CREATE ON SCHEMA public FROM ${role}`);
  const url = new URL(DATABASE_URL);
  const named = statement.replace('$ROLE', role).replace('$DATABASE', url.pathname.slice(1));
  await execute(DATABASE_URL, named);
  url.username = role;
  url.password = 'postgres';
  for (let attempt = 1; attempt < 4; attempt++) {
    const run = await callCommand(migrateCommand, [], { DATABASE_URL: url.href });
    if (run.code === 0) return;
    expect(run.stderr).toMatch(attempt === 1 ? sentence : /may not make tables/);
    await execute(DATABASE_URL, /run "(.*)"/.exec(run.stderr)?.[1] ?? '');
  }
  expect.unreachable();
});

test('on PostgreSQL, a text with the line endings of Windows is the same migration, in both directions', async () => {
  const pool = await (await makeEmpty()).open();
  const windows = readMigrations().map(({ name, script }) =>
    toMigration(name, script.replaceAll('\n', '\r\n')),
  );
  expect(await migrate(pool, () => {}, windows)).toEqual(names);
  expect(await findPendingMigrations(pool)).toEqual([]);
  for (const { name, windowsChecksum } of windows) {
    await pool.query('UPDATE _prisma_migrations SET checksum = $2 WHERE migration_name = $1', [
      ...[name, windowsChecksum],
    ]);
  }
  expect(await migrate(pool, () => {})).toEqual([]);
  expect(await migrate(pool, () => {}, windows)).toEqual([]);
});

test('on PostgreSQL, three migrators at the same time apply every migration once', async () => {
  const { open } = await makeEmpty();
  const pools = await Promise.all([open(), open(), open()]);
  const runs = await Promise.all(pools.map((pool) => migrate(pool, () => {})));
  expect(runs.flat()).toEqual(names);
});
