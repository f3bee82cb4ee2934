// A first start that is cut short, and the one after it.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { DatabaseKind } from '../gateway.ts';
import { secret, signIn } from '../http/tokens.ts';
import { baseOf, dist, environmentOf, type Run, run, runServer, stop } from './process.ts';

/** Outfits of the demonstration set. */
const whole = 2_400;

export type Signal = 'SIGINT' | 'SIGTERM' | 'SIGKILL';

/** An empty database, and a temporary folder of its own. */
export async function newEnvironment(kind: DatabaseKind): Promise<Record<string, string>> {
  const { DATA_DIR: TMPDIR = '' } = await environmentOf('embedded');
  return { ...(await environmentOf(kind)), TMPDIR, SEED: 'demo', AUTH_JWT_SECRET: secret };
}

const migrate = (environment: Record<string, string>) =>
  run([`${dist}commands/cli.js`, 'migrate'], environment);

/** What a first start consists of, one after the other. */
function* steps(kind: DatabaseKind, environment: Record<string, string>): Generator<Run> {
  if (kind === 'PostgreSQL') yield migrate(environment);
  yield runServer(environment);
}

/** Milliseconds that a first start takes here and now, in which the moments are chosen. */
export async function measureStart(kind: DatabaseKind): Promise<number> {
  const environment = await newEnvironment(kind);
  const start = performance.now();
  const server = await startWhole(kind, environment);
  const milliseconds = performance.now() - start;
  await stop(server);
  return milliseconds;
}

/**
 * Starts, sends the signal, and waits for the end.
 * @param when milliseconds from the beginning, or what is written to the log just before
 */
export async function interrupt(
  kind: DatabaseKind,
  environment: Record<string, string>,
  signal: Signal,
  when: number | RegExp,
): Promise<void> {
  let isSent = false;
  let current: Run | undefined;
  const send = () => {
    isSent = true;
    current?.child.kill(signal);
  };
  const timer = typeof when === 'number' ? setTimeout(send, when) : undefined;
  for (current of steps(kind, environment)) {
    if (when instanceof RegExp) current.until(when).then(send, () => {});
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

async function startWhole(kind: DatabaseKind, environment: Record<string, string>): Promise<Run> {
  if (kind === 'PostgreSQL') {
    // Awaited: a gateway on a database that is not migrated yet listens, and answers 503.
    const migrating = migrate(environment);
    expect(await migrating.ended, migrating.errors()).toBe(0);
  }
  const server = runServer(environment);
  await baseOf(server);
  return server;
}

/** The next start has everything, takes what is published, and leaves nothing behind. */
export async function expectWhole(
  kind: DatabaseKind,
  environment: Record<string, string>,
): Promise<void> {
  const server = await startWhole(kind, environment);
  const base = await baseOf(server);
  const listing = await fetch(`${base}/api/outfits/`);
  expect(await listing.json()).toMatchObject({ count: whole });
  const created = await fetch(`${base}/api/outfits/`, {
    method: 'POST',
    headers: { ...(await signIn(7)), 'content-type': 'application/json' },
    body: '{"image_key":"outfits/2b1d3c4e-0000-4000-8000-000000000001.png"}',
  });
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
