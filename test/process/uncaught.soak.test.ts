// Errors that nothing catches: they are logged, and the process ends in order.
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import {
  baseOf,
  listing,
  migratedEnvironmentOf,
  type Run,
  runServer,
} from '../support/cli/process.ts';
import { connectForTest } from '../support/databases/connections.ts';
import { countBlocked } from '../support/faults/clients.ts';

const throwing = fileURLToPath(new URL('../support/cli/throw-on-signal.js', import.meta.url));

async function start() {
  const environment = await migratedEnvironmentOf('PostgreSQL');
  const server = runServer({ ...environment, NODE_OPTIONS: `--import=${throwing}` });
  return { server, base: await baseOf(server), databaseUrl: environment['DATABASE_URL'] ?? '' };
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

test.each([
  ['SIGUSR2', 'thrown by a test'],
  ['SIGWINCH', 'rejected by a test'],
] as const)(
  'an error that nothing catches ends the process after what it has begun (%s)',
  async (signal, message) => {
    const { server, base, databaseUrl } = await start();
    const client = await connectForTest(databaseUrl);
    await client.query('BEGIN; LOCK TABLE outfits');
    const answer = listing(base);
    await expect.poll(() => countBlocked(client)).toBe(1);
    server.child.kill(signal);
    await server.until(/uncaught error: closing/);
    // A service manager that ends it meanwhile cuts nothing.
    server.child.kill('SIGTERM');
    await client.query('COMMIT');
    expect((await answer).count).toBe(0);
    expect(await server.ended).toBe(1);
    expect(server.errors()).toBe('');
    expect(fatalLines(server)).toMatchObject([lineOf(server.child.pid, message)]);
  },
);
