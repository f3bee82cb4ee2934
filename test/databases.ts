// What the databases of a whole test run are made from: a real PostgreSQL, unless TEST_DATABASE_URL names
// one, and folders of the embedded database to be copied, because making one takes seconds of computing.
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { readConfig } from '../src/config.ts';
import { openDatabase } from '../src/database/database.ts';
import { migrate } from '../src/database/migrations.ts';
import { startEmbeddedPostgres } from './embedded-postgres.js';

declare module 'vitest' {
  interface ProvidedContext {
    postgresUrl: string;
    /** Files of an embedded database without a migration. */
    embeddedEmpty: string;
    /** The same, migrated. */
    embeddedTemplate: string;
  }
}

/** Makes both at the same time, and gives what removes them. */
export default async function makeDatabases(project: TestProject): Promise<() => Promise<void>> {
  const folder = mkdtempSync(join(tmpdir(), 'outfit-gateway-template-'));
  project.provide('embeddedEmpty', join(folder, 'empty'));
  project.provide('embeddedTemplate', join(folder, 'pgdata'));
  const [close] = await Promise.all([startPostgres(project), makeTemplates(folder)]);
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
  project.provide('postgresUrl', given || (postgres?.url ?? ''));
  return async () => postgres?.close();
}

async function makeTemplates(folder: string): Promise<void> {
  const config = readConfig({ DATA_DIR: folder });
  const made = await openDatabase(config);
  await made.close();
  cpSync(join(folder, 'pgdata'), join(folder, 'empty'), { recursive: true });
  const opened = await openDatabase(config);
  await migrate(opened.pool, () => {});
  await opened.close();
}
