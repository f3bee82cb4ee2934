// PostgreSQL or the embedded database as one thing with close(): pools, time-outs.
import { PrismaPg } from '@prisma/adapter-pg';
import type pg from 'pg';
import type { Config } from '../config.ts';
import { PrismaClient } from '../generated/prisma/client.ts';
import { type Snapshots, watchEmbedded, watchServer } from './changes/snapshots.ts';
import { TaskPool } from './connection/pool.ts';
import { ServerWatch } from './connection/server-watch.ts';
import { createSession, Sockets } from './connection/session.ts';
import { type EmbeddedDatabase, openEmbedded } from './embedded/embedded.ts';
import { isPreparedNameError, isSchemaError } from './errors.ts';
import { type Monitor, type OnChange, startMonitor } from './monitor.ts';
import { nameStatement, type ReadRows, readRows } from './read.ts';
import type { TaskScope } from './task.ts';

export interface Database {
  /** For the start-up log; holds no password. */
  readonly description: string;
  readonly kind: 'PostgreSQL' | 'embedded';
  readonly prisma: PrismaClient;
  /** The connections that `prisma` uses, for what Prisma cannot express. */
  readonly pool: TaskPool;
  readonly read: ReadRows;
  readonly snapshots: Snapshots;
  /** Called at the end of a task, before its result is told. @throws DatabaseAwayError when its server was left */
  checkServers(task: Pick<TaskScope, 'servers'>): void;
  /** Looks which server new connections lead to, as another process has met this one. */
  probeServer(identity: string): Promise<void>;
  onFailover(callback: (identity: string) => void): void;
  /** Resolves if the embedded database fails; never on PostgreSQL. */
  readonly failed: Promise<Error>;
  /** From now on, statements fail at once while PostgreSQL is away or not migrated. @throws when waiting cannot help */
  monitor(onChange: OnChange, warn?: Warn): Promise<Monitor>;
  close(): Promise<void>;
}

type Warn = (sentence: string) => void;

export type DatabaseConfig = Pick<Config, 'databaseUrl' | 'databasePoolMax' | 'dataDir'> &
  Partial<Pick<Config, 'databasePooler' | 'expensiveQueryTimeout'>>;

/** Milliseconds after which PostgreSQL ends a statement, or a transaction nobody goes on with. */
const defaultStatementTimeout = 30_000;
/** Milliseconds that closing may take: a server that does not answer must not hold it up. */
const closeTimeout = 1_000;

/** Opens the configured database; PostgreSQL is not contacted yet. @throws EmbeddedDatabaseError, ConfigError */
export async function openDatabase(
  config: DatabaseConfig,
  statementTimeout = defaultStatementTimeout,
): Promise<Database> {
  const { databaseUrl, dataDir } = config;
  return databaseUrl === undefined
    ? openInProcess(dataDir, statementTimeout)
    : openServer(databaseUrl, config, statementTimeout);
}

async function openInProcess(dataDir: string, statementTimeout: number): Promise<Database> {
  const embedded = await openEmbedded(dataDir);
  const pool = embeddedPool(embedded);
  const prisma = createPrisma(pool);
  return {
    kind: 'embedded',
    description: `embedded database in ${dataDir}`,
    prisma,
    pool,
    read: readRows(pool),
    snapshots: watchEmbedded(pool, statementTimeout),
    checkServers: () => {},
    probeServer: async () => {},
    onFailover: () => {},
    failed: embedded.failed,
    // It is migrated when it is opened, and goes away with the process only.
    monitor: async () => ({
      problem: () => undefined,
      ready: Promise.resolve(),
      checkNow: () => {},
      close: () => {},
    }),
    async close() {
      await prisma.$disconnect();
      await pool.end();
      await embedded.close();
    },
  };
}

function openServer(
  url: string,
  {
    databasePoolMax: max,
    databasePooler: pooling = 'session',
    expensiveQueryTimeout: expensive = defaultStatementTimeout / 1000,
  }: DatabaseConfig,
  statementTimeout: number,
): Database {
  const description = describeServer(url);
  const session = createSession(url, pooling, statementTimeout);
  const sockets = new Sockets();
  const guarded = { stream: sockets.open };
  let monitor: Monitor | undefined;
  let warn: Warn | undefined;
  const moveCallbacks: ((identity: string) => void)[] = [];
  const watch = new ServerWatch(
    () => snapshots.renew(),
    (identity) => {
      // At once, and not with the next snapshot: answers that may be old are given without one.
      snapshots.changes.add(undefined);
      for (const callback of moveCallbacks) callback(identity);
    },
  );
  watch.isPerTransaction = pooling === 'transaction';
  const pool = new TaskPool(
    { ...session.config, ...guarded, max },
    expensive * 1000,
    session.Client,
    watch,
  );
  const prisma = createPrisma(pool);
  const snapshots = watchServer(
    () => heed(new session.Client(guarded)),
    (identity) => watch.observe(identity),
  );
  const noticePooler = () => {
    session.disablePreparedStatements();
    watch.isPerTransaction = true;
    warn?.(
      `The ${description} is behind a pooler that keeps only transactions together: set DATABASE_POOLER=transaction.`,
    );
    warn = undefined;
  };
  /** What a connection fails with says more than that the statement did. */
  const heed = (client: pg.Client): pg.Client => {
    client.connection.on('errorMessage', ({ code }: pg.DatabaseError) => {
      if (isSchemaError(code)) monitor?.checkNow();
      if (isPreparedNameError(code)) noticePooler();
    });
    return client;
  };
  pool.on('connect', (client) => heed(client as unknown as pg.Client));
  return {
    kind: 'PostgreSQL',
    description,
    prisma,
    pool,
    read: readRows(pool),
    snapshots,
    checkServers: ({ servers }) => watch.check(servers),
    probeServer: (identity) => watch.probe(identity),
    onFailover: (callback) => void moveCallbacks.push(callback),
    failed: new Promise(() => {}),
    async monitor(onChange, onWarning) {
      warn = onWarning;
      moveCallbacks.push(() =>
        onWarning?.(
          `The ${description} is another server than before: connections to others were cut.`,
        ),
      );
      // Each connection has set what it needs, unless the role must: so a pooler has changed its session.
      const onUnset = pooling === 'session' ? noticePooler : undefined;
      const onConnect = (client: pg.Client) => watch.register(client, sockets.isRefusing);
      monitor = await startMonitor(session, description, sockets, onChange, onConnect, onUnset);
      return monitor;
    },
    async close() {
      monitor?.close();
      const timer = setTimeout(() => sockets.refuse(new Error('closed')), closeTimeout);
      await snapshots.close();
      await prisma.$disconnect();
      await pool.end();
      clearTimeout(timer);
    },
  };
}

function createPrisma(pool: pg.Pool): PrismaClient {
  // An idle connection that breaks is replaced by the pool; without a listener it ends the process.
  pool.on('error', () => {});
  return new PrismaClient({
    adapter: new PrismaPg(pool, { statementNameGenerator: ({ sql }) => nameStatement(sql) }),
  });
}

export function describeServer(url: string): string {
  const { hostname, port, pathname } = new URL(url);
  return `PostgreSQL database ${pathname.slice(1)} on ${hostname || 'localhost'}${port && `:${port}`}`;
}

function embeddedPool({ socketFolder }: EmbeddedDatabase): TaskPool {
  return new TaskPool(
    {
      host: socketFolder,
      user: 'postgres',
      database: 'postgres',
      // PGlite is one session: a second connection would interleave with the first one's statements.
      max: 1,
      idleTimeoutMillis: 0,
      connectionTimeoutMillis: defaultStatementTimeout,
      // What a lost connection had prepared is still there, and its names would clash.
      onConnect: async (client) => {
        await client.query('DEALLOCATE ALL');
      },
    },
    // Its one thread goes on with a statement, whoever has left.
    undefined,
  );
}
