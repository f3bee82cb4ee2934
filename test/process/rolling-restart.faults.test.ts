// docs/install.md: several processes behind deploy/haproxy.cfg are restarted one after the other, and no request fails.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import {
  baseOf,
  demoEnvironment,
  findFreePort,
  publish,
  runServer,
  stop,
} from '../support/cli/process.ts';
import { addressOf, keepBusy } from '../support/faults/clients.ts';
import { send } from '../support/faults/load.ts';
import { secret } from '../support/http/tokens.ts';

const program = '/usr/sbin/haproxy';

/** HAProxy with the file of deploy/, before these ports. */
async function startProxy(ports: readonly number[]): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'outfit-gateway-haproxy-'));
  const own = await findFreePort();
  const given = readFileSync(new URL('../../deploy/haproxy.cfg', import.meta.url), 'utf8');
  const servers = ports.map((port, at) => `    server gateway-${at + 1} 127.0.0.1:${port}\n`);
  const text = given
    .replace('bind :4000', `bind 127.0.0.1:${own}`)
    .replace(/(?: {4}server gateway-\d 127\.0\.0\.1:400\d\n)+/, servers.join(''));
  const file = join(folder, 'haproxy.cfg');
  writeFileSync(file, text);
  const child = spawn(program, ['-db', '-f', file], { stdio: 'ignore' });
  onTestFinished(() => {
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true });
  });
  return `http://127.0.0.1:${own}`;
}

test.skipIf(!existsSync(program))(
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
    const base = await startProxy(ports);
    const servers = await Promise.all(ports.map(start));
    const isReady = async (at: string) => (await send(at, '/health/ready')).status;
    await expect.poll(() => isReady(base)).toBe(200);

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
