// PostgreSQL goes away under load, in every way there is, and comes back.
import type pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { baseOf, dist, type Run, run, runServer, stop } from '../support/cli/process.ts';
import { execute } from '../support/databases/connections.ts';
import { startEmbeddedPostgres } from '../support/databases/embedded-postgres.js';
import { faultsOf } from '../support/faults/database-faults.ts';
import { type Answered, anyRequest, type Load, send, startLoad } from '../support/faults/load.ts';
import { type Network, openNetwork } from '../support/faults/network.ts';

type Postgres = Awaited<ReturnType<typeof startEmbeddedPostgres>>;

let postgres: Postgres;
let network: Network;
let server: Run;
let base: string;
let load: Load | undefined;

beforeAll(async () => {
  postgres = await startEmbeddedPostgres();
  await run([`${dist}commands/cli.js`, 'migrate'], { DATABASE_URL: postgres.url }).ended;
  network = await openNetwork(postgres.port);
});

afterAll(async () => {
  network.close();
  await postgres.close();
});

beforeEach(async () => {
  const url = new URL(postgres.url);
  url.port = String(network.port);
  server = runServer({ DATABASE_URL: url.href, SEED: 'demo' });
  base = await baseOf(server);
});

afterEach(async () => {
  await load?.stop();
  load = undefined;
});

async function pause(milliseconds: number): Promise<void> {
  await new Promise((settle) => setTimeout(settle, milliseconds));
}

/** Runs a statement beside the gateway. */
async function administer(statement: string, database = 'postgres'): Promise<pg.QueryResult> {
  const url = new URL(postgres.url);
  url.pathname = `/${database}`;
  return execute(url.href, statement);
}

async function statusOf(path: string): Promise<number> {
  return (await send(base, path)).status;
}

/**
 * The answers that are neither right nor a 503 as it must be, or that took too long: 2 s are promised, a
 * busy machine gets three times as long, and who waits in vain waits for 10 s.
 */
function wrongAnswers(answers: readonly Answered[], limit = 6_000): Answered[] {
  return answers.filter(({ what, status, retryAfter, body, milliseconds }) => {
    if (milliseconds >= limit) return true;
    if (status === 200) return body.includes('"errors"');
    const code = what.startsWith('{') ? '"code":"SERVICE_UNAVAILABLE"' : '{"detail":"Service temp';
    return status !== 503 || retryAfter !== '1' || !body.includes(code);
  });
}

/** Waits until the load has had so many more answers of a status. */
async function untilAnswered(status: number, times: number): Promise<void> {
  const from = load?.answers.length;
  const count = () => load?.answers.slice(from).filter((answer) => answer.status === status).length;
  await expect.poll(count, { timeout: 30_000 }).toBeGreaterThanOrEqual(times);
}

/** Waits for the first 200: a return may take 3 s, and three times as long on a busy machine. */
async function untilBack(): Promise<void> {
  await expect.poll(() => statusOf('/api/outfits/'), { interval: 50, timeout: 9_000 }).toBe(200);
}

const faults = faultsOf(() => ({ postgres, network }));

describe.each(Object.entries(faults))('a PostgreSQL that %s', (_name, fault) => {
  test('means 503 within 2 s, nothing that hangs, and service within 3 s of its return', async () => {
    load = startLoad(base);
    await untilAnswered(200, 100);
    await fault.begin();
    await pause(3_000);
    await untilAnswered(503, 50);
    expect(await statusOf('/health/live')).toBe(200);
    expect(await statusOf('/health/ready')).toBe(503);
    // Once it is known, nothing waits for it any more.
    expect(load.answers.slice(-20).every(({ status }) => status === 503)).toBe(true);

    await fault.end();
    await untilBack();
    expect(await statusOf('/health/ready')).toBe(200);
    const back = load.answers.length;
    await untilAnswered(200, 50);
    await load.stop();
    expect(wrongAnswers(load.answers)).toEqual([]);
    // What had begun just before may still be answered with a 503.
    expect(load.answers.slice(back + 12).filter(({ status }) => status !== 200)).toEqual([]);

    const messages = server.output().match(/cannot be reached \(/g) ?? [];
    expect(messages.length).toBeGreaterThanOrEqual(1);
    expect(messages.length).toBeLessThan(10);
    expect(await stop(server)).toBe(0);
  });
});

test('what is written while the gateway is cut off is in its first answers afterwards', async () => {
  const first = async () => JSON.parse((await send(base, '/api/outfits/')).body).results[0];
  const { id } = await first();
  for (let round = 0; round < 3; round++) {
    expect(await statusOf('/api/outfits/')).toBe(200);
    network.swallow();
    await administer(`UPDATE outfits SET title = 'round ${round}' WHERE id = ${id}`);
    await expect.poll(() => statusOf('/health/ready')).toBe(503);
    network.restore();
    await untilBack();
    expect(await first()).toMatchObject({ id, title: `round ${round}` });
  }
});

test('connections that an operator ends under load cost at most a 503 each', async () => {
  load = startLoad(base);
  for (let round = 0; round < 10; round++) {
    await pause(200);
    await administer(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'outfit-gateway'`,
    );
  }
  await untilBack();
  const back = load.answers.length;
  await untilAnswered(200, 50);
  await load.stop();
  expect(wrongAnswers(load.answers)).toEqual([]);
  expect(load.answers.slice(back + 12).filter(({ status }) => status !== 200)).toEqual([]);
});

test('a server without free connections means 503 for some, and does not stop the others', async () => {
  await administer(`CREATE ROLE gateway LOGIN PASSWORD 'gateway' CONNECTION LIMIT 3`);
  await administer('GRANT SELECT ON ALL TABLES IN SCHEMA public TO gateway');
  const url = new URL(postgres.url);
  url.username = 'gateway';
  url.password = 'gateway';
  const limited = runServer({ DATABASE_URL: url.href, CACHE_MAX_SIZE: '0' });
  load = startLoad(await baseOf(limited), 30);
  await untilAnswered(503, 1);
  await untilAnswered(200, 50);
  await load.stop();
  // Some wait in line for the one connection.
  expect(wrongAnswers(load.answers, 10_000)).toEqual([]);
});

test('a database that is dropped and made anew is waited for until it is migrated', async () => {
  await administer('CREATE DATABASE shop');
  const url = new URL(postgres.url);
  url.pathname = '/shop';
  const environment = { DATABASE_URL: url.href };
  await run([`${dist}commands/cli.js`, 'migrate'], environment).ended;
  const other = runServer(environment);
  base = await baseOf(other);
  expect(await statusOf('/api/outfits/')).toBe(200);

  await administer('DROP DATABASE shop WITH (FORCE)');
  await expect.poll(() => statusOf('/health/ready')).toBe(503);
  expect(await statusOf('/api/outfits/')).toBe(503);
  await administer('CREATE DATABASE shop');
  await other.until(/lacks \d+ migration/);
  expect(await statusOf('/health/ready')).toBe(503);
  expect(await statusOf('/api/outfits/')).toBe(503);
  await run([`${dist}commands/cli.js`, 'migrate'], environment).ended;
  await untilBack();
  expect(await statusOf('/health/ready')).toBe(200);
});

test('a database that is exchanged for one without tables is a 503 from the first answer on', async () => {
  const shop = await openShop();
  load = startLoad(base);
  await untilAnswered(200, 100);
  await administer('DROP SCHEMA public CASCADE; CREATE SCHEMA public', 'shop');
  await untilAnswered(503, 50);
  await shop.server.until(/lacks \d+ migration/);
  expect(await statusOf('/health/ready')).toBe(503);
  expect(shop.server.output()).not.toContain('unexpected error');
  await load.stop();
  expect(wrongAnswers(load.answers, 10_000)).toEqual([]);
  await run([`${dist}commands/cli.js`, 'migrate'], shop.environment).ended;
  await untilBack();
  for (let turn = 0; turn < 12; turn++) {
    // It is empty now.
    const { status } = await send(base, anyRequest(turn).replace(/page=\d+/, 'page=1'));
    expect(status).toBe(200);
  }
});

test('a column whose type changes under load costs no answer', async () => {
  const shop = await openShop();
  load = startLoad(base);
  await untilAnswered(200, 100);
  for (const length of [300, 255, 400]) {
    // Not the title: PostgreSQL refuses that for a column that a trigger names.
    const change = `ALTER COLUMN background_color TYPE varchar(${length})`;
    await administer(`ALTER TABLE outfits ${change}`, 'shop');
    await untilAnswered(200, 100);
  }
  await load.stop();
  expect(load.answers.filter(({ status }) => status !== 200)).toEqual([]);
  expect(wrongAnswers(load.answers, 10_000)).toEqual([]);
  expect(shop.server.output()).not.toContain('unexpected error');
});

/** A gateway with a database of its own; `base` is its address from now on. */
async function openShop() {
  await administer('DROP DATABASE IF EXISTS shop WITH (FORCE)');
  await administer('CREATE DATABASE shop');
  const url = new URL(postgres.url);
  url.pathname = '/shop';
  const environment = { DATABASE_URL: url.href };
  await run([`${dist}commands/cli.js`, 'migrate'], environment).ended;
  const shop = runServer({ ...environment, SEED: 'demo' });
  base = await baseOf(shop);
  return { server: shop, environment };
}

// Its statements meet an outage of two kinds: refused, or without an answer.
test.each(Object.entries(faults).filter(([name]) => /^crashes|network/.test(name)))(
  'with RATE_LIMIT, a PostgreSQL that %s is a 503 to senders that are known and others, and not a line each',
  async (_name, fault) => {
    const url = new URL(postgres.url);
    url.port = String(network.port);
    const limited = runServer({
      DATABASE_URL: url.href,
      RATE_LIMIT: '20/minute',
      TRUST_PROXY: '127.0.0.1',
      HOST: '127.0.0.1',
    });
    base = await baseOf(limited);
    let sender = 0;
    const ask = async (what: string) =>
      send(base, what, undefined, undefined, { 'x-forwarded-for': `192.0.2.${sender++ % 200}` });
    for (let turn = 0; turn < 100; turn++) expect((await ask(anyRequest(turn))).status).toBe(200);
    await fault.begin();
    const answers: Answered[] = [];
    for (let round = 0; round < 10; round++) {
      const asked = Array.from({ length: 30 }, (_, turn) => ask(anyRequest(turn)));
      answers.push(...(await Promise.all(asked)));
    }
    await fault.end();
    expect(wrongAnswers(answers)).toEqual([]);
    expect(answers.every(({ status }) => status === 503)).toBe(true);
    await untilBack();
    expect(limited.output()).not.toContain('unexpected error');
    expect(limited.output().match(/"level":"error"/g)?.length).toBeLessThan(20);
    expect(await stop(limited)).toBe(0);
  },
);
