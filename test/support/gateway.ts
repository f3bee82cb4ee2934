// The one helper of the tests: databases, and gateways on them.
import { cpSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import type { FastifyInstance, LightMyRequestResponse } from 'fastify';
import { print } from 'graphql';
import { afterAll, beforeAll, inject, onTestFinished } from 'vitest';
import { type AppOptions, buildApp } from '../../src/app.ts';
import { type Config, readConfig } from '../../src/config/config.ts';
import { type Database, openDatabase } from '../../src/database/database.ts';
import { createLog } from '../../src/observability/log.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import type { OutfitRow } from '../../src/outfits/row.ts';
import { raiseSequences, saveOutfits } from '../../src/outfits/writes/bulk.ts';
import { makeDatabaseFolder } from './databases/database-folder.js';
import { makeDatabase, migrateDatabase, type TestDatabase } from './databases/test-database.ts';

export const databaseKinds = ['PostgreSQL', 'embedded'] as const;
export type DatabaseKind = (typeof databaseKinds)[number];

/** @param server URL of the PostgreSQL server; that of all tests, unless one needs its own */
export async function makeEmptyDatabase(
  kind: DatabaseKind,
  server = inject('postgresUrl'),
): Promise<TestDatabase> {
  if (kind === 'embedded') {
    const folder = makeDatabaseFolder('test');
    return {
      environment: { DATA_DIR: folder },
      remove: async () => rmSync(folder, { recursive: true, force: true }),
    };
  }
  return makeDatabase(server);
}

/** The same, already migrated. */
export async function makeMigratedDatabase(
  kind: DatabaseKind,
  server?: string,
): Promise<TestDatabase> {
  if (kind === 'PostgreSQL' && server === undefined) {
    return makeDatabase(inject('postgresUrl'), inject('postgresTemplate'));
  }
  const testDatabase = await makeEmptyDatabase(kind, server);
  if (kind === 'embedded') {
    await copyEmbedded(testDatabase);
    return testDatabase;
  }
  await migrateDatabase(testDatabase.environment);
  return testDatabase;
}

/** Compiled once: the thread of each embedded database gets what V8 still has of the same bytes. */
let compiled: Promise<WebAssembly.Module> | undefined;

async function copyEmbedded({ environment }: TestDatabase): Promise<void> {
  const folder = join(environment['DATA_DIR'] ?? '', 'pgdata');
  cpSync(inject('embeddedTemplate'), folder, { recursive: true });
  const pglite = createRequire(import.meta.url).resolve('@electric-sql/pglite');
  compiled ??= WebAssembly.compile(readFileSync(join(pglite, '../pglite.wasm')));
  await compiled;
}

export interface TestGateway {
  readonly app: FastifyInstance;
  readonly database: Database;
  readonly config: Config;
  get(url: string, headers?: Record<string, string>): Promise<LightMyRequestResponse>;
  /** Runs a document and gives `data`; throws on errors. */
  query<Data, Variables>(
    document: TypedDocumentNode<Data, Variables>,
    variables: Variables,
  ): Promise<Data>;
  /** Runs any document and gives the whole answer. */
  post(
    query: string,
    variables?: object,
    headers?: Record<string, string>,
  ): Promise<{ data?: unknown; errors?: GraphQLErrorShape[] }>;
  close(): Promise<void>;
}

export interface GraphQLErrorShape {
  readonly message: string;
  readonly extensions?: { readonly code?: string };
}

/** The global id of an outfit, as GraphQL has it; and that of a user. */
export const outfitId = (id: number) => Buffer.from(`Outfit:${id}`).toString('base64');
export const userId = (id: number) => Buffer.from(`User:${id}`).toString('base64');

/** A migrated database of the given kind with `rows` in it, and a gateway on it. */
export async function openGateway(
  kind: DatabaseKind,
  rows: readonly OutfitRow[] = [],
  environment: Record<string, string> = {},
  { server, ...options }: AppOptions & { readonly server?: string } = {},
): Promise<TestGateway> {
  const testDatabase = await makeMigratedDatabase(kind, server);
  const config = readConfig({ ...testDatabase.environment, ...environment });
  const database = await openDatabase(config, config.requestTimeout);
  if (rows.length > 0) await saveOutfits(database.pool, rows);
  await raiseSequences(database.pool);
  const app = await buildApp(config, database, options);
  return gatewayOf(app, database, config, async () => {
    await app.close();
    await database.close();
    await testDatabase.remove();
  });
}

function gatewayOf(
  app: FastifyInstance,
  database: Database,
  config: Config,
  close: TestGateway['close'],
): TestGateway {
  const post: TestGateway['post'] = async (query, variables = {}, headers = {}) => {
    const payload = { query, variables };
    return (await app.inject({ method: 'POST', url: '/graphql', headers, payload })).json();
  };
  return {
    ...{ app, database, config, post, close },
    get: (url, headers = {}) =>
      app.inject({ method: 'GET', url, headers: { host: 'shop.test', ...headers } }),
    async query(document, variables) {
      const { data, errors } = await post(print(document), variables as object);
      if (errors) throw new Error(JSON.stringify(errors));
      return data as never;
    },
  };
}

/** The same for the running test. */
export async function openForTest(...given: Parameters<typeof openGateway>): Promise<TestGateway> {
  const gateway = await openGateway(...given);
  onTestFinished(() => gateway.close());
  return gateway;
}

/** The same for all tests of a file or group: open from before the first one until after the last one. */
export function useGateway(...given: Parameters<typeof openGateway>): TestGateway {
  let opened: TestGateway | undefined;
  beforeAll(async () => {
    opened = await openGateway(...given);
  });
  afterAll(() => opened?.close());
  return new Proxy({} as TestGateway, {
    get: (_target, name) => opened && Reflect.get(opened, name),
  });
}

/** Another app on an open database, for the running test. */
export async function buildForTest(...given: Parameters<typeof buildApp>) {
  const app = await buildApp(...given);
  onTestFinished(() => app.close());
  return app;
}

/** A gateway with other settings on the database of an open one, for the running test. */
export async function openBeside(
  { database }: Pick<TestGateway, 'database'>,
  environment: Record<string, string>,
  options: AppOptions = {},
): Promise<TestGateway> {
  const config = readConfig(environment);
  const app = await buildForTest(config, database, options);
  return gatewayOf(app, database, config, async () => {});
}

/** The same, with metrics that have counted nothing yet and a log whose lines are kept. */
export async function buildObserved(
  { database, config }: Pick<TestGateway, 'database' | 'config'>,
  level?: 'debug' | 'info',
) {
  const metrics = new Metrics(database);
  const log = keepLog(level);
  const app = await buildForTest(config, database, { metrics, logger: log.logger });
  return { app, log, metrics: async () => (await metrics.print()).text };
}

/** A log whose lines are kept. */
export function keepLog(level: 'debug' | 'info' = 'info') {
  let text = '';
  return {
    logger: createLog(level, { write: (chunk) => (text += chunk) }),
    text: () => text,
    lines: () =>
      text
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line)),
  };
}
