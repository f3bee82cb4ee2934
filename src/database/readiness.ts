// Readiness of a database: its version, role and settings fit, and all migrations are applied.
// In SQL: catalogues of the server.
import type pg from 'pg';
import { commandText } from '../config/package.ts';
import { messageOf, OperatorError } from '../errors.ts';
import { roleSettings } from './connection/session.ts';
import { isFull } from './errors.ts';
import {
  findObstacle,
  findPendingMigrations,
  MigrationError,
  namesOf,
  readMigrations,
} from './migrations.ts';

/** The database cannot be used as it is; the message is one sentence that says what to change. */
export class DatabaseNotReadyError extends OperatorError {
  override readonly name = 'DatabaseNotReadyError';

  constructor(
    message: string,
    /** Whether waiting can help. */
    readonly mayPass = true,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

type Queryable = Pick<pg.Pool, 'query'>;

/**
 * @param onUnset called instead of throwing for a missing setting
 * @returns a warning, as one sentence @throws DatabaseNotReadyError, MigrationError
 */
export async function checkReady(
  queryable: Queryable,
  description: string,
  onUnset?: () => void,
): Promise<string | undefined> {
  const { isReadOnly } = await checkServer(queryable, description);
  await checkSettings(queryable, description, onUnset);
  const pending = await findPendingMigrations(queryable).catch((error) => {
    throw explain(description, error);
  });
  if (pending.length > 0) {
    const isEmpty = pending.length === readMigrations().length;
    const obstacle = isEmpty ? await findObstacle(queryable) : undefined;
    throw new DatabaseNotReadyError(
      obstacle ??
        `The ${description} lacks ${pending.length} migration(s) (${pending.join(', ')}): run ${commandText('migrate')} first.`,
    );
  }
  if (!isReadOnly) return undefined;
  const statement = await findWriteStatement(queryable, description);
  return statement === undefined
    ? `The ${description} is a standby, not a primary: reads are served, writes are refused.`
    : `The ${description} is read-only by default: reads are served, writes are refused, until "${statement}" is run.`;
}

interface ServerRow {
  readonly version: number;
  readonly name: string;
  readonly encoding: string;
  readonly isReadOnly: boolean;
}

export async function checkServer(queryable: Queryable, description: string): Promise<ServerRow> {
  const row = await readRow<ServerRow>(
    queryable,
    description,
    `SELECT current_setting('server_version_num')::int AS version, version() AS name,
       getdatabaseencoding() AS encoding, current_setting('transaction_read_only')::boolean AS "isReadOnly"`,
  );
  const { version, name, encoding } = row;
  const other = otherKinds.find(({ pattern }) => pattern.test(name));
  if (other) {
    throw new DatabaseNotReadyError(
      `The ${description} is ${other.kind}, ${other.why}: use PostgreSQL itself.`,
      false,
    );
  }
  if (version < 150_000) {
    throw new DatabaseNotReadyError(
      `The ${description} is version ${Math.floor(version / 10_000)}: use PostgreSQL 15 or newer.`,
      false,
    );
  }
  if (encoding !== 'UTF8') {
    throw new DatabaseNotReadyError(
      `The ${description} is encoded in ${encoding}: use one that was made by "CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0".`,
    );
  }
  return row;
}

/**
 * The statement that ends that a server is read-only by default, as managed services make one whose disk is nearly full.
 * @returns undefined for a standby
 */
export async function findWriteStatement(
  queryable: Queryable,
  description = 'database',
): Promise<string | undefined> {
  const { statement } = await readRow<{ statement: string | null }>(
    queryable,
    description,
    `SELECT CASE WHEN pg_is_in_recovery() THEN NULL ELSE CASE source
       WHEN 'database' THEN format('ALTER DATABASE %I', current_database())
       WHEN 'user' THEN format('ALTER ROLE %I', session_user)
       WHEN 'database user' THEN format('ALTER ROLE %I IN DATABASE %I', session_user, current_database())
       ELSE 'ALTER SYSTEM' END || format(' SET %s = off', name) END AS statement
     FROM pg_settings WHERE name = 'default_transaction_read_only'`,
  );
  return statement ?? undefined;
}

/** Databases with the protocol of PostgreSQL that lack features which the gateway needs. */
const otherKinds = [
  {
    pattern: /CockroachDB/,
    kind: 'CockroachDB',
    why: 'which lacks the snapshots and triggers that keep answers and counts right',
  },
  {
    pattern: /-YB-/,
    kind: 'YugabyteDB',
    why: 'whose snapshots do not name what its other nodes have committed, so that answers would be stale',
  },
];

/** Checks the settings that transaction pooling loses, the privileges of the role, and distributed tables (Citus). */
async function checkSettings(
  queryable: Queryable,
  description: string,
  onUnset?: () => void,
): Promise<void> {
  const { lacking, grants, hiding, citus } = await readRow<{
    lacking: string | null;
    grants: string | null;
    hiding: string | null;
    citus: boolean;
  }>(queryable, description, readSettings, [
    [...namesOf('TABLE'), '_prisma_migrations'],
    namesOf('FUNCTION'),
  ]);
  if (hiding) {
    throw new DatabaseNotReadyError(
      `The ${description} hides rows from this role (row-level security): run "${hiding}", or give the role BYPASSRLS.`,
    );
  }
  if (grants) {
    throw new DatabaseNotReadyError(
      `The ${description} does not give this role the rights that the gateway needs: run "${grants}".`,
    );
  }
  if (lacking && onUnset) {
    onUnset();
  } else if (lacking) {
    throw new DatabaseNotReadyError(
      `The ${description} gives connections without the settings that the gateway needs, which a pooler of transactions cannot keep: run "${lacking}", and let the pooler reconnect.`,
    );
  }
  if (!citus) return;
  const { table } = await readRow<{ table: string | null }>(
    queryable,
    description,
    `SELECT min(logicalrelid::text) AS table FROM pg_dist_partition
     WHERE logicalrelid IN (SELECT to_regclass(quote_ident(name)) FROM unnest($1::text[]) AS name)`,
    [namesOf('TABLE')],
  );
  if (table) {
    throw new DatabaseNotReadyError(
      `The ${description} has the table ${table} distributed by Citus, which runs no triggers there, so that nothing is counted: run "SELECT undistribute_table('${table}')".`,
    );
  }
}

/** A role without any privilege to write is a read-only one by intention. */
const missingGrants = `
  SELECT string_agg(format('GRANT %s ON %s TO %I', kind, object, current_user), '; ') FROM (
    SELECT 'USAGE' AS kind, 'SCHEMA ' || relnamespace::regnamespace AS object
    FROM pg_class
    WHERE relname = 'outfit_counts_state' AND to_regclass('outfit_counts_state') IS NULL
      AND NOT has_schema_privilege(relnamespace, 'USAGE')
    UNION ALL
    SELECT string_agg(kind, ', '), object FROM (
      SELECT *, bool_or(has AND kind IN ('INSERT', 'UPDATE', 'DELETE') AND object !~ ' ') OVER () AS is_writer FROM (
        SELECT kind, name AS object, writes, has_table_privilege(to_regclass(name), kind) AS has
        FROM (VALUES
          ('SELECT', '{outfits,users,outfit_likes,outfit_like_counts,outfit_texts,outfit_changes,outfit_orderings,outfit_buckets,outfit_bucket_ranges,outfit_groups,outfit_key_limits,outfit_counts_state,_prisma_migrations}', false),
          ('INSERT', '{outfits,outfit_like_counts,outfit_likes,idempotency_keys,rate_limits}', true),
          ('UPDATE', '{outfits,outfit_like_counts,rate_limits}', true),
          ('DELETE', '{outfits,outfit_likes,idempotency_keys,rate_limits}', true),
          ('SELECT', '{idempotency_keys,rate_limits}', true)
        ) AS tables (kind, names, writes), unnest(names::text[]) AS name
        UNION ALL
        SELECT kind, 'SEQUENCE outfits_id_seq', true, has_sequence_privilege(to_regclass('outfits_id_seq'), kind)
        FROM unnest('{USAGE,SELECT,UPDATE}'::text[]) AS kind
      ) AS rights
    ) AS needed
    WHERE NOT has AND (is_writer OR NOT writes)
    GROUP BY object
    UNION ALL
    -- Trigger functions need no right to be executed by a trigger.
    SELECT 'EXECUTE', 'FUNCTION ' || string_agg(oid::regprocedure::text, ', ' ORDER BY proname)
    FROM pg_proc
    WHERE pronamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('outfits'))
      -- For others, and for tables that are attached both ways.
      AND proname LIKE ANY ($2::text[]) AND proname !~ '^(?:save|delete)_' AND prorettype <> 'trigger'::regtype
      AND NOT has_function_privilege(oid, 'EXECUTE')
    HAVING count(*) > 0
  ) AS missing`;

/** The statements that end row-level security, which would hide rows from the role. */
const rowSecurity = `
  SELECT string_agg(format('ALTER TABLE %s DISABLE ROW LEVEL SECURITY', oid::regclass), '; ' ORDER BY relname)
  FROM pg_class
  WHERE relrowsecurity AND relname = ANY ($1::text[]) AND oid = to_regclass(quote_ident(relname))
    AND row_security_active(oid)`;

/** Returns the statements that grant the role, or set for it, what is missing. */
const readSettings = `
  SELECT to_regclass('pg_dist_partition') IS NOT NULL AS citus, (${missingGrants}) AS grants, (${rowSecurity}) AS hiding, (
    SELECT string_agg(format('ALTER ROLE %I IN DATABASE %I SET %s = %L',
      current_user, current_database(), name, wanted), '; ') FILTER (WHERE lacks)
    FROM (VALUES
      ('statement_timeout', '30s', current_setting('statement_timeout') = '0', true),
      ('idle_in_transaction_session_timeout', '30s',
        current_setting('idle_in_transaction_session_timeout') = '0', true),
      ('TimeZone', 'UTC', current_setting('TimeZone') NOT IN ('UTC', 'Etc/UTC', 'GMT'), true),
      -- Not every operating system supports it.
      ('client_connection_check_interval', '500ms',
        current_setting('client_connection_check_interval') = '0', false),
      ${Object.entries(roleSettings).map(([name, wanted]) => `('${name}', '${wanted}', current_setting('${name}') <> '${wanted}', true)`)}
    ) AS settings (name, wanted, lacks, is_needed)
    HAVING bool_or(lacks AND is_needed)
  ) AS lacking`;

async function readRow<Row extends object>(
  queryable: Queryable,
  description: string,
  statement: string,
  values: readonly unknown[] = [],
): Promise<Row> {
  try {
    const { rows } = await queryable.query<Row>(statement, [...values]);
    if (!rows[0]) throw new Error('it gives no row');
    return rows[0];
  } catch (error) {
    throw explain(description, error);
  }
}

/** The error with a sentence for the operator. @param error of the connection or a check */
export function explain(description: string, error: unknown): Error {
  if (error instanceof DatabaseNotReadyError || error instanceof MigrationError) return error;
  const reason = messageOf(error);
  const found = isFull(error)
    ? `has no free connection (${reason}): raise its max_connections or the CONNECTION LIMIT of the role or database, or lower DATABASE_POOL_MAX`
    : noTransactions.test(reason)
      ? 'is behind a pooler that keeps no transactions: set its pool_mode to transaction, and DATABASE_POOLER to transaction'
      : noPassword.test(reason)
        ? 'asks for a password, but its URL has none: add it, or set PGPASSWORD'
        : `cannot be reached (${reason}): start it, or correct DATABASE_URL`;
  return new DatabaseNotReadyError(`The ${description} ${found}.`, true, { cause: error });
}

const noTransactions = /statement pooling mode/;
/** Of `pg`. */
const noPassword = /client password must be a/;
