// The PostgreSQL of Debian in place of that of the npm packages.
import type { TestProject } from 'vitest/node';
import { isInstalled, startDebianPostgres } from '../debian-postgres.ts';

export default async function setUp(project: TestProject): Promise<() => void> {
  if (!isInstalled) {
    throw new Error('There is no PostgreSQL of Debian: install it ("apt-get install postgresql").');
  }
  const { port, close } = await startDebianPostgres();
  project.provide('postgresUrl', `postgresql://postgres@127.0.0.1:${port}/postgres`);
  return close;
}
