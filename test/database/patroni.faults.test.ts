// docs/replicas.md, "Patroni with HAProxy": PostgreSQL of the primary is killed, then the machine of the next primary, and
// then one of two gateways behind deploy/haproxy.cfg, while clients write and read through both proxies.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { seedDemo } from '../../src/process/demo/seed.ts';
import { baseOf, runServer } from '../support/cli/process.ts';
import { connectTo, execute } from '../support/databases/connections.ts';
import { hasPatroni, startPatroni } from '../support/databases/patroni.ts';
import { migrateDatabase } from '../support/databases/test-database.ts';
import { send } from '../support/faults/load.ts';
import { outfitId } from '../support/gateway.ts';
import { findFreePort } from '../support/http/free-port.js';
import { startHaproxy } from '../support/http/haproxy.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const key = 'outfits/2b1d3c4e-0000-4000-8000-000000000001.png';

test.skipIf(!hasPatroni)(
  'no acknowledged write is lost and no answer is older than one before: Patroni fails over twice, and a gateway is killed',
  { timeout: 120_000 },
  async () => {
    const cluster = startPatroni();
    const first = await cluster.primary();
    await cluster.synchronous();
    for (const statement of cluster.setUp.trim().split('\n')) {
      await execute(cluster.superuser(first.host), statement);
    }
    await migrateDatabase(cluster.settings, seedDemo);

    const ports = [await findFreePort(), await findFreePort()];
    const gateways = ports.map((port) =>
      runServer({
        ...{ ...cluster.settings, PORT: String(port), HOST: '127.0.0.1', AUTH_JWT_SECRET: secret },
        ...{ TRUST_PROXY: '127.0.0.1', DATABASE_POOL_MAX: '4', WRITES: 'on' },
      }),
    );
    await Promise.all(gateways.map(baseOf));
    const base = await startHaproxy(ports);
    await expect.poll(async () => (await send(base, '/health/ready')).status).toBe(200);

    const clients = startClients(base);
    const wait = () => clients.moreWrites(20);
    await wait();

    const next = async (kill: () => void) => {
      const killed = performance.now();
      kill();
      await wait();
      return clients.longestPause(killed);
    };
    const crash = await next(() => cluster.killPostgres(first));
    // Patroni makes the crashed server a standby again.
    await cluster.synchronous();
    const second = await cluster.primary();
    expect(second.name).not.toBe(first.name);
    const machine = await next(() => cluster.killMachine(second));
    expect((await cluster.primary()).name).toBe(first.name);
    expect([200, 201, 503]).toEqual(expect.arrayContaining([...clients.statuses.keys()]));
    const gateway = await next(() => gateways[0]?.child.kill('SIGKILL'));
    await clients.stop();

    const client = await connectTo(cluster.superuser(first.host, 'outfits'));
    const { rows: liked } = await client.query(
      `SELECT outfit_id || ' ' || user_id AS saved FROM outfit_likes`,
    );
    const { rows: published } = await client.query(
      `SELECT title, count(*)::int AS times FROM outfits WHERE title LIKE 'written %' GROUP BY 1`,
    );
    await client.end();
    expect(liked.map(({ saved }) => saved)).toEqual(expect.arrayContaining(clients.liked));
    const once = clients.published.map((title) => ({ title, times: 1 }));
    expect(published).toEqual(expect.arrayContaining(once));
    expect(published.filter(({ times }) => times > 1)).toEqual([]);
    expect(clients.old).toEqual([]);
    const seconds = [crash, machine, gateway].map((pause) => (pause / 1000).toFixed(2));
    console.info(
      `Writes were refused for ${seconds.join(', ')} s: PostgreSQL, its machine, a gateway. ${clients.liked.length} likes, ${clients.published.length} outfits, ${clients.reads()} reads.`,
    );
  },
);

/** One client that likes, one that publishes until it is acknowledged, and four that read what both change. */
function startClients(base: string) {
  const statuses = new Map<number, number>();
  const liked: string[] = [];
  const published: string[] = [];
  const acknowledged: number[] = [];
  const old: string[] = [];
  /** The newest of each record that any client got. */
  const newest = new Map<string, number>();
  let isStopped = false;
  let reads = 0;
  const watch = async (what: string, name: string, pattern: RegExp, headers = {}) => {
    const least = newest.get(name) ?? 0;
    const { status, body } = await send(base, what, undefined, undefined, headers);
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    const [, found] = status === 200 ? (pattern.exec(body) ?? []) : [];
    if (found === undefined) return false;
    if (Number(found) < least) old.push(`${name}: ${found} after ${least}`);
    newest.set(name, Math.max(newest.get(name) ?? 0, Number(found)));
    return true;
  };
  const like = async (turn: number) => {
    const [outfit, user] = [1 + (turn % 20), 1 + (Math.floor(turn / 20) % 100)];
    const document = `mutation { likeOutfit(id: "${outfitId(outfit)}") { outfit { likes } } }`;
    const headers = await signIn(user);
    if (!(await watch(document, `likes of ${outfit}`, /"likes":(\d+)/, headers))) return;
    liked.push(`${outfit} ${user}`);
    acknowledged.push(performance.now());
  };
  const publish = async (turn: number) => {
    const title = `written ${turn}`;
    const headers = { ...(await signIn(7)), 'idempotency-key': `"${title}"` };
    const body = JSON.stringify({ title, image_key: key });
    while (!isStopped) {
      // HAProxy closes the connection of a write whose gateway was killed: sent again, it is done once.
      const { status } = await fetch(`${base}/api/outfits/`, {
        ...{ method: 'POST', body },
        headers: { ...headers, 'content-type': 'application/json' },
      }).then(
        (answer) => answer.text().then(() => answer),
        () => ({ status: 0 }),
      );
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (status === 201) {
        published.push(title);
        acknowledged.push(performance.now());
        return;
      }
      await sleep(50);
    }
  };
  const read = async (turn: number) => {
    reads += 1;
    const outfit = 1 + (turn % 20);
    const record = `{ outfit(databaseId: ${outfit}) { likes } }`;
    if (turn % 2) await watch(record, `likes of ${outfit}`, /"likes":(\d+)/);
    else await watch('/api/outfits/', 'outfits', /"count":(\d+)/);
  };
  const repeat = async (work: (turn: number) => Promise<void>, from = 0) => {
    for (let turn = from; !isStopped; turn += 1) {
      await work(turn);
      await sleep(20);
    }
  };
  const all = [repeat(like), repeat(publish), ...[1, 2, 3, 4].map((at) => repeat(read, at * 5))];
  return {
    ...{ statuses, liked, published, old },
    reads: () => reads,
    moreWrites: async (count: number) => {
      const before = { liked: liked.length, published: published.length };
      const more = () => Math.min(liked.length - before.liked, published.length - before.published);
      await expect.poll(more, { timeout: 60_000, interval: 50 }).toBeGreaterThan(count);
    },
    /** The longest time without an acknowledged write since then, in milliseconds. */
    longestPause: (since: number) => {
      const times = [since, ...acknowledged.filter((time) => time > since).sort((a, b) => a - b)];
      return Math.max(...times.slice(1).map((time, at) => time - (times[at] ?? 0)));
    },
    stop: async () => {
      isStopped = true;
      await Promise.all(all);
    },
  };
}
