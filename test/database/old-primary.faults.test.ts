// A failover in which the old primary lives on: once a gateway has met the new one, it gives no answer of the
// old one, and acknowledges no write of it.
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { baseOf, runServer } from '../support/cli/process.ts';
import { connectForTest, execute } from '../support/databases/connections.ts';
import { startDemoPostgres, throughPort } from '../support/databases/demo-postgres.ts';
import { hasPgBouncer, startPgBouncer } from '../support/databases/pgbouncer.ts';
import { send } from '../support/faults/load.ts';
import { openNetwork } from '../support/faults/network.ts';
import { outfitId } from '../support/gateway.ts';
import { secret, signIn } from '../support/http/tokens.ts';

type Server = Awaited<ReturnType<typeof startDemoPostgres>>;
type Standby = Awaited<ReturnType<Server['addStandby']>>;

/** Two servers that were one: each record is OLD on the first and NEW on the second. */
let old: Server;
let promoted: Standby;
/** Of the old one, which it goes on following. */
let standby: Standby;

beforeAll(async () => {
  old = await startDemoPostgres();
  for (const setting of [
    `statement_timeout = '30s'`,
    `idle_in_transaction_session_timeout = '30s'`,
    `TimeZone = 'UTC'`,
  ]) {
    await execute(old.url, `ALTER ROLE postgres SET ${setting}`);
  }
  promoted = await old.addStandby();
  standby = await old.addStandby();
  await execute(promoted.url, 'SELECT pg_promote()');
  await execute(old.url, "UPDATE outfits SET title = 'OLD'");
  await execute(promoted.url, "UPDATE outfits SET title = 'NEW'");
  return async () => {
    for (const server of [promoted, standby, old]) await server.close();
  };
});

/** Ends connections of gateways to the old server. */
const end = (which: string) =>
  execute(
    old.url,
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = 'postgres' AND pid <> pg_backend_pid() AND ${which}`,
  );
const probe =
  "query LIKE '%pg_current_snapshot()::text%' AND query NOT LIKE 'SELECT pg_terminate%'";
const newest = (which: string) =>
  `pid = (SELECT max(pid) FROM pg_stat_activity WHERE datname = 'postgres' AND pid <> pg_backend_pid() AND ${which})`;
const pooled = newest("query LIKE '%outfits%' AND query NOT LIKE '%pg_current_snapshot%'");

describe.each<readonly [string, Record<string, string>, string]>([
  ['when the connection of its probe ends', {}, probe],
  ['without memory, when a connection of its pool ends', { CACHE_MAX_SIZE: '0' }, pooled],
  ['with a standby of the old one', { DATABASE_READ_URLS: '…' }, probe],
  ...(hasPgBouncer
    ? [['behind PgBouncer', { DATABASE_POOLER: 'transaction' }, newest('true')] as const]
    : []),
])('%s', (_name, settings, ended) => {
  test('gives nothing of the old primary once it has met the new one', async () => {
    const network = await openNetwork(old.port);
    onTestFinished(() => network.close());
    let url = throughPort(old.url, network.port);
    if (settings['DATABASE_POOLER']) {
      const pooler = await startPgBouncer(url, 'transaction');
      onTestFinished(pooler.close);
      ({ url } = pooler);
    }
    const server = runServer({
      ...{ DATABASE_URL: url, AUTH_JWT_SECRET: secret },
      ...settings,
      ...(settings['DATABASE_READ_URLS'] ? { DATABASE_READ_URLS: standby.url } : {}),
    });
    const base = await baseOf(server);
    const stop = new AbortController();
    const answers: string[] = [];
    /** Likes that were acknowledged, with how many answers there were before. */
    const likes: { like: string; after: number }[] = [];
    const readers = Array.from({ length: 8 }, async (_, reader) => {
      for (let turn = reader; !stop.signal.aborted; turn += 1) {
        const record = `{ outfit(databaseId: ${1 + (turn % 40)}) { title } }`;
        const page = `/api/outfits/?page=${1 + (turn % 9)}`;
        const { body } = await send(base, turn % 3 === 0 ? page : record);
        answers.push(...['OLD', 'NEW'].filter((title) => body.includes(title)));
      }
    });
    const writers = Array.from({ length: 2 }, async (_, writer) => {
      for (let id = 1 + writer * 1000; !stop.signal.aborted; id += 1) {
        const user = 1 + (id % 20);
        const document = `mutation { likeOutfit(id: "${outfitId(id)}") { outfit { title } } }`;
        const headers = await signIn(user);
        const { status, body } = await send(base, document, undefined, undefined, headers);
        const isAcknowledged = status === 200 && !body.includes('errors');
        if (isAcknowledged) likes.push({ like: `${id} ${user}`, after: answers.length });
      }
    });
    await expect.poll(() => answers.length).toBeGreaterThan(200);
    expect(new Set(answers)).toEqual(new Set(['OLD']));
    network.lead(promoted.port);
    await end(ended);
    const countNew = async () => {
      // A pooler keeps its connections to the old one: they end one by one.
      if (settings['DATABASE_POOLER']) await end(ended);
      return answers.filter((answer) => answer === 'NEW').length;
    };
    // The connection that looks for another server is replaced every ten seconds.
    await expect.poll(countNew, { timeout: 60_000, interval: 500 }).toBeGreaterThan(400);
    stop.abort();
    await Promise.all([...readers, ...writers]);
    const first = answers.indexOf('NEW');
    expect(answers.slice(first)).not.toContain('OLD');
    const later = likes.filter(({ after }) => after > first).map(({ like }) => like);
    expect(later.length).toBeGreaterThan(0);
    const { rows } = await execute(
      promoted.url,
      `SELECT outfit_id || ' ' || user_id AS saved FROM outfit_likes`,
    );
    expect(rows.map(({ saved }) => saved)).toEqual(expect.arrayContaining(later));
    await expect.poll(async () => (await send(base, '/health/ready')).status).toBe(200);
  });
});

test('ends answers that may be old as soon as it has met the new one', async () => {
  const network = await openNetwork(old.port);
  onTestFinished(() => network.close());
  const DATABASE_URL = throughPort(old.url, network.port);
  const base = await baseOf(runServer({ DATABASE_URL, READ_MAX_STALENESS: '60000ms' }));
  const titleOf = async () =>
    /OLD|NEW/.exec((await send(base, '{ outfit(databaseId: 1) { title } }')).body)?.[0];
  await expect.poll(titleOf).toBe('OLD');
  // What was committed cannot be read: so the probe meets the new one, and gives no snapshot of it.
  const locker = await connectForTest(promoted.url);
  await locker.query('BEGIN; LOCK outfit_changes');
  network.lead(promoted.port);
  await end('true');
  await expect.poll(titleOf).toBe('NEW');
});
