// The configured database, PostgreSQL or embedded: connection pool, snapshots, timeouts, failover, close.
import type pg from 'pg';
import type { Config } from '../config/config.ts';
import { type Snapshots, watchEmbedded, watchServer } from './changes/snapshots.ts';
import type { ObserveStatement } from './connection/observe.ts';
import { TaskPool } from './connection/pool.ts';
import { readServerUrl } from './connection/server-url.ts';
import { ServerWatch } from './connection/server-watch.ts';
import { createSession, type Pooling, type Session, Sockets } from './connection/session.ts';
import { type EmbeddedDatabase, openEmbedded } from './embedded/embedded.ts';
import { isPreparedNameError, isReadOnlyError, isSchemaError } from './errors.ts';
import { type Monitor, type OnChange, ServerMonitor } from './monitor.ts';
import { type Client, createPrisma } from './prisma/client.ts';
import { type ReadRows, readRows } from './read.ts';
import type { TaskScope } from './task.ts';

export interface Database {
  /** For the log; without the password. */
  readonly description: string;
  readonly kind: 'PostgreSQL' | 'embedded';
  readonly prisma: Client;
  /** The connections of `prisma`, for statements that Prisma cannot express. */
  readonly pool: TaskPool;
  readonly read: ReadRows;
  readonly snapshots: Snapshots;
  /** Rejects the result of a task that has read from a fenced server. @throws DatabaseAwayError */
  readonly checkServers: (task: Pick<TaskScope, 'servers'>) => void;
  /** Resolves when the embedded database fails; never on PostgreSQL. */
  readonly failed: Promise<Error>;
  /** Starts the health checks: statements fail fast while PostgreSQL is down. @throws when waiting cannot help */
  monitor(onChange: OnChange, warn?: Warn): Promise<Monitor>;
  close(): Promise<void>;
}

type Warn = (sentence: string) => void;

export type DatabaseConfig = Pick<Config, 'databaseUrl' | 'databasePoolMax' | 'dataDir'> &
  Partial<Pick<Config, 'databasePooler' | 'expensiveQueryTimeout'>>;

/** Milliseconds after which PostgreSQL cancels a statement or ends an idle transaction. */
const defaultStatementTimeout = 30_000;
/** Milliseconds after which closing cuts the connections, since the server may not answer. */
const closeTimeout = 1_000;

/** Opens the configured database, without a connection to PostgreSQL yet. @throws EmbeddedDatabaseError, ConfigError */
export async function openDatabase(
  config: DatabaseConfig,
  statementTimeout = defaultStatementTimeout,
  observers: readonly ObserveStatement[] = [],
): Promise<Database> {
  const { databaseUrl, dataDir } = config;
  return databaseUrl === undefined
    ? openInProcess(dataDir, statementTimeout, observers)
    : new ServerDatabase(databaseUrl, config, statementTimeout, observers);
}

async function openInProcess(
  dataDir: string,
  statementTimeout: number,
  observers: readonly ObserveStatement[],
): Promise<Database> {
  const embedded = await openEmbedded(dataDir);
  const pool = embeddedPool(embedded, observers);
  const prisma = createPrisma(pool);
  return {
    kind: 'embedded',
    description: `embedded database in ${dataDir}`,
    prisma,
    pool,
    read: readRows(pool),
    snapshots: watchEmbedded(pool, statementTimeout),
    checkServers: () => {},
    failed: embedded.failed,
    // It is in this process, and never down while that runs.
    monitor: async () => ({ problem: () => undefined }),
    async close() {
      await prisma.$disconnect();
      await pool.end();
      await embedded.close();
    },
  };
}

class ServerDatabase implements Database {
  readonly kind = 'PostgreSQL';
  readonly description: string;
  readonly prisma: Client;
  readonly pool: TaskPool;
  readonly read: ReadRows;
  readonly snapshots: Snapshots;
  readonly failed = new Promise<Error>(() => {});
  readonly #pooling: Pooling;
  readonly #session: Session;
  readonly #sockets = new Sockets();
  readonly #watch: ServerWatch;
  #monitor: ServerMonitor | undefined;
  #warn: Warn = () => {};

  constructor(
    url: string,
    {
      databasePoolMax: max,
      databasePooler: pooling = 'session',
      expensiveQueryTimeout = defaultStatementTimeout,
    }: DatabaseConfig,
    statementTimeout: number,
    observers: readonly ObserveStatement[],
  ) {
    const server = readServerUrl(url);
    this.description = server.description;
    this.#pooling = pooling;
    const session = createSession(server.config, pooling, statementTimeout);
    this.#session = session;
    const stream = this.#sockets.open;
    const watch = new ServerWatch(
      () => this.snapshots.renew(),
      () => this.#failOver(),
    );
    watch.isPerTransaction = pooling === 'transaction';
    this.#watch = watch;
    this.pool = new TaskPool(
      { ...session.config, stream, max, observers },
      expensiveQueryTimeout,
      session.Client,
      watch,
    );
    this.pool.on('connect', (client) => this.#watchErrors(client as unknown as pg.Client));
    this.prisma = createPrisma(this.pool);
    this.read = readRows(this.pool);
    this.snapshots = watchServer(
      () => this.#watchErrors(new session.Client({ stream })),
      statementTimeout,
      (identity) => watch.observe(identity),
    );
  }

  readonly checkServers = ({ servers }: Pick<TaskScope, 'servers'>) => this.#watch.check(servers);

  #failOver(): void {
    // Truncates the change log now, not with the next snapshot: stale answers are given without a snapshot.
    this.snapshots.changes.add(undefined);
    this.#warn(
      `The ${this.description} is another server than before: connections to others were cut.`,
    );
  }

  /** Reacts to error codes that say more than that one statement has failed. */
  #watchErrors(client: pg.Client): pg.Client {
    client.connection.on('errorMessage', ({ code }: pg.DatabaseError) => {
      if (isSchemaError(code)) this.#monitor?.checkNow();
      if (isPreparedNameError(code)) this.#onPoolerDetected();
      // A new connection may be writable, or lead to the new primary.
      if (isReadOnlyError(code)) setImmediate(() => client.connection.stream.destroy());
    });
    return client;
  }

  readonly #onPoolerDetected = () => {
    if (this.#watch.isPerTransaction) return;
    this.#session.disablePreparedStatements();
    this.#watch.isPerTransaction = true;
    this.#warn(
      `The ${this.description} is behind a pooler that keeps only transactions together: set DATABASE_POOLER=transaction.`,
    );
  };

  async monitor(onChange: OnChange, warn: Warn = () => {}): Promise<Monitor> {
    this.#warn = warn;
    const monitor = new ServerMonitor({
      session: this.#session,
      description: this.description,
      sockets: this.#sockets,
      onChange,
      onConnect: (client) => this.#watch.register(client, this.#sockets.isRefusing),
      // A connection has set its settings, unless the role has to: if they are gone, a pooler has shared the session.
      onUnset: this.#pooling === 'session' ? this.#onPoolerDetected : undefined,
      onWarning: warn,
    });
    await monitor.start();
    this.#monitor = monitor;
    return monitor;
  }

  async close(): Promise<void> {
    this.#monitor?.close();
    const timer = setTimeout(() => this.#sockets.refuse(new Error('closed')), closeTimeout);
    this.snapshots.close();
    await this.prisma.$disconnect();
    await this.pool.end();
    clearTimeout(timer);
  }
}

function embeddedPool(
  { socketFolder }: EmbeddedDatabase,
  observers: readonly ObserveStatement[],
): TaskPool {
  return new TaskPool(
    {
      observers,
      host: socketFolder,
      user: 'postgres',
      database: 'postgres',
      // PGlite has one session: statements of a second connection would interleave with those of the first.
      max: 1,
      idleTimeoutMillis: 0,
      connectionTimeoutMillis: defaultStatementTimeout,
      // The prepared statements of a lost connection still exist in that session, under the same names.
      onConnect: async (client) => {
        await client.query('DEALLOCATE ALL');
      },
    },
    // PGlite does not cancel a statement.
    undefined,
  );
}
