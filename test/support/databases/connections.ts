// Connections to the databases of the tests, past any gateway.
import pg from 'pg';
import { onTestFinished } from 'vitest';
import { readConfig } from '../../../src/config/config.ts';
import { type Database, openDatabase } from '../../../src/database/database.ts';

/** The URL of the server and database of a pool. */
export function databaseUrlOf({ options }: Pick<pg.Pool, 'options'>): string {
  const { host = '', port = 5432, user = '', password, database } = options;
  const credentials = `${encodeURIComponent(user)}:${encodeURIComponent(String(password ?? ''))}`;
  // A host that is a folder of sockets is a parameter.
  return host.startsWith('/')
    ? `postgresql://${credentials}@localhost:${port}/${database}?host=${encodeURIComponent(host)}`
    : `postgresql://${credentials}@${host}:${port}/${database}`;
}

/** Ends by itself when its server or database goes. */
export async function connectTo(url = ''): Promise<pg.Client> {
  const client = new pg.Client(url);
  client.on('error', () => {});
  await client.connect();
  return client;
}

/** The same, until the test has ended. */
export async function connectForTest(url = ''): Promise<pg.Client> {
  const client = await connectTo(url);
  onTestFinished(() => client.end());
  return client;
}

/** Runs statements on a connection of their own. */
export async function execute(url: string, statements: string): Promise<pg.QueryResult> {
  const client = await connectTo(url);
  try {
    return await client.query(statements);
  } finally {
    await client.end();
  }
}

/** Opens the database of an environment, of either kind, for as long as `work` takes. */
export async function withDatabase<Result>(
  environment: Readonly<Record<string, string>>,
  work: (database: Database) => Promise<Result>,
): Promise<Result> {
  const database = await openDatabase(readConfig(environment));
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}
