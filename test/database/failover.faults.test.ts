// docs/replicas.md: the primary dies, its standby is promoted, and a proxy leads to it, as HAProxy does with Patroni.
import { expect, onTestFinished, test } from 'vitest';
import { baseOf, runServer, stop as stopServer } from '../support/cli/process.ts';
import { execute } from '../support/databases/connections.ts';
import { startDemoPostgres, throughPort } from '../support/databases/demo-postgres.ts';
import { send, startLoad } from '../support/faults/load.ts';
import { openNetwork } from '../support/faults/network.ts';
import { outfitId } from '../support/gateway.ts';
import { secret, signIn } from '../support/http/tokens.ts';

test('503 until the proxy leads to the promoted standby, and no acknowledged write is lost: with both servers as standbys', async () => {
  const primary = await startDemoPostgres();
  const standby = await primary.addStandby();
  const proxy = await openNetwork(primary.port);
  onTestFinished(async () => {
    proxy.close();
    await standby.close();
    // Its folder goes with a server that runs.
    await primary.start();
    await primary.close();
  });
  // Without it, writes that the standby has not received are lost: the setting of the operator.
  await execute(primary.url, "ALTER SYSTEM SET synchronous_standby_names = '*'");
  await execute(primary.url, 'SELECT pg_reload_conf()');

  const server = runServer({
    DATABASE_URL: throughPort(primary.url, proxy.port),
    DATABASE_READ_URLS: `${primary.url},${standby.url}`,
    AUTH_JWT_SECRET: secret,
  });
  const base = await baseOf(server);
  const load = startLoad(base, 6);
  const acknowledged: string[] = [];
  let isWriting = true;
  const writing = (async () => {
    for (let turn = 1; isWriting; turn += 1) {
      const [id, user] = [1 + (turn % 2000), 1 + Math.floor(turn / 2000) + (turn % 20)];
      const document = `mutation { likeOutfit(id: "${outfitId(id)}") { outfit { likes } } }`;
      const headers = await signIn(user);
      const { status, body } = await send(base, document, undefined, undefined, headers);
      if (status === 200 && !body.includes('errors')) acknowledged.push(`${id} ${user}`);
    }
  })();
  await expect.poll(() => acknowledged.length).toBeGreaterThan(50);
  const before = acknowledged.length;
  const ready = async () => (await send(base, '/health/ready')).status;
  await primary.crash();
  await expect.poll(ready).toBe(503);
  await execute(standby.url, 'SELECT pg_promote()');
  proxy.redirect(standby.port);
  await expect
    .poll(() => acknowledged.length, { timeout: 60_000, interval: 20 })
    .toBeGreaterThan(before + 5);
  await expect.poll(ready).toBe(200);
  isWriting = false;
  await writing;
  await load.stop();

  const { rows } = await execute(
    standby.url,
    `SELECT outfit_id || ' ' || user_id AS saved FROM outfit_likes`,
  );
  expect(rows.map(({ saved }) => saved)).toEqual(expect.arrayContaining(acknowledged));
  const refused = load.answers.filter(({ status }) => status !== 200);
  const forms = refused.map(({ status, retryAfter }) => `${status}, Retry-After: ${retryAfter}`);
  expect(new Set(forms)).toEqual(new Set(['503, Retry-After: 1']));
  expect((await send(base, '/api/outfits/?ordering=-like_count')).status).toBe(200);
  expect(await stopServer(server)).toBe(0);
});
