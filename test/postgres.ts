// Starts a real PostgreSQL for the whole test run, unless TEST_DATABASE_URL names one.
import type { TestProject } from 'vitest/node';
import { startEmbeddedPostgres } from './embedded-postgres.js';

declare module 'vitest' {
  interface ProvidedContext {
    postgresUrl: string;
  }
}

export default async function startPostgres(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env['TEST_DATABASE_URL'];
  if (given) {
    project.provide('postgresUrl', given);
    return async () => {};
  }
  const { url, close } = await startEmbeddedPostgres(['-c', 'max_prepared_transactions=10']);
  project.provide('postgresUrl', url);
  return close;
}
