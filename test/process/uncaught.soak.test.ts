// Errors that nothing catches: they are logged, and the process ends in order.
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { listing, type Run } from '../support/cli/process.ts';
import { isAlive, startTwo } from '../support/cli/workers.ts';
import { connectForTest } from '../support/databases/connections.ts';

const throwing = fileURLToPath(new URL('../support/cli/throw-on-signal.js', import.meta.url));
const start = (WORKERS: string) => startTwo({ WORKERS, NODE_OPTIONS: `--import=${throwing}` });

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

describe('an error that nothing catches', { timeout: 120_000 }, () => {
  test.each([
    ['SIGUSR2', 'thrown by a test'],
    ['SIGWINCH', 'rejected by a test'],
  ] as const)('ends the process after what it has begun (%s)', async (signal, message) => {
    const { server, base, databaseUrl } = await start('1');
    const client = await connectForTest(databaseUrl);
    await client.query('BEGIN; LOCK TABLE outfits');
    const answer = listing(base);
    const waiting = async () =>
      (await client.query('SELECT FROM pg_locks WHERE NOT granted')).rowCount;
    await expect.poll(waiting).toBeGreaterThan(0);
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

  test('in a worker ends that worker, which is replaced; in the parent it ends all', async () => {
    const { server, base, workers } = await start('2');
    const [first = 0, second = 0] = workers;
    process.kill(first, 'SIGWINCH');
    await server.until(new RegExp(`worker ${first} has ended \\(1\\)`));
    const [, third] = await server.until(/worker (\d+) serves/);
    const ofWorker = lineOf(first, 'rejected by a test');
    expect(fatalLines(server)).toMatchObject([ofWorker]);
    await listing(base);
    server.child.kill('SIGUSR2');
    expect(await server.ended).toBe(1);
    const ofParent = lineOf(server.child.pid, 'thrown by a test');
    expect(fatalLines(server)).toMatchObject([ofWorker, ofParent]);
    expect([first, second, Number(third)].filter(isAlive)).toEqual([]);
  });
});
