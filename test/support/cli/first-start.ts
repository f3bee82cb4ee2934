// A first start that is cut short, and the one after it.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { DatabaseKind } from '../gateway.ts';
import { secret } from '../http/tokens.ts';
import {
  baseOf,
  dist,
  environmentOf,
  listing,
  publish,
  type Run,
  run,
  runServer,
  stop,
} from './process.ts';

type Environment = Record<string, string>;

/** An empty database, and a temporary folder of its own. */
export async function newEnvironment(kind: DatabaseKind): Promise<Environment> {
  const { DATA_DIR: TMPDIR = '' } = await environmentOf('embedded');
  return { ...(await environmentOf(kind)), TMPDIR, SEED: 'demo', AUTH_JWT_SECRET: secret };
}

const migrate = (environment: Environment) =>
  run([`${dist}commands/cli.js`, 'migrate'], environment);

/** What a first start consists of, one after the other. */
const stepsOf = (environment: Environment) =>
  environment['DATABASE_URL'] ? [migrate, runServer] : [runServer];

async function startWhole(environment: Environment): Promise<Run> {
  if (environment['DATABASE_URL']) {
    // Awaited: a gateway on a database that is not migrated yet listens, and answers 503.
    const migrating = migrate(environment);
    expect(await migrating.ended, migrating.errors()).toBe(0);
  }
  const server = runServer(environment);
  await baseOf(server);
  return server;
}

/** Milliseconds that a first start takes here and now, in which the moments are chosen. */
export async function measureStart(kind: DatabaseKind): Promise<number> {
  const environment = await newEnvironment(kind);
  const start = performance.now();
  const server = await startWhole(environment);
  const milliseconds = performance.now() - start;
  await stop(server);
  return milliseconds;
}

/** Starts, sends the signal so many milliseconds later, and waits for the end. */
export async function interrupt(
  environment: Environment,
  signal: NodeJS.Signals,
  milliseconds: number,
): Promise<void> {
  let isSent = false;
  let current: Run | undefined;
  const timer = setTimeout(() => {
    isSent = true;
    current?.child.kill(signal);
  }, milliseconds);
  for (const start of stepsOf(environment)) {
    current = start(environment);
    const ended = await current.ended;
    if (isSent) {
      // A signal that comes before the first line has run, or to a command, is the system's to obey.
      expect([0, 130, signal]).toContain(ended);
      expect(['', 'Interrupted.\n']).toContain(current.errors());
      break;
    }
    expect(ended, current.errors()).toBe(0);
  }
  clearTimeout(timer);
  expect(isSent).toBe(true);
}

/** The next start has everything, takes what is published, and leaves nothing behind. */
export async function expectWhole(environment: Environment): Promise<void> {
  const server = await startWhole(environment);
  const base = await baseOf(server);
  expect(await listing(base)).toMatchObject({ count: 2_400 });
  const created = await publish(base);
  expect(created.status).toBe(201);
  expect(await created.json()).toMatchObject({ id: expect.any(Number) });
  expect(await stop(server)).toBe(0);
  expect(server.errors()).toBe('');
  const folder = environment['TMPDIR'] ?? '';
  // One without a socket may belong to a process that is just making it.
  expect(readdirSync(folder).filter((name) => readdirSync(join(folder, name)).length > 0)).toEqual(
    [],
  );
}
