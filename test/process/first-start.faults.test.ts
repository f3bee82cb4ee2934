// The first start, cut short at many moments: what comes after it is complete.
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import {
  baseOf,
  dist,
  listing,
  newEnvironment,
  publish,
  type Run,
  run,
  runServer,
  stop,
} from '../support/cli/process.ts';
import { connectTo } from '../support/databases/connections.ts';

const migrate = (environment: Record<string, string>) =>
  run([`${dist}commands/cli.js`, 'migrate'], environment);

async function startWhole(environment: Record<string, string>): Promise<Run> {
  if (environment['DATABASE_URL']) {
    // Awaited: a gateway on a database that is not migrated yet listens, and answers 503.
    const migrating = migrate(environment);
    expect(await migrating.ended, migrating.errors()).toBe(0);
  }
  const server = runServer(environment);
  await baseOf(server);
  return server;
}

/** Starts, sends the signal so many milliseconds later, and waits for the end. */
async function interrupt(
  environment: Record<string, string>,
  signal: NodeJS.Signals,
  milliseconds: number,
): Promise<void> {
  let isSent = false;
  let current: Run | undefined;
  const timer = setTimeout(() => {
    isSent = true;
    current?.child.kill(signal);
  }, milliseconds);
  for (const start of [migrate, runServer]) {
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
async function expectWhole(environment: Record<string, string>): Promise<void> {
  const server = await startWhole(environment);
  const base = await baseOf(server);
  expect(await listing(base)).toMatchObject({ count: 2_400 });
  const created = await publish(base);
  expect(created.status).toBe(201);
  expect(await created.json()).toMatchObject({ id: expect.any(Number) });
  expect(await stop(server)).toBe(0);
  expect(server.errors()).toBe('');
  if (environment['DATA_DIR']) expect(readdirSync(environment['DATA_DIR'])).toEqual(['pgdata']);
}

/** Every page until then is a 503. */
async function expectListedWhole(base: string): Promise<void> {
  const counts = new Set<unknown>();
  const count = async () => {
    const response = await fetch(`${base}/api/outfits/`);
    const page = (await response.json()) as { count?: number };
    if (response.status !== 503) counts.add(page.count);
    return page.count;
  };
  await expect.poll(count, { timeout: 60_000, interval: 10 }).toBe(2_400);
  expect([...counts]).toEqual([2_400]);
}

test('a start on PostgreSQL that is cut short again and again comes to its end', async () => {
  // What a first start takes here and now, in which the moments are chosen.
  const begun = performance.now();
  expect(await stop(await startWhole(await newEnvironment('PostgreSQL')))).toBe(0);
  const length = performance.now() - begun;
  const environment = await newEnvironment('PostgreSQL');
  for (const [percent, signal] of [
    [20, 'SIGKILL'],
    [80, 'SIGTERM'],
    [50, 'SIGKILL'],
    [95, 'SIGINT'],
  ] as const) {
    await interrupt(environment, signal, (length * percent) / 100);
  }
  await expectWhole(environment);
}, 600_000);

test('a start of the embedded database that is cut short again and again comes to its end', async () => {
  const environment = await newEnvironment('embedded');
  const folder = join(environment['DATA_DIR'] ?? '', 'pgdata');
  const list = () =>
    existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }) : [];
  // Of about 460, which the template has.
  for (const entries of [2, 300]) {
    do {
      // Again where the rest came before the signal did.
      rmSync(folder, { recursive: true, force: true });
      const server = runServer(environment);
      while (list().length < entries) await sleep(1);
      server.child.kill('SIGKILL');
      expect(await server.ended).toBe('SIGKILL');
    } while (!list().includes('unfinished'));
  }
  for (const signal of ['SIGTERM', 'SIGKILL', 'SIGINT'] as const) {
    const server = runServer(environment);
    await server.until(/filling it with a demonstration set|2400 outfits/);
    server.child.kill(signal);
    expect([0, signal]).toContain(await server.ended);
    expect(server.errors()).toBe('');
  }
  await expectWhole(environment);
  expect(list()).not.toContain('unfinished');
}, 600_000);

test('three gateways that start at once on one PostgreSQL fill it once', async () => {
  const environment = await newEnvironment('PostgreSQL');
  await migrate(environment).ended;
  const servers = [1, 2, 3].map(() => runServer(environment));
  for (const server of servers) await expectListedWhole(await baseOf(server));
  const saved = servers.filter((server) => server.output().includes('2400 demonstration outfits'));
  expect(saved).toHaveLength(1);
  for (const server of servers) expect(await stop(server)).toBe(0);
  await expectWhole(environment);
});

test('a start behind a lock of another client listens, and lists nothing before the database is filled', async () => {
  const modes = ['ACCESS EXCLUSIVE', 'SHARE ROW EXCLUSIVE'];
  const starts = modes.map(async (mode) => {
    const environment = await newEnvironment('PostgreSQL');
    expect(await migrate(environment).ended).toBe(0);
    const client = await connectTo(environment['DATABASE_URL']);
    await client.query(`BEGIN; LOCK TABLE outfits IN ${mode} MODE`);
    const server = runServer(environment);
    const base = await baseOf(server);
    // What ended the look is its own limit, which is shorter than that of every statement.
    await server.until(/lock timeout/);
    for (const path of ['/health/ready', '/api/outfits/']) {
      expect((await fetch(base + path)).status).toBe(503);
    }
    await client.end();
    await expectListedWhole(base);
    expect(await stop(server)).toBe(0);
  });
  await Promise.all(starts);
});

test('a database with outfits is listed while another client keeps FIRST_ID from being reserved', async () => {
  const environment = await newEnvironment('PostgreSQL');
  expect(await stop(await startWhole(environment))).toBe(0);
  const client = await connectTo(environment['DATABASE_URL']);
  await client.query('BEGIN; LOCK TABLE outfits IN SHARE ROW EXCLUSIVE MODE');
  const server = runServer({ ...environment, FIRST_ID: '100000' });
  const base = await baseOf(server);
  await expectListedWhole(base);
  expect((await fetch(`${base}/health/ready`)).status).toBe(503);
  await client.end();
  const status = async () => (await fetch(`${base}/health/ready`)).status;
  await expect.poll(status, { timeout: 60_000 }).toBe(200);
  expect(await stop(server)).toBe(0);
});

test('a gateway that was there before the migration lists nothing before the database is filled', async () => {
  const environment = await newEnvironment('PostgreSQL');
  const server = runServer(environment);
  const base = await baseOf(server);
  expect((await fetch(`${base}/api/outfits/`)).status).toBe(503);
  expect(await migrate(environment).ended).toBe(0);
  await expectListedWhole(base);
  expect(await stop(server)).toBe(0);
});
