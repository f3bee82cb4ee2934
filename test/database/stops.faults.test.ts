// PostgreSQL goes away under load, in every way there is, and comes back.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { baseOf, dist, type Run, run, runServer, slowness, stop } from '../support/cli/process.ts';
import { connectForTest, execute } from '../support/databases/connections.ts';
import { startDemoPostgres, throughPort } from '../support/databases/demo-postgres.ts';
import { faultsOf } from '../support/faults/database-faults.ts';
import { type Answered, anyRequest, type Load, send, startLoad } from '../support/faults/load.ts';
import { type Network, openNetwork } from '../support/faults/network.ts';

let postgres: Awaited<ReturnType<typeof startDemoPostgres>>;
let network: Network;
let server: Run;
let base: string;
let load: Load | undefined;

const stopped = '{"detail":"The request took too long and was stopped."}';

beforeAll(async () => {
  postgres = await startDemoPostgres();
  network = await openNetwork(postgres.port);
});

afterAll(async () => {
  network.close();
  await postgres.close();
});

afterEach(async () => {
  await load?.stop();
  load = undefined;
});

/** Starts a gateway, which the requests of the test go to. */
async function start(settings: Record<string, string> = {}): Promise<void> {
  server = runServer({ DATABASE_URL: throughPort(postgres.url, network.port), ...settings });
  base = await baseOf(server);
}

async function statusOf(path: string): Promise<number> {
  return (await send(base, path)).status;
}

/**
 * The answers that are neither right nor a 503 as it must be, or that took too long: 2 s are promised, a
 * busy machine gets three times as long, and who waits in vain waits for 10 s.
 */
function wrongAnswers(limit = 6_000): Answered[] | undefined {
  return load?.answers.filter(({ what, status, retryAfter, body, milliseconds }) => {
    if (milliseconds >= limit * slowness) return true;
    if (status === 200) return body.includes('"errors"');
    const code = what.startsWith('{') ? '"code":"SERVICE_UNAVAILABLE"' : '{"detail":"Service temp';
    return status !== 503 || retryAfter !== '1' || !body.includes(code);
  });
}

/** Waits for the first 200: a return may take 3 s, and three times as long on a busy machine. */
async function untilBack(): Promise<void> {
  const timeout = 9_000 * slowness;
  await expect.poll(() => statusOf('/api/outfits/'), { interval: 50, timeout }).toBe(200);
}

/** From now on, all is answered with 200; and so far, nothing was wrong. */
async function expectRecovered(): Promise<void> {
  await untilBack();
  expect(await statusOf('/health/ready')).toBe(200);
  const back = load?.answers.length ?? 0;
  await load?.until(200, 50);
  await load?.stop();
  expect(wrongAnswers()).toEqual([]);
  // What had begun just before may still be answered with a 503.
  expect(load?.answers.slice(back + 12).filter(({ status }) => status !== 200)).toEqual([]);
}

const faults = faultsOf(() => ({ postgres, network }));

describe.each(Object.entries(faults))('a PostgreSQL that %s', (_name, fault) => {
  test('means 503 within 2 s, nothing that hangs, and service within 3 s of its return', async () => {
    // Senders whose rate is known, and others: each is looked up there.
    await start({ RATE_LIMIT: '10000/minute', TRUST_PROXY: '127.0.0.1,::1' });
    load = startLoad(base, 12, (turn) => ({ 'x-forwarded-for': `192.0.2.${turn % 200}` }));
    await load.until(200, 100);
    await fault.begin();
    await sleep(3_000);
    await load.until(503, 50);
    expect(await statusOf('/health/live')).toBe(200);
    expect(await statusOf('/health/ready')).toBe(503);
    // Once it is known, nothing waits for it any more.
    expect(load.answers.slice(-20).every(({ status }) => status === 503)).toBe(true);

    await fault.end();
    await expectRecovered();
    const messages = server.output().match(/cannot be reached \(/g) ?? [];
    expect(messages.length).toBeGreaterThanOrEqual(1);
    expect(messages.length).toBeLessThan(10);
    expect(server.output()).not.toContain('unexpected error');
    expect(server.output().match(/"level":"error"/g)?.length).toBeLessThan(20);
    expect(await stop(server)).toBe(0);
  });
});

test('what is written while the gateway is cut off is in its first answers afterwards', async () => {
  await start();
  const first = async () => JSON.parse((await send(base, '/api/outfits/')).body).results[0];
  const { id } = await first();
  for (let round = 0; round < 2; round++) {
    expect(await statusOf('/api/outfits/')).toBe(200);
    network.swallow();
    await execute(postgres.url, `UPDATE outfits SET title = 'round ${round}' WHERE id = ${id}`);
    await expect.poll(() => statusOf('/health/ready')).toBe(503);
    network.restore();
    await untilBack();
    expect(await first()).toMatchObject({ id, title: `round ${round}` });
  }
});

test('a connection that the network has dropped is replaced, but not one that waits for a lock, and a request waits for it no longer than REQUEST_TIMEOUT', async () => {
  await start();
  expect(await statusOf('/api/outfits/')).toBe(200);
  // A page from memory: the statement of the probe, by its name.
  const lost = network.lose('\0snapshot\0');
  expect(await statusOf('/api/outfits/')).toBe(200);
  await lost;
  const other = await connectForTest(postgres.url);
  await other.query('BEGIN; LOCK TABLE outfit_changes; SELECT pg_current_xact_id()');
  await execute(postgres.url, 'CREATE TABLE commits ()');
  const answered = send(base, '/api/outfits/');
  const probes = async (condition: string) => {
    const { rows } = await execute(
      postgres.url,
      `SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%pg_current_snapshot%' AND ${condition}`,
    );
    return rows;
  };
  let first: unknown[] = [];
  await expect.poll(async () => (first = await probes('true'))).toHaveLength(1);
  // Longer than a connection without an answer is kept.
  await expect.poll(() => probes(`now() - query_start > '2.5 s'`)).toEqual(first);
  const { status, body } = await answered;
  await other.query('ROLLBACK');
  await execute(postgres.url, 'DROP TABLE commits');
  expect({ status, body }).toEqual({ status: 503, body: stopped });
  await untilBack();
});

test('connections that an operator ends under load cost at most a 503 each', async () => {
  await start();
  load = startLoad(base);
  for (let round = 0; round < 2; round++) {
    await load.until(200, 50);
    const { rowCount } = await execute(
      postgres.url,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'outfit-gateway'`,
    );
    expect(rowCount).toBeGreaterThan(0);
  }
  await expectRecovered();
});

test('a server without free connections means 503 for some, and does not stop the others', async () => {
  await execute(
    postgres.url,
    `CREATE ROLE gateway LOGIN PASSWORD 'gateway' CONNECTION LIMIT 3;
     GRANT SELECT ON ALL TABLES IN SCHEMA public TO gateway`,
  );
  const DATABASE_URL = postgres.url.replace('postgres:postgres', 'gateway:gateway');
  await start({ DATABASE_URL, CACHE_MAX_SIZE: '0' });
  load = startLoad(base, 30);
  await load.until(503, 1);
  await load.until(200, 50);
  await load.stop();
  // Some wait in line for the one connection.
  expect(wrongAnswers(10_000)).toEqual([]);
});

test('a column whose type changes under load costs no answer; a database without tables is a 503 until it is migrated, also when it is another one', async () => {
  await execute(postgres.url, 'CREATE DATABASE shop');
  const DATABASE_URL = postgres.url.replace(/postgres$/, 'shop');
  const migrate = () => run([`${dist}commands/cli.js`, 'migrate'], { DATABASE_URL }).ended;
  await migrate();
  await start({ DATABASE_URL, SEED: 'demo' });
  load = startLoad(base);
  await load.until(200, 100);
  for (const length of [300, 255, 400]) {
    // Not the title: PostgreSQL refuses that for a column that a trigger names.
    const change = `ALTER COLUMN background_color TYPE varchar(${length})`;
    await execute(DATABASE_URL, `ALTER TABLE outfits ${change}`);
    await load.until(200, 100);
  }
  expect(load.answers.filter(({ status }) => status !== 200)).toEqual([]);

  await execute(DATABASE_URL, 'DROP SCHEMA public CASCADE; CREATE SCHEMA public');
  await load.until(503, 50);
  await server.until(/lacks \d+ migration/);
  expect(await statusOf('/health/ready')).toBe(503);
  expect(server.output()).not.toContain('unexpected error');
  await load.stop();
  expect(wrongAnswers(10_000)).toEqual([]);
  await migrate();
  await untilBack();
  for (let turn = 0; turn < 12; turn++) {
    // It is empty now.
    expect(await statusOf(anyRequest(turn).replace(/page=\d+/, 'page=1'))).toBe(200);
  }

  await execute(postgres.url, 'DROP DATABASE shop WITH (FORCE)');
  await expect.poll(() => statusOf('/health/ready')).toBe(503);
  expect(await statusOf('/api/outfits/')).toBe(503);
  await execute(postgres.url, 'CREATE DATABASE shop');
  await server.until(/lacks \d+ migration.*lacks \d+ migration/s);
  expect(await statusOf('/health/ready')).toBe(503);
  expect(await statusOf('/api/outfits/')).toBe(503);
  await migrate();
  await untilBack();
  expect(await statusOf('/health/ready')).toBe(200);
});
