// Applies migrations and records them in the history table of Prisma, so that both tools can be used.
// In SQL: there are no models before it, and it locks.
import { createHash, randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import { packageFolder } from '../config/package.ts';
import { messageOf, OperatorError } from '../errors.ts';
import { deadlockDetected, lockNotAvailable, sqlStateOf } from './errors.ts';

const folder = fileURLToPath(new URL('prisma/migrations/', packageFolder));

/** The advisory lock of Prisma, so that `prisma migrate deploy` never runs at the same time. */
const prismaAdvisoryLock = 72_707_369;

/** The history table, as Prisma creates it. */
const historyTable = `
  CREATE TABLE IF NOT EXISTS "_prisma_migrations" (
    "id"                  VARCHAR(36) PRIMARY KEY NOT NULL,
    "checksum"            VARCHAR(64) NOT NULL,
    "finished_at"         TIMESTAMPTZ,
    "migration_name"      VARCHAR(255) NOT NULL,
    "logs"                TEXT,
    "rolled_back_at"      TIMESTAMPTZ,
    "started_at"          TIMESTAMPTZ NOT NULL DEFAULT now(),
    "applied_steps_count" INTEGER NOT NULL DEFAULT 0
  )`;

export class MigrationError extends OperatorError {
  override readonly name = 'MigrationError';
}

const olderMigration = '0001_outfits';
/** The first migration raises the same message, for databases that are migrated with another tool. */
const olderDatabase =
  'This database was made by a version before 1.0 and cannot be migrated: export its listing with that version, and import the file into a new database (docs/upgrading.md).';

interface Migration {
  readonly name: string;
  readonly script: string;
  readonly checksum: string;
  /** The checksum of the text with CRLF, as Git and archivers write it on Windows. Prisma accepts both, too. */
  readonly windowsChecksum: string;
  /** Name of the index, for a migration that only creates or drops one concurrently. */
  readonly index: string | undefined;
}

/** Names of the migrations that are not applied yet, oldest first. */
export async function findPendingMigrations(
  queryable: Pick<pg.Pool, 'query'>,
  migrations = readMigrations(),
): Promise<string[]> {
  const { rows } = await queryable.query(
    `SELECT to_regclass('_prisma_migrations') IS NOT NULL AS exists`,
  );
  const applied = rows[0]?.exists ? await readHistory(queryable) : new Map<string, string>();
  return pendingOf(applied, migrations).map((migration) => migration.name);
}

/** Applies pending migrations, each in one transaction with its history row, except indexes. @throws MigrationError */
export async function migrate(
  pool: pg.Pool,
  onApply: (name: string) => void,
  migrations = readMigrations(),
): Promise<string[]> {
  const client = await pool.connect();
  client.on('error', () => {});
  try {
    await client.query('SET statement_timeout = 0');
    await lock(client);
    await makeSchema(client);
    if ((await findPendingMigrations(client, migrations)).length === 0) return [];
    const obstacle = await findObstacle(client, migrations);
    if (obstacle !== undefined) throw new MigrationError(obstacle);
    await client.query(historyTable);
    const { rows } = await client.query<{ name: string }>(unfinished);
    if (rows[0]) {
      throw new MigrationError(
        `Migration ${rows[0].name} was started by another tool and never finished: settle it with "prisma migrate resolve".`,
      );
    }
    const pending = pendingOf(await readHistory(client), migrations);
    for (const migration of pending) {
      onApply(migration.name);
      await applyWithRetry(client, migration);
    }
    return pending.map((migration) => migration.name);
  } finally {
    await client.query(`SELECT pg_advisory_unlock(${prismaAdvisoryLock})`).catch(() => {});
    await client.query('RESET statement_timeout').catch(() => {});
    client.release();
  }
}

/** A search path of one schema. */
const oneSchema = /^(?:[a-z_][a-z0-9_$]*|"(?:[^"]|"")+")$/;

/** As Prisma does: the schema that DATABASE_URL names need not exist yet. */
async function makeSchema(client: pg.PoolClient): Promise<void> {
  const { rows } = await client.query<{ path: string; exists: boolean; may: boolean }>(
    `SELECT current_setting('search_path') AS path, current_schema() IS NOT NULL AS exists,
       has_database_privilege(current_database(), 'CREATE') AS may`,
  );
  const { path = '', exists, may } = rows[0] ?? {};
  if (!exists && may && oneSchema.test(path))
    await client.query(`CREATE SCHEMA IF NOT EXISTS ${path}`);
}

interface SchemaRow {
  readonly schema: string | null;
  readonly path: string;
  readonly database: string;
  readonly role: string;
  readonly mayCreate: boolean;
  /** Tables and views, but those of extensions. */
  readonly tables: readonly string[];
  readonly history: string | null;
}

const readSchema = `
  SELECT quote_ident(current_schema()) AS schema, current_setting('search_path') AS path, quote_ident(current_database()) AS database,
    quote_ident(current_user) AS role, has_schema_privilege(current_schema(), 'CREATE') AS "mayCreate",
    to_regclass(quote_ident(current_schema()) || '._prisma_migrations')::text AS history,
    ARRAY(
      SELECT relname::text FROM pg_class c
      WHERE relnamespace = to_regnamespace(quote_ident(current_schema())) AND relkind IN ('r', 'p', 'v', 'm', 'f')
        AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.classid = 'pg_class'::regclass AND deptype = 'e')
      ORDER BY relname
    ) AS tables`;

/** Why nothing of ours can be made where this role would make it, before anything is; with what to do. */
export async function findObstacle(
  queryable: Pick<pg.Pool, 'query'>,
  migrations = readMigrations(),
): Promise<string | undefined> {
  const { rows } = await queryable.query<SchemaRow>(readSchema);
  const { schema, path, database, role, mayCreate, tables, history } = rows[0] as SchemaRow;
  if (schema === null) {
    const mend = oneSchema.test(path)
      ? `CREATE SCHEMA ${path} AUTHORIZATION ${role}`
      : `ALTER ROLE ${role} IN DATABASE ${database} SET search_path = public`;
    return `The search path of the role ${role} names no schema that it may use: run "${mend}".`;
  }
  const place = `The schema ${schema} of the database ${database}`;
  const names = history ? [...(await readHistory(queryable)).keys()] : [];
  if (!history && tables.includes('outfit_changes')) {
    return `${place} has the tables of a gateway without their history: restore the table _prisma_migrations, too.`;
  }
  const isForeign = history
    ? names.length > 0 && !migrations.some(({ name }) => names.includes(name))
    : tables.length > 0;
  if (isForeign) {
    const found = history
      ? `migrations (${names[0]})`
      : `tables (${tables.slice(0, 5).join(', ')})`;
    return `${place} has ${found} of another program: use another database, or a schema of its own: add ?schema=outfits to DATABASE_URL.`;
  }
  if (mayCreate) return undefined;
  return `The role ${role} may not make tables in the schema ${schema}: run "GRANT CREATE ON SCHEMA ${schema} TO ${role}" as its owner.`;
}

/** Polls: a waiting statement would hold a snapshot, and CREATE INDEX CONCURRENTLY waits for older snapshots. */
async function lock(client: pg.PoolClient): Promise<void> {
  const ask = `SELECT pg_try_advisory_lock(${prismaAdvisoryLock}) AS locked`;
  while (!(await client.query<{ locked: boolean }>(ask)).rows[0]?.locked) await sleep(200);
}

/** Milliseconds: longer than autovacuum takes to release a lock for a migration that waits. */
const lockTimeout = 1_500;
const retryPause = 2_000;
const maxAttempts = 60;
/** Milliseconds that a concurrent index waits for each older transaction. */
const indexLockTimeout = 300_000;
/** Retries of a deadlock: another tool waits for the advisory lock with a snapshot for which the index waits. */
const maxIndexAttempts = 5;
/** A migration that consists of one such statement, which cannot run in a transaction. */
const concurrentIndex = /^(?:CREATE|DROP) INDEX CONCURRENTLY IF (?:NOT )?EXISTS ("\w+")/m;

async function applyWithRetry(client: pg.PoolClient, migration: Migration): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await apply(client, migration);
    } catch (error) {
      const code = sqlStateOf((error as MigrationError).cause);
      const [retryable, attempts] = migration.index
        ? [deadlockDetected, maxIndexAttempts]
        : [lockNotAvailable, maxAttempts];
      if (code !== retryable || attempt === attempts) throw error;
      await sleep(retryPause);
    }
  }
}

async function apply(client: pg.PoolClient, migration: Migration): Promise<void> {
  const { name, script, checksum, index } = migration;
  try {
    if (index) await makeIndex(client, index, script);
    // Not the default of the server: after waiting for writers, a migration must see what they wrote.
    await client.query('BEGIN ISOLATION LEVEL READ COMMITTED');
    await client.query(`SET LOCAL lock_timeout = ${lockTimeout}`);
    if (!index) await client.query(script);
    await client.query(
      `INSERT INTO "_prisma_migrations" ("id", "checksum", "finished_at", "migration_name", "applied_steps_count")
       VALUES ($1, $2, now(), $3, 1)`,
      [randomUUID(), checksum, name],
    );
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {});
    const sentence = index
      ? `The index of migration ${name} could not be made, perhaps for a transaction that has been open for long; the next attempt starts again`
      : `Migration ${name} failed and was taken back`;
    throw new MigrationError(`${sentence}: ${messageOf(error)}.`, { cause: error });
  }
}

/** Outside of a transaction. An attempt that failed has left an invalid index. */
async function makeIndex(client: pg.PoolClient, index: string, script: string): Promise<void> {
  const { rows } = await client.query(
    'SELECT FROM pg_index WHERE indexrelid = to_regclass($1) AND NOT indisvalid',
    [index],
  );
  await client.query(`SET lock_timeout = ${indexLockTimeout}`);
  try {
    if (rows.length > 0) await client.query(`DROP INDEX CONCURRENTLY ${index}`);
    await client.query(script);
  } finally {
    await client.query('RESET lock_timeout').catch(() => {});
  }
}

/**
 * Migration name to checksum, for those that finished: Prisma has a row for one that it is applying, perhaps of a later
 * version than this one. @throws MigrationError
 */
async function readHistory(queryable: Pick<pg.Pool, 'query'>): Promise<Map<string, string>> {
  const { rows } = await queryable.query<{ name: string; checksum: string }>(
    `SELECT "migration_name" AS name, "checksum"
     FROM "_prisma_migrations" WHERE "rolled_back_at" IS NULL AND "finished_at" IS NOT NULL`,
  );
  if (rows.some((row) => row.name === olderMigration)) throw new MigrationError(olderDatabase);
  return new Map(rows.map((row) => [row.name, row.checksum]));
}

const unfinished = `SELECT "migration_name" AS name FROM "_prisma_migrations"
  WHERE "rolled_back_at" IS NULL AND "finished_at" IS NULL`;

function pendingOf(
  applied: ReadonlyMap<string, string>,
  migrations: readonly Migration[],
): Migration[] {
  const edited = migrations.find(
    ({ name, checksum, windowsChecksum }) =>
      ![checksum, windowsChecksum].includes(applied.get(name) ?? checksum),
  );
  if (edited) {
    throw new MigrationError(
      `Migration ${edited.name} is not the text that this database was migrated with: restore that file and add a new migration instead.`,
    );
  }
  return migrations.filter(({ name }) => !applied.has(name));
}

let ownMigrations: readonly Migration[] | undefined;

/** The migrations of this version, cached: each health check compares the database with them. */
export function readMigrations(): readonly Migration[] {
  ownMigrations ??= readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort()
    .map((name) => toMigration(name, readFileSync(`${folder}${name}/migration.sql`, 'utf8')));
  return ownMigrations;
}

export function toMigration(name: string, text: string): Migration {
  const script = text.replaceAll('\r\n', '\n');
  return {
    name,
    script,
    checksum: sha256(script),
    windowsChecksum: sha256(script.replaceAll('\n', '\r\n')),
    index: concurrentIndex.exec(script)?.[1],
  };
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

/** Names of the tables or functions that the migrations create; one that is made by `format` is a pattern of LIKE. */
export function namesOf(kind: 'FUNCTION' | 'TABLE'): string[] {
  const created = new RegExp(`CREATE (?:OR REPLACE )?${kind} "?([\\w%$]+)`, 'g');
  const scripts = readMigrations().map(({ script }) => script);
  const names = scripts.flatMap((script) => [...script.matchAll(created)].map(([, name]) => name));
  return [...new Set(names.map((name = '') => name.replace(/%\d\$s/g, '%')))];
}
