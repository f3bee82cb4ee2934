// The PostgreSQL of Debian in place of that of the npm packages.
import type { TestProject } from 'vitest/node';
import { isInstalled, startDebianPostgres } from '../databases/debian-postgres.ts';
import { providePostgres } from '../databases/global-setup.ts';

export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  if (!isInstalled) {
    throw new Error('There is no PostgreSQL of Debian: install it ("apt-get install postgresql").');
  }
  const { port, close } = await startDebianPostgres();
  const url = `postgresql://postgres@127.0.0.1:${port}/postgres`;
  const remove = await providePostgres(project, url);
  return async () => {
    await remove();
    close();
  };
}
