// docs/failover.md: the primary dies, its standby is promoted, and a proxy leads to it, as HAProxy does with Patroni.
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { baseOf, dist, run, runServer, stop as stopServer } from '../support/cli/process.ts';
import { execute } from '../support/databases/connections.ts';
import { startEmbeddedPostgres } from '../support/databases/embedded-postgres.js';
import { send, startLoad } from '../support/faults/load.ts';
import { openNetwork } from '../support/faults/network.ts';
import { outfitId } from '../support/gateway.ts';
import { secret, signIn } from '../support/http/tokens.ts';

/** Leads new connections to the server that is no standby, and ends the others: `on-marked-down shutdown-sessions`. */
async function openProxy(ports: readonly number[]) {
  let leader = ports[0] ?? 0;
  const network = await openNetwork(leader);
  const isPrimary = async (port: number) => {
    const client = new pg.Client({
      connectionString: `postgresql://postgres:postgres@127.0.0.1:${port}/postgres`,
      connectionTimeoutMillis: 1_000,
    });
    client.on('error', () => {});
    try {
      await client.connect();
      return (
        (await client.query('SELECT pg_is_in_recovery() AS standby')).rows[0].standby === false
      );
    } catch {
      return false;
    } finally {
      await client.end().catch(() => {});
    }
  };
  const timer = setInterval(async () => {
    for (const port of ports) {
      if (port === leader || !(await isPrimary(port))) continue;
      leader = port;
      network.redirect(port);
    }
  }, 200);
  return {
    port: network.port,
    close() {
      clearInterval(timer);
      network.close();
    },
  };
}

test.each<[string, Record<string, string>]>([
  ['one process', {}],
  ['workers, and both servers as standbys', { WORKERS: '2', DATABASE_READ_URLS: 'both' }],
])(
  'with %s: 503 until the proxy leads to the promoted standby, and no acknowledged write is lost',
  {
    timeout: 180_000,
  },
  async (_name, settings) => {
    const primary = await startEmbeddedPostgres();
    await run([`${dist}commands/cli.js`, 'migrate'], { DATABASE_URL: primary.url }).ended;
    const seeded = runServer({ DATABASE_URL: primary.url, SEED: 'demo' });
    await baseOf(seeded);
    await stopServer(seeded);
    const standby = await primary.addStandby();
    const proxy = await openProxy([primary.port, standby.port]);
    let isCrashed = false;
    onTestFinished(async () => {
      proxy.close();
      await standby.close();
      // Its folder goes with a server that runs.
      if (isCrashed) await primary.start();
      await primary.close();
    });
    // Without it, writes that the standby has not received are lost: the setting of the operator.
    await execute(primary.url, "ALTER SYSTEM SET synchronous_standby_names = '*'");
    await execute(primary.url, 'SELECT pg_reload_conf()');

    const server = runServer({
      DATABASE_URL: primary.url.replace(`:${primary.port}/`, `:${proxy.port}/`),
      AUTH_JWT_SECRET: secret,
      ...settings,
      ...(settings['DATABASE_READ_URLS'] && {
        DATABASE_READ_URLS: `${primary.url},${standby.url}`,
      }),
    });
    const base = await baseOf(server);
    const load = startLoad(base, 6);
    const acknowledged: string[] = [];
    let isWriting = true;
    const writing = (async () => {
      for (let id = 1; isWriting; id += 1) {
        const document = `mutation { likeOutfit(id: "${outfitId(1 + (id % 2000))}") { outfit { likes } } }`;
        const user = 1 + Math.floor(id / 2000) + (id % 20);
        const headers = await signIn(user);
        const { status, body } = await send(base, document, undefined, undefined, headers);
        if (status === 200 && !body.includes('errors')) {
          acknowledged.push(`${1 + (id % 2000)} ${user}`);
        }
      }
    })();
    await expect.poll(() => acknowledged.length).toBeGreaterThan(50);
    const before = acknowledged.length;
    await primary.crash();
    isCrashed = true;
    await expect.poll(async () => (await send(base, '/health/ready')).status).toBe(503);
    await execute(standby.url, 'SELECT pg_promote()');
    await expect
      .poll(() => acknowledged.length, { timeout: 60_000, interval: 20 })
      .toBeGreaterThan(before + 5);
    await expect.poll(async () => (await send(base, '/health/ready')).status).toBe(200);
    isWriting = false;
    await writing;
    await load.stop();

    const { rows } = await execute(
      standby.url,
      'SELECT outfit_id AS id, user_id AS user FROM outfit_likes',
    );
    const saved = new Set(rows.map(({ id, user }) => `${id} ${user}`));
    expect(acknowledged.filter((like) => !saved.has(like))).toEqual([]);
    const refused = load.answers.filter(({ status }) => status !== 200);
    expect(refused.length).toBeGreaterThan(0);
    const forms = refused.map(({ status, retryAfter }) => `${status}, Retry-After: ${retryAfter}`);
    expect(new Set(forms)).toEqual(new Set(['503, Retry-After: 1']));
    expect((await send(base, '/api/outfits/?ordering=-like_count')).status).toBe(200);
    expect(await stopServer(server)).toBe(0);
  },
);
