import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import type { Config } from '../config.ts';
import { PrismaClient } from '../generated/prisma/client.ts';
import { type EmbeddedDatabase, openEmbedded } from './embedded.ts';
import { nameStatement, type ReadRows, readRows } from './read.ts';
import { type Snapshots, watchEmbedded, watchServer } from './snapshots.ts';

/** PostgreSQL or the embedded database, the same to everyone who uses it. */
export interface Database {
  /** For the start-up log; holds no password. */
  readonly description: string;
  readonly kind: 'PostgreSQL' | 'embedded';
  readonly prisma: PrismaClient;
  /** The connections that `prisma` uses, for what Prisma cannot express. */
  readonly pool: pg.Pool;
  /** Reads rows with a statement of our own. */
  readonly read: ReadRows;
  readonly snapshots: Snapshots;
  /** Resolves if the embedded database fails; never on PostgreSQL. */
  readonly failed: Promise<Error>;
  close(): Promise<void>;
}

export type DatabaseConfig = Pick<Config, 'databaseUrl' | 'databasePoolMax' | 'dataDir'>;

/** Milliseconds to wait for a free connection before the request fails. */
const connectionTimeout = 5_000;
/** Milliseconds after which PostgreSQL ends a statement, or a transaction nobody goes on with. */
const statementTimeout = 30_000;

/**
 * Opens the database that the configuration names. PostgreSQL is not contacted until first use.
 * @throws EmbeddedDatabaseError when the embedded database cannot be opened
 */
export async function openDatabase(config: DatabaseConfig): Promise<Database> {
  if (config.databaseUrl === undefined) {
    const embedded = await openEmbedded(config.dataDir);
    const pool = embeddedPool(embedded);
    const description = `embedded database in ${config.dataDir}`;
    return connect('embedded', description, pool, watchEmbedded(pool), embedded);
  }
  const { hostname, port, pathname } = new URL(config.databaseUrl);
  const description = `PostgreSQL database ${pathname.slice(1)} on ${hostname || 'localhost'}${port && `:${port}`}`;
  const session = serverSession(config.databaseUrl);
  const pool = new pg.Pool({ ...session, max: config.databasePoolMax });
  return connect(
    'PostgreSQL',
    description,
    pool,
    watchServer({ ...session, query_timeout: connectionTimeout }),
  );
}

function connect(
  kind: Database['kind'],
  description: string,
  pool: pg.Pool,
  snapshots: Snapshots,
  embedded?: EmbeddedDatabase,
): Database {
  // An idle connection that breaks is replaced by the pool; without a listener it ends the process.
  pool.on('error', () => {});
  const prisma = new PrismaClient({
    adapter: new PrismaPg(pool, { statementNameGenerator: ({ sql }) => nameStatement(sql) }),
  });
  return {
    kind,
    description,
    prisma,
    pool,
    read: readRows(pool),
    snapshots,
    failed: embedded?.failed ?? new Promise(() => {}),
    async close() {
      await snapshots.close();
      await prisma.$disconnect();
      await pool.end();
      await embedded?.close();
    },
  };
}

/** How every connection to PostgreSQL is made. */
function serverSession(connectionString: string) {
  return {
    connectionString,
    connectionTimeoutMillis: connectionTimeout,
    statement_timeout: statementTimeout,
    idle_in_transaction_session_timeout: statementTimeout,
    application_name: 'outfit-gateway',
    // Sessions in another time zone shift timestamps without a word.
    options: '-c TimeZone=UTC',
  };
}

function embeddedPool({ socketFolder }: EmbeddedDatabase): pg.Pool {
  return new pg.Pool({
    host: socketFolder,
    user: 'postgres',
    database: 'postgres',
    // PGlite is one session: a second connection would interleave with the first one's statements.
    max: 1,
    idleTimeoutMillis: 0,
    connectionTimeoutMillis: statementTimeout,
    // What a lost connection had prepared is still there, and its names would clash.
    onConnect: async (client) => {
      await client.query('DEALLOCATE ALL');
    },
  });
}
