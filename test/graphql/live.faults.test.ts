// Live answers while the database goes away and comes back, and when the process goes.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { baseOf, dist, type Run, run, runServer, stop } from '../support/cli/process.ts';
import { execute } from '../support/databases/connections.ts';
import { startEmbeddedPostgres } from '../support/databases/embedded-postgres.js';
import { faultsOf } from '../support/faults/database-faults.ts';
import { type Network, openNetwork } from '../support/faults/network.ts';
import { openStream, type Stream } from '../support/http/event-stream.ts';

let postgres: Awaited<ReturnType<typeof startEmbeddedPostgres>>;
let network: Network;
let server: Run;
let base: string;

const one = 'subscription { outfit(databaseId: 1) { title } }';
const list = 'subscription { outfits { results { title description } } }';

beforeAll(async () => {
  postgres = await startEmbeddedPostgres();
  await run([`${dist}commands/cli.js`, 'migrate'], { DATABASE_URL: postgres.url }).ended;
  network = await openNetwork(postgres.port);
});

afterAll(async () => {
  network.close();
  await postgres.close();
});

function environment(): Record<string, string> {
  const url = new URL(postgres.url);
  url.port = String(network.port);
  return { DATABASE_URL: url.href, SEED: 'demo', HOST: '127.0.0.1' };
}

beforeEach(async () => {
  server = runServer(environment());
  base = await baseOf(server);
});

/** Writes beside the gateway. */
async function retitle(title: string): Promise<void> {
  await execute(postgres.url, `UPDATE outfits SET title = '${title}' WHERE id = 1`);
}

const titleOf = ({ data }: Awaited<ReturnType<Stream['next']>>) => data.data.outfit.title;

// A server that is shut down ends connections as one that crashes does.
const { 'is shut down': _, ...faults } = faultsOf(() => ({ postgres, network }));

describe.each(Object.entries(faults))('a PostgreSQL that %s', (name, fault) => {
  test('leaves streams open, which go on when it is back; new ones are 503', async () => {
    await retitle('Before');
    const stream = await openStream(base, one);
    expect(titleOf(await stream.next())).toBe('Before');
    await fault.begin();
    const status = async () => (await openStream(base, one)).response.statusCode;
    await expect.poll(status).toBe(503);
    // Heartbeats need no database. One of the faults waits for one: they are 15 s apart.
    if (name.includes('swallows')) {
      await expect.poll(() => stream.text(), { timeout: 40_000 }).toContain('\n:\n\n');
    }
    expect(stream.events()).toHaveLength(1);
    await fault.end();
    // The network alone is away: what is written beside it is found when it is back.
    const title = `After one that ${name}`;
    await expect
      .poll(() =>
        retitle(title)
          .then(() => true)
          .catch(() => false),
      )
      .toBe(true);
    expect(titleOf(await stream.next())).toBe(title);
    expect(await stop(server)).toBe(0);
  });
});

test('a process that gets SIGTERM ends its streams without complete, also those that are not read', async () => {
  const stream = await openStream(base, one);
  const unread = await openStream(base, list);
  await stream.next();
  unread.response.pause();
  const code = await stop(server);
  expect(code).toBe(0);
  expect(await stream.ended).toBe(true);
  expect(stream.events().map((event) => event.name)).toEqual(['next']);
});
