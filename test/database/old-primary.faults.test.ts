// A failover in which the old primary lives on: once a gateway has met the new one, it gives no answer of the
// old one, and acknowledges no write of it.
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { baseOf, dist, run, runServer, stop as stopServer } from '../support/cli/process.ts';
import { connectForTest, execute as executeOn } from '../support/databases/connections.ts';
import { startEmbeddedPostgres } from '../support/databases/embedded-postgres.js';
import { hasPgBouncer, startPgBouncer } from '../support/databases/pgbouncer.ts';
import { send } from '../support/faults/load.ts';
import { openNetwork } from '../support/faults/network.ts';
import { outfitId } from '../support/gateway.ts';
import { secret, signIn } from '../support/http/tokens.ts';

type Server = Awaited<ReturnType<typeof startEmbeddedPostgres>>;

const database = 'outfits';
const urlOn = (port: number) => `postgresql://postgres:postgres@127.0.0.1:${port}/${database}`;

const execute = (port: number, statement: string) => executeOn(urlOn(port), statement);

const portOf = ({ url }: Pick<Server, 'url'>) => Number(new URL(url).port);

/** Two servers that were one: each record is OLD on the first and NEW on the second. */
let oldPort: number;
let newPort: number;
/** A standby of the old one, which goes on following it. */
let standbyPort: number;

beforeAll(async () => {
  const primary = await startEmbeddedPostgres();
  await execute(portOf(primary), 'SELECT 1').catch(() => {});
  await executeOn(primary.url, `CREATE DATABASE ${database}`);
  oldPort = portOf(primary);
  await run([`${dist}commands/cli.js`, 'migrate'], { DATABASE_URL: urlOn(oldPort) }).ended;
  const seeded = runServer({ DATABASE_URL: urlOn(oldPort), SEED: 'demo' });
  await baseOf(seeded);
  await stopServer(seeded);
  await execute(
    oldPort,
    `ALTER ROLE postgres SET statement_timeout = '30s';
     ALTER ROLE postgres SET idle_in_transaction_session_timeout = '30s';
     ALTER ROLE postgres SET TimeZone = 'UTC'`,
  );
  const promoted = await primary.addStandby();
  const standby = await primary.addStandby();
  newPort = portOf(promoted);
  standbyPort = portOf(standby);
  await vi.waitFor(() => execute(newPort, 'SELECT pg_promote()'), 20_000);
  await execute(oldPort, "UPDATE outfits SET title = 'OLD'");
  await execute(newPort, "UPDATE outfits SET title = 'NEW'");
  return async () => {
    for (const server of [promoted, standby, primary]) await server.close();
  };
});

/** Ends connections of gateways to the old server. */
const end = (which: string) =>
  execute(
    oldPort,
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = '${database}' AND pid <> pg_backend_pid() AND ${which}`,
  );
const probe =
  "query LIKE '%pg_current_snapshot()::text%' AND query NOT LIKE 'SELECT pg_terminate%'";
const ofPooler = `pid = (SELECT max(pid) FROM pg_stat_activity WHERE datname = '${database}' AND pid <> pg_backend_pid())`;
const onePooled = `pid = (SELECT max(pid) FROM pg_stat_activity WHERE datname = '${database}' AND pid <> pg_backend_pid() AND query LIKE '%outfits%' AND query NOT LIKE '%pg_current_snapshot%')`;

describe.each<readonly [string, Record<string, string>, string]>([
  ['when the connection of its probe ends', {}, probe],
  ['when a connection of its pool ends', {}, onePooled],
  ['with several workers', { WORKERS: '2' }, probe],
  ['without memory', { CACHE_MAX_SIZE: '0' }, onePooled],
  ['with a standby of the old one', { DATABASE_READ_URLS: 'standby' }, probe],
  ...(hasPgBouncer
    ? [
        ['behind a pooler of transactions', { DATABASE_POOLER: 'transaction' }, ofPooler] as const,
        [
          'behind a pooler of transactions, without memory',
          { DATABASE_POOLER: 'transaction', CACHE_MAX_SIZE: '0' },
          ofPooler,
        ] as const,
      ]
    : []),
])('%s', (_name, settings, ended) => {
  test('gives nothing of the old primary once it has met the new one', async () => {
    const network = await openNetwork(oldPort);
    onTestFinished(() => network.close());
    let url = urlOn(network.port);
    if (settings['DATABASE_POOLER']) {
      const pooler = await startPgBouncer(url, 'transaction');
      onTestFinished(pooler.close);
      ({ url } = pooler);
    }
    const server = runServer({
      ...{ DATABASE_URL: url, AUTH_JWT_SECRET: secret },
      ...settings,
      ...(settings['DATABASE_READ_URLS'] ? { DATABASE_READ_URLS: urlOn(standbyPort) } : {}),
    });
    const base = await baseOf(server);
    const stop = new AbortController();
    const answers: string[] = [];
    /** Likes that were acknowledged, with how many answers there were before. */
    const likes: { id: number; user: number; after: number }[] = [];
    const record = (id: number) => `{ outfit(databaseId: ${id}) { title } }`;
    const readers = Array.from({ length: 8 }, async (_, reader) => {
      for (let turn = 0; !stop.signal.aborted; turn += 1) {
        const { body } = await send(
          base,
          turn % 3 === 0
            ? `/api/outfits/?page=${1 + ((turn + reader) % 9)}`
            : record(1 + ((turn + reader) % 40)),
        );
        if (body.includes('OLD')) answers.push('OLD');
        if (body.includes('NEW')) answers.push('NEW');
      }
    });
    const writers = Array.from({ length: 2 }, async (_, writer) => {
      for (let id = 1 + writer * 1000; !stop.signal.aborted; id += 1) {
        const user = 1 + (id % 20);
        const { status, body } = await send(
          base,
          `mutation { likeOutfit(id: "${outfitId(id)}") { outfit { title } } }`,
          undefined,
          undefined,
          await signIn(user),
        );
        if (status === 200 && !body.includes('errors'))
          likes.push({ id, user, after: answers.length });
      }
    });
    await expect.poll(() => answers.length).toBeGreaterThan(200);
    expect(new Set(answers)).toEqual(new Set(['OLD']));
    network.lead(newPort);
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
    const later = likes.filter(({ after }) => after > first);
    expect(later.length).toBeGreaterThan(0);
    const { rows } = await execute(
      newPort,
      'SELECT outfit_id AS id, user_id AS user FROM outfit_likes',
    );
    const saved = new Set(rows.map(({ id, user }) => `${id} ${user}`));
    expect(later.filter(({ id, user }) => !saved.has(`${id} ${user}`))).toEqual([]);
    await expect.poll(async () => (await send(base, '/health/ready')).status).toBe(200);
  });
});

test('ends answers that may be old as soon as it has met the new one', async () => {
  const network = await openNetwork(oldPort);
  onTestFinished(() => network.close());
  const server = runServer({ DATABASE_URL: urlOn(network.port), READ_MAX_STALENESS: '60000ms' });
  const base = await baseOf(server);
  const titleOf = async () =>
    /OLD|NEW/.exec((await send(base, '{ outfit(databaseId: 1) { title } }')).body)?.[0];
  await expect.poll(titleOf).toBe('OLD');
  // What was committed cannot be read: so the probe meets the new one, and gives no snapshot of it.
  const locker = await connectForTest(urlOn(newPort));
  await locker.query('BEGIN; LOCK outfit_changes');
  network.lead(newPort);
  await end('true');
  await expect.poll(titleOf).toBe('NEW');
});
