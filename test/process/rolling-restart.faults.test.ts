// docs/install.md: several processes behind deploy/haproxy.cfg are restarted one after the other, and no request fails.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { baseOf, demoEnvironment, publish, runServer, stop } from '../support/cli/process.ts';
import { addressOf, keepBusy } from '../support/faults/clients.ts';
import { send } from '../support/faults/load.ts';
import { findFreePort } from '../support/http/free-port.js';
import { hasHaproxy, startHaproxy } from '../support/http/haproxy.ts';
import { secret } from '../support/http/tokens.ts';

test.skipIf(!hasHaproxy)(
  'a rolling restart of three processes behind HAProxy answers every read and every write',
  async () => {
    const environment = {
      ...(await demoEnvironment()),
      AUTH_JWT_SECRET: secret,
      HOST: '127.0.0.1',
      TRUST_PROXY: '127.0.0.1',
      DATABASE_POOL_MAX: '4',
    };
    const ports = [await findFreePort(), await findFreePort(), await findFreePort()];
    const start = async (port: number) => {
      const server = runServer({ ...environment, PORT: String(port) });
      await baseOf(server);
      return server;
    };
    const base = await startHaproxy(ports);
    const servers = await Promise.all(ports.map(start));
    const isReady = async (at: string) => (await send(at, '/health/ready')).status;
    await expect.poll(() => isReady(base)).toBe(200);

    // A client cannot say where links lead to.
    const listed = await send(base, '/api/outfits/', undefined, undefined, {
      'x-forwarded-host': 'evil.test',
    });
    expect(JSON.parse(listed.body).next).toBe(`${base}/api/outfits/?page=2`);

    const stopping = new AbortController();
    const load = keepBusy(addressOf(base), 10, '/api/outfits/?page=2', stopping.signal);
    const written: number[] = [];
    const writing = (async () => {
      while (!stopping.signal.aborted) written.push((await publish(base, 1)).status);
    })();
    for (const [at, port] of ports.entries()) {
      const before = written.length;
      const [old] = servers.splice(at, 1);
      if (old) expect(await stop(old)).toBe(0);
      servers.splice(at, 0, await start(port));
      await expect.poll(() => isReady(`http://127.0.0.1:${port}`)).toBe(200);
      await expect.poll(() => written.length).toBeGreaterThan(before + 5);
    }
    stopping.abort();
    const { answers, broken } = await load;
    await writing;
    expect(answers.length).toBeGreaterThan(100);
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    expect(broken).toBe(0);
    expect(new Set(written)).toEqual(new Set([201]));
    for (const server of servers) expect(await stop(server)).toBe(0);
  },
);

test.skipIf(!hasHaproxy)(
  'while no process behind HAProxy is ready, clients get the 503 of the gateway',
  async () => {
    const HOST = '127.0.0.1';
    // Nothing listens there.
    const DATABASE_URL = `postgresql://gateway@${HOST}:1/outfits`;
    const PORT = String(await findFreePort());
    const server = runServer({ DATABASE_URL, HOST, PORT });
    await baseOf(server);
    const base = await startHaproxy([Number(PORT)]);
    // HAProxy takes a process for ready until it has looked.
    const health = () => send(base, '/health/live');
    await expect.poll(async () => (await health()).status).toBe(200);
    for (let left = 10; left > 0; left--) {
      const { status, body, retryAfter } = await send(base, '/api/outfits/');
      expect({ status, retryAfter }).toEqual({ status: 503, retryAfter: '1' });
      expect(body).toContain('{"detail":"Service temporarily unavailable');
      await sleep(50);
    }
    expect(await stop(server)).toBe(0);
  },
);
