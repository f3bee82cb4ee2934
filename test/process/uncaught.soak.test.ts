// Errors that nothing catches: they are logged, and the process ends in order.
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  baseOf,
  listing,
  migratedEnvironmentOf,
  type Run,
  runServer,
  stop,
} from '../support/cli/process.ts';

const throwing = fileURLToPath(new URL('../support/cli/throw-on-signal.js', import.meta.url));
const timeout = 120_000;

async function start(settings: Record<string, string> = {}) {
  const environment = await migratedEnvironmentOf('PostgreSQL');
  const server = runServer({ ...environment, NODE_OPTIONS: `--import=${throwing}`, ...settings });
  const base = await baseOf(server);
  const [, list = ''] = /"workers: ([\d, ]+)"/.exec(server.output()) ?? [];
  const client = new pg.Client(environment['DATABASE_URL']);
  client.on('error', () => {});
  await client.connect();
  onTestFinished(() => client.end());
  return { server, base, client, workers: list.split(', ').map(Number) };
}

/** The lines of level "fatal". */
function fatalLines(server: Run): unknown[] {
  const lines = server.output().trim().split('\n');
  return lines.map((line) => JSON.parse(line)).filter(({ level }) => level === 'fatal');
}

const lineOf = (pid: number | undefined, message: string) => ({
  level: 'fatal',
  pid,
  err: expect.objectContaining({
    message,
    stack: expect.stringContaining('throw-on-signal.js'),
  }),
  msg: 'uncaught error: closing',
});

describe('an error that nothing catches', () => {
  test.each([
    ['SIGUSR2', 'thrown by a test'],
    ['SIGWINCH', 'rejected by a test'],
  ] as const)('ends the process after what it has begun (%s)', async (signal, message) => {
    const { server, base, client } = await start();
    await client.query('BEGIN; LOCK TABLE outfits');
    const answer = listing(base);
    await expect
      .poll(async () => {
        const { rows } = await client.query('SELECT FROM pg_locks WHERE NOT granted');
        return rows.length;
      })
      .toBeGreaterThan(0);
    server.child.kill(signal);
    await server.until(/uncaught error: closing/);
    // A service manager that ends it meanwhile cuts nothing.
    server.child.kill('SIGTERM');
    await client.query('COMMIT');
    expect((await answer).count).toBe(0);
    expect(await server.ended).toBe(1);
    expect(server.errors()).toBe('');
    expect(fatalLines(server)).toMatchObject([lineOf(server.child.pid, message)]);
  });

  test(
    'in a worker ends that worker, which is replaced',
    async () => {
      const { server, base, workers } = await start({ WORKERS: '2' });
      const [first = 0] = workers;
      process.kill(first, 'SIGWINCH');
      await server.until(new RegExp(`worker ${first} has ended \\(1\\)`));
      await server.until(/worker \d+ serves/);
      expect(fatalLines(server)).toMatchObject([lineOf(first, 'rejected by a test')]);
      await listing(base);
      expect(await stop(server)).toBe(0);
    },
    timeout,
  );

  test(
    'in the parent ends all',
    async () => {
      const { server, workers } = await start({ WORKERS: '2' });
      server.child.kill('SIGUSR2');
      expect(await server.ended).toBe(1);
      expect(fatalLines(server)).toMatchObject([lineOf(server.child.pid, 'thrown by a test')]);
      for (const worker of workers) expect(() => process.kill(worker, 0)).toThrow('ESRCH');
    },
    timeout,
  );
});
