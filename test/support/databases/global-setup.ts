// What the databases of a whole test run are made from: a real PostgreSQL, unless TEST_DATABASE_URL names
// one, with a migrated database to be copied, and folders of the embedded database to be copied, because making
// and migrating one takes seconds of computing.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { seedDemo } from '../../../src/process/demo/seed.ts';
import { makeDatabaseFolder } from './database-folder.js';
import { startEmbeddedPostgres } from './embedded-postgres.js';
import { makeDatabase, migrateDatabase } from './test-database.ts';

declare module 'vitest' {
  interface ProvidedContext {
    postgresUrl: string;
    /** Name of a migrated database of that server: a template of others. */
    postgresTemplate: string;
    /** The same, filled with the demonstration set, which takes a gateway longer than to start. */
    postgresDemo: string;
    /** Files of a migrated embedded database. */
    embeddedTemplate: string;
  }
}

/** Makes both at the same time, and gives what removes them. */
export default async function makeDatabases(project: TestProject): Promise<() => Promise<void>> {
  const folder = makeDatabaseFolder('template');
  project.provide('embeddedTemplate', join(folder, 'pgdata'));
  const [close] = await Promise.all([
    startPostgres(project),
    migrateDatabase({ DATA_DIR: folder }),
  ]);
  return async () => {
    rmSync(folder, { recursive: true, force: true });
    await close();
  };
}

async function startPostgres(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env['TEST_DATABASE_URL'];
  // Its databases go with it: there is nothing to be made sure of.
  const postgres = given
    ? undefined
    : await startEmbeddedPostgres(['-c', 'fsync=off', '-c', 'max_prepared_transactions=10']);
  const url = given || (postgres?.url ?? '');
  const remove = await providePostgres(project, url);
  const demo = await makeDatabase(url, project.getProvidedContext().postgresTemplate);
  await migrateDatabase(demo.environment, seedDemo);
  project.provide('postgresDemo', demo.name);
  return async () => {
    await demo.remove();
    await remove();
    await postgres?.close();
  };
}

/** Names a server to the tests, with a migrated database in it; gives what removes that. */
export async function providePostgres(
  project: TestProject,
  server: string,
): Promise<() => Promise<void>> {
  const testDatabase = await makeDatabase(server);
  await migrateDatabase(testDatabase.environment);
  project.provide('postgresUrl', server);
  project.provide('postgresTemplate', testDatabase.name);
  return testDatabase.remove;
}
