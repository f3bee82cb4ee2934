// The built commands as processes of their own; test/support/setup.ts ends them after each test.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, inject } from 'vitest';
import { makeDatabase, type TestDatabase } from '../databases/test-database.ts';
import { type DatabaseKind, makeEmptyDatabase, makeMigratedDatabase } from '../gateway.ts';
import { secret, signIn } from '../http/tokens.ts';

export const dist = fileURLToPath(new URL('../../../dist/', import.meta.url));
const testDatabases: TestDatabase[] = [];
const processes: ChildProcess[] = [];

/** Ends the processes of a test, and removes its databases. */
export async function clearAway(): Promise<void> {
  for (const child of processes.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  for (const testDatabase of testDatabases.splice(0)) await testDatabase.remove();
}

async function keep(making: Promise<TestDatabase>): Promise<TestDatabase['environment']> {
  const testDatabase = await making;
  testDatabases.push(testDatabase);
  return testDatabase.environment;
}

export const environmentOf = (kind: DatabaseKind) => keep(makeEmptyDatabase(kind));

/** The same, migrated already: making an embedded database takes seconds. */
export const migratedEnvironmentOf = (kind: DatabaseKind) => keep(makeMigratedDatabase(kind));

/** A PostgreSQL database with the demonstration set, which a gateway would take longer to save than to start. */
export const demoEnvironment = () =>
  keep(makeDatabase(inject('postgresUrl'), inject('postgresDemo')));

/** An empty database to be filled, and a temporary folder of its own. */
export async function newEnvironment(kind: DatabaseKind): Promise<Record<string, string>> {
  const { DATA_DIR: TMPDIR = '' } = await environmentOf('embedded');
  return { ...(await environmentOf(kind)), TMPDIR, SEED: 'demo', AUTH_JWT_SECRET: secret };
}

export interface Run {
  readonly child: ChildProcess;
  readonly startedAt: number;
  /** What it has written so far. */
  output(): string;
  errors(): string;
  /** Resolves when it has ended: with its exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>;
  /** Resolves when its output matches; rejects when it ends before. */
  until(pattern: RegExp): Promise<RegExpExecArray>;
}

export function run(
  args: readonly string[],
  environment: Record<string, string>,
  folder?: string,
): Run {
  const child = spawn(process.execPath, args, {
    // Not this folder: a developer may have a .env in it.
    cwd: folder ?? dist,
    env: { PATH: process.env['PATH'], ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  processes.push(child);
  let output = '';
  let errors = '';
  child.stdout?.setEncoding('utf8').on('data', (chunk) => {
    output += chunk;
  });
  child.stderr?.setEncoding('utf8').on('data', (chunk) => {
    errors += chunk;
  });
  const ended = once(child, 'close').then(([code, signal]) => code ?? signal);
  return {
    child,
    startedAt: performance.now(),
    output: () => output,
    errors: () => errors,
    ended,
    until: (pattern) =>
      new Promise((settle, reject) => {
        const look = () => {
          const match = pattern.exec(output);
          if (!match) return;
          child.stdout?.off('data', look);
          settle(match);
        };
        child.stdout?.on('data', look);
        ended.then((code) => reject(new Error(`ended with ${code}: ${errors}${output}`)));
        look();
      }),
  };
}

export const runServer = (environment: Record<string, string>) =>
  run([`${dist}server.js`], { PORT: '0', ...environment });

/** How many times longer things may take than on a machine with some other work: by the time of the last start. */
export let slowness = 1;

/** Waits until a server listens, and gives the base of its addresses. */
export async function baseOf(server: Run): Promise<string> {
  const [, base = ''] = await server.until(/REST: +(http:\/\/[^/\s]+)\/api\/outfits\//);
  await server.until(/Graphi?QL: /);
  slowness = Math.max(1, (performance.now() - server.startedAt) / 4_000);
  return base;
}

/** Reads the metrics of a server with METRICS_PORT=0. */
export async function metricsOf(server: Run): Promise<() => Promise<string>> {
  const [, address = ''] = await server.until(/Metrics: +(http:[^\s"]+)/);
  return async () => (await fetch(address)).text();
}

export async function stop(server: Run): Promise<number | string> {
  server.child.kill('SIGTERM');
  return server.ended;
}

/** A page of a gateway that runs. */
export async function listing(base: string, query = '') {
  const response = await fetch(`${base}/api/outfits/${query}`);
  expect(response.status).toBe(200);
  return (await response.json()) as { count: number; results: { id: number; likes: number }[] };
}

/** Publishes an outfit of a user through a gateway that runs. */
export async function publish(base: string, userId = 7): Promise<Response> {
  return fetch(`${base}/api/outfits/`, {
    method: 'POST',
    headers: { ...(await signIn(userId)), 'content-type': 'application/json' },
    body: '{"image_key":"outfits/2b1d3c4e-0000-4000-8000-000000000001.png"}',
  });
}

/** A failed start says one sentence, and no trace of the inside. */
export async function failure(server: Run, code = 1): Promise<string> {
  expect(await server.ended).toBe(code);
  expect(server.errors()).toMatch(/^[^\n]+\.\n$/);
  expect(server.errors()).not.toMatch(/node_modules|\.js:\d|\bat /);
  return server.errors().trim();
}
