// docs/switching.md from its top to its bottom: an old service, and a gateway that takes its place, as
// processes of their own. Each step is what an owner types. Replays and exports have tests of their own.
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { baseOf, dist, findFreePort, run, runServer, stop } from '../support/cli/process.ts';
import type { TestDatabase } from '../support/databases/test-database.ts';
import { makeMigratedDatabase } from '../support/gateway.ts';
import { hasOpenSsl, makeCertificate } from '../support/http/certificates.ts';
import { portOf } from '../support/http/listen.ts';
import { secret, signIn } from '../support/http/tokens.ts';
import {
  type LegacyService,
  makeLegacyRecord,
  makeLegacyRecords,
  startLegacyService,
} from '../support/legacy/legacy-service.ts';
import { accept, decided } from '../support/legacy/reports.ts';

const folder = mkdtempSync(join(tmpdir(), 'outfit-switching-test-'));
const image = 'outfits/2b1d3c4e-0000-4000-8000-000000000001.png';

let legacy: LegacyService;
let testDatabase: TestDatabase;
let environment: Record<string, string>;

beforeAll(async () => {
  legacy = await startLegacyService(makeLegacyRecords(65));
  testDatabase = await makeMigratedDatabase('PostgreSQL');
  environment = {
    ...testDatabase.environment,
    DATA_DIR: join(folder, 'data'),
    SEED: 'none',
    FIRST_ID: '1000000',
    PORT: String(await findFreePort()),
    HOST: '127.0.0.1',
    METRICS_PORT: String(await findFreePort()),
    AUTH_JWT_SECRET: secret,
  };
});
afterAll(async () => {
  await legacy.close();
  await testDatabase.remove();
  rmSync(folder, { recursive: true, force: true });
});

const start = (name: string, args: readonly string[], settings: Record<string, string> = {}) =>
  run([`${dist}commands/cli.js`, name, ...args], { ...environment, ...settings });

/** A command that is expected to go well, with what it prints. */
async function command(
  name: string,
  args: readonly string[],
  settings: Record<string, string> = {},
): Promise<string> {
  const started = start(name, args, settings);
  expect(await started.ended, started.errors()).toBe(0);
  return started.output();
}

/** The gateway in a mode, while `work` runs. */
async function inMode(
  settings: Record<string, string>,
  work: (base: string) => Promise<void>,
): Promise<void> {
  const server = runServer({ ...environment, LEGACY_URL: legacy.base, ...settings });
  await work(await baseOf(server));
  expect(await stop(server)).toBe(0);
}

const read = async (base: string, target = '/api/outfits/', headers = {}) => {
  const response = await fetch(base + target, { headers });
  return {
    status: response.status,
    by: response.headers.get('x-served-by'),
    text: await response.text(),
  };
};
const publish = async (base: string, title: string) =>
  fetch(`${base}/api/outfits/`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(await signIn(1)) },
    body: JSON.stringify({ title, image_key: image }),
  });
const metrics = async (name: string) => {
  const response = await fetch(`http://127.0.0.1:${environment['METRICS_PORT']}/metrics`);
  const lines = (await response.text()).matchAll(new RegExp(`^${name}{(.*)} \\d+$`, 'gm'));
  return Array.from(lines, ([, labels]) => labels);
};
const idsOf = (text: string): number[] =>
  JSON.parse(text).results.map(({ id }: { id: number }) => id);
const verify = () => command('verify', [legacy.url, '--wait', '0', ...accept(...decided)]);

test('the whole way', async () => {
  // 2. Import
  expect(await command('import', [legacy.url])).toContain('65 created, 0 updated');

  // 3. Verify
  expect(await verify()).toContain('nothing differs but what was accepted');

  // 5. Shadow: the old service answers and takes writes
  await inMode({ LEGACY_MODE: 'shadow', LEGACY_SAMPLE: '100' }, async (base) => {
    const answer = await read(base, '/api/outfits/?ordering=id');
    expect(answer).toMatchObject({ status: 200, by: 'legacy' });
    await expect
      .poll(() => metrics('gateway_legacy_differences_total'))
      .toEqual(['kind="fraction",route="/api/outfits/",client="node",accepted="false"']);
    const created = await publish(base, 'Made there');
    expect([created.status, created.headers.get('x-served-by')]).toEqual([201, 'legacy']);
    expect(legacy.records.at(-1)).toMatchObject({ id: 66, title: 'Made there' });
  });
  Object.assign(legacy.records.at(-1) ?? {}, makeLegacyRecord(66, { title: 'Made there' }));

  // 6. Keep up
  const follower = start('import', [legacy.url, '--follow', '1s', '--prune', '--yes']);
  await follower.until(/1 created, 0 updated, 65 unchanged/);
  legacy.records.splice(4, 1);
  Object.assign(legacy.records[0] ?? {}, { likes: 900 });
  await follower.until(/1 removed/);
  follower.child.kill('SIGTERM');
  expect(await follower.ended).toBe(130);

  // 7. Canary: here for all, from what was imported; writes still go there
  await inMode({ LEGACY_MODE: 'canary:100', LEGACY_SAMPLE: '0' }, async (base) => {
    const answer = await read(base, '/api/outfits/?ordering=-like_count');
    expect(answer).toMatchObject({ status: 200, by: 'gateway' });
    expect(idsOf(answer.text)[0]).toBe(1);
    const created = await publish(base, 'Last there');
    expect(created.headers.get('x-served-by')).toBe('legacy');
  });
  Object.assign(legacy.records.at(-1) ?? {}, makeLegacyRecord(67, { title: 'Last there' }));

  // 8. The last import, while nobody writes
  await inMode({ LEGACY_MODE: 'shadow', WRITES: 'off' }, async (base) => {
    expect((await publish(base, 'No')).status).toBe(503);
    expect(await command('import', [legacy.url, '--prune', '--yes'])).toContain('1 created');
    await verify();
  });

  // 9. Mirror: here, writes too
  await inMode({ LEGACY_MODE: 'mirror', LEGACY_SAMPLE: '100' }, async (base) => {
    const created = await publish(base, 'Made here');
    expect(created.status).toBe(201);
    // An id that the old service does not come near.
    expect(await created.json()).toMatchObject({ id: 1_000_000, title: 'Made here' });
    expect(idsOf((await read(base)).text)[0]).toBe(1_000_000);
    await expect
      .poll(() => metrics('gateway_legacy_differences_total'))
      .toContainEqual(expect.stringContaining('kind="record-number"'));
  });
});

test.skipIf(!hasOpenSsl)('over TLS with an authority of its own', async () => {
  const hosts = ['localhost', 'old.example.com'];
  makeCertificate(folder, 'authority', { subject: 'Authority of the tests' });
  makeCertificate(folder, 'old', { subject: 'old', hosts, authority: 'authority' });
  const names: string[] = [];
  const front = createTlsServer(
    {
      cert: readFileSync(join(folder, 'old.crt')),
      key: readFileSync(join(folder, 'old.key')),
      SNICallback: (name, settle) => settle(null, void names.push(name)),
    },
    (socket) => {
      const inner = connect(Number(new URL(legacy.base).port), '127.0.0.1');
      socket.on('error', () => inner.destroy()).pipe(inner);
      inner.on('error', () => socket.destroy()).pipe(socket);
    },
  );
  onTestFinished(() => void front.close());
  await once(front.listen(0), 'listening');
  const port = portOf(front);
  // The certificate is that of the name in LEGACY_URL; an address has none, so there it is LEGACY_HOST.
  for (const [address, LEGACY_HOST, name] of [
    ['localhost', 'public.example.com', 'localhost'],
    ['127.0.0.1', 'old.example.com:8000', 'old.example.com'],
  ] as const) {
    const LEGACY_URL = `https://${address}:${port}`;
    const settings = {
      ...{ LEGACY_URL, LEGACY_HOST, AUTH_WEBHOOK_URL: `${LEGACY_URL}/whoami/` },
      NODE_EXTRA_CA_CERTS: join(folder, 'authority.crt'),
    };
    names.length = 0;
    legacy.requests.length = 0;
    const [, told] = await Promise.all([
      command('import', [`${LEGACY_URL}/api/outfits/`], settings),
      command('whoami', ['--header', 'Authorization: Token abc'], settings),
      inMode({ ...settings, LEGACY_MODE: 'shadow' }, async (base) => {
        expect(await read(base)).toMatchObject({ status: 200, by: 'legacy' });
      }),
    ]);
    expect(told).toContain('This gateway: user 3');
    const sent = legacy.requests.map(({ headers }) => headers.host);
    expect(new Set(sent)).toEqual(new Set([LEGACY_HOST]));
    expect(new Set(names)).toEqual(new Set([name]));
  }
  await inMode({ LEGACY_URL: `https://localhost:${port}`, LEGACY_MODE: 'shadow' }, async (base) =>
    expect(await read(base)).toMatchObject({ status: 502, by: 'legacy' }),
  );
});
