// docs/switching.md from its top to its bottom: an old service, and a gateway that takes its place, as
// processes of their own. Each step is what an owner types. Replays and exports have tests of their own.
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import {
  baseOf,
  dist,
  findFreePort,
  type Run,
  run,
  runServer,
  stop,
} from '../support/cli/process.ts';
import type { TestDatabase } from '../support/databases/test-database.ts';
import { makeMigratedDatabase } from '../support/gateway.ts';
import { hasOpenSsl, makeCertificate } from '../support/http/certificates.ts';
import { secret, signIn } from '../support/http/tokens.ts';
import {
  type LegacyService,
  makeLegacyRecord,
  makeLegacyRecords,
  startLegacyService,
} from '../support/legacy/legacy-service.ts';

const folder = mkdtempSync(join(tmpdir(), 'outfit-switching-test-'));
const decided = ['fraction', 'previous-page-1', 'unknown-ordering', 'several-orderings'];
const accept = decided.flatMap((kind) => ['--accept', kind]);
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

const start = (name: string, args: readonly string[], settings: Record<string, string> = {}): Run =>
  run([`${dist}commands/cli.js`, name, ...args], { ...environment, ...settings });

/** A command that is expected to go well, with what it prints. */
async function command(
  name: string,
  args: readonly string[],
  settings: Record<string, string> = {},
): Promise<string> {
  const started = start(name, args, settings);
  const code = await started.ended;
  expect({ code, errors: started.errors() }).toMatchObject({ code: 0 });
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
const post = async (base: string, path: string, body: object) =>
  fetch(base + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(await signIn(1)) },
    body: JSON.stringify(body),
  });
const metrics = async (name: string) => {
  const response = await fetch(`http://127.0.0.1:${environment['METRICS_PORT']}/metrics`);
  const lines = (await response.text()).matchAll(new RegExp(`^${name}{(.*)} (\\d+)$`, 'gm'));
  return Object.fromEntries([...lines].map(([, labels = '', value]) => [labels, Number(value)]));
};
const idsOf = (text: string): number[] =>
  JSON.parse(text).results.map(({ id }: { id: number }) => id);

test('the whole way', { timeout: 300_000 }, async () => {
  // 2. Import
  expect(await command('import', [legacy.url])).toContain('65 created, 0 updated');

  // 3. Verify
  const plain = start('verify', [legacy.url, '--wait', '0']);
  expect(await plain.ended).toBe(1);
  for (const kind of decided) expect(plain.output()).toContain(kind);
  expect(await command('verify', [legacy.url, '--wait', '0', ...accept])).toContain(
    'nothing differs but what was accepted',
  );

  // 5. Shadow: the old service answers and takes writes
  await inMode({ LEGACY_MODE: 'shadow', LEGACY_SAMPLE: '100' }, async (base) => {
    expect(await read(base, '/api/outfits/?ordering=id')).toMatchObject({
      status: 200,
      by: 'legacy',
    });
    await vi.waitFor(async () => {
      expect(Object.keys(await metrics('gateway_legacy_differences_total'))).toEqual([
        'kind="fraction",route="/api/outfits/",client="node",accepted="false"',
      ]);
    }, 20_000);
    const created = await post(base, '/api/outfits/', { title: 'Made there', image_key: image });
    expect(created.status).toBe(201);
    expect(created.headers.get('x-served-by')).toBe('legacy');
    expect(legacy.records.at(-1)).toMatchObject({ id: 66, title: 'Made there' });
    const query = 'mutation { createOutfit(input: {}) { errors { field } } }';
    const refused = await (await post(base, '/graphql', { query })).json();
    expect(refused).toMatchObject({ errors: [{ extensions: { code: 'LEGACY_OWNS_WRITES' } }] });
  });
  Object.assign(legacy.records.at(-1) ?? {}, makeLegacyRecord(66, { title: 'Made there' }));

  // 6. Keep up, also when it is killed in between
  const follow = [legacy.url, '--follow', '1s', '--prune', '--yes'];
  let follower = start('import', follow);
  await follower.until(/1 created, 0 updated, 65 unchanged/);
  legacy.records.splice(4, 1);
  Object.assign(legacy.records[0] ?? {}, { likes: 900 });
  follower.child.kill('SIGKILL');
  await once(follower.child, 'exit');
  follower = start('import', follow);
  await follower.until(/1 removed/);
  follower.child.kill('SIGTERM');
  expect(await follower.ended).toBe(130);

  // 7. Canary: here for all, from what was imported; writes still go there
  await inMode({ LEGACY_MODE: 'canary:100', LEGACY_SAMPLE: '0' }, async (base) => {
    const answer = await read(base, '/api/outfits/?ordering=-like_count');
    expect(answer).toMatchObject({ status: 200, by: 'gateway' });
    expect(idsOf(answer.text)[0]).toBe(1);
    legacy.fault = 'hanging';
    expect(await read(base)).toMatchObject({ status: 200, by: 'gateway' });
    legacy.fault = undefined;
    const created = await post(base, '/api/outfits/', { title: 'Last there', image_key: image });
    expect(created.headers.get('x-served-by')).toBe('legacy');
  });
  await inMode({ LEGACY_MODE: 'canary:0' }, async (base) => {
    expect(await read(base)).toMatchObject({ status: 200, by: 'legacy' });
  });
  Object.assign(legacy.records.at(-1) ?? {}, makeLegacyRecord(67, { title: 'Last there' }));

  // 8. The last import, while nobody writes
  await inMode({ LEGACY_MODE: 'shadow', WRITES: 'off' }, async (base) => {
    const asked = legacy.requests.length;
    const refused = await post(base, '/api/outfits/', { title: 'No', image_key: image });
    expect(refused.status).toBe(503);
    expect(refused.headers.get('retry-after')).toBe('60');
    expect(legacy.requests.slice(asked).filter(({ method }) => method === 'POST')).toEqual([]);
    expect(await command('import', [legacy.url, '--prune', '--yes'])).toContain('1 created');
    await command('verify', [legacy.url, '--wait', '0', ...accept]);
  });

  // 9. Mirror: here, writes too
  await inMode({ LEGACY_MODE: 'mirror', LEGACY_SAMPLE: '100' }, async (base) => {
    const created = await post(base, '/api/outfits/', { title: 'Made here', image_key: image });
    expect(created.status).toBe(201);
    // An id that the old service does not come near.
    expect(await created.json()).toMatchObject({ id: 1_000_000, title: 'Made here' });
    expect(idsOf((await read(base)).text)[0]).toBe(1_000_000);
    await vi.waitFor(async () => {
      const kinds = Object.keys(await metrics('gateway_legacy_differences_total'));
      expect(kinds.join()).toContain('kind="record-number"');
    }, 20_000);
    legacy.fault = 'hanging';
    for (let time = 0; time < 20; time++) {
      expect(await read(base)).toMatchObject({ status: 200, by: 'gateway' });
    }
    legacy.fault = undefined;

    // 11. Who calls
    await read(base, '/api/outfits/?user=5', { 'user-agent': 'Outfits/3.1.4 CFNetwork/1' });
    const usage = await fetch(`http://127.0.0.1:${environment['METRICS_PORT']}/usage`);
    expect(await usage.json()).toMatchObject({
      usage: expect.arrayContaining([
        expect.objectContaining({
          client: 'Outfits',
          version: '3.1.4',
          parameters: [{ name: 'user', requests: 1, unknown: true }],
        }),
      ]),
    });
  });
});

test.skipIf(!hasOpenSsl)(
  'over TLS with an authority of its own',
  { timeout: 120_000 },
  async () => {
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
    front.listen(0);
    await once(front, 'listening');
    const { port } = front.address() as AddressInfo;
    try {
      // The certificate is that of the name in LEGACY_URL; an address has none, so there it is LEGACY_HOST.
      for (const [address, LEGACY_HOST, name] of [
        ['localhost', '', 'localhost'],
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
        await command('import', [`${LEGACY_URL}/api/outfits/`], settings);
        const header = ['--header', 'Authorization: Token abc'];
        expect(await command('whoami', header, settings)).toContain('This gateway: user 3');
        const expected = LEGACY_HOST || `${address}:${port}`;
        expect(new Set(legacy.requests.map(({ headers }) => headers.host))).toEqual(
          new Set([expected]),
        );
        await inMode({ ...settings, LEGACY_MODE: 'shadow' }, async (base) => {
          expect(await read(base)).toMatchObject({ status: 200, by: 'legacy' });
          const { host } = new URL(base);
          expect(legacy.requests.at(-1)?.headers.host).toBe(LEGACY_HOST || host);
        });
        expect(new Set(names)).toEqual(new Set([name]));
      }
      await inMode(
        { LEGACY_URL: `https://localhost:${port}`, LEGACY_MODE: 'shadow' },
        async (base) => expect(await read(base)).toMatchObject({ status: 502, by: 'legacy' }),
      );
    } finally {
      front.close();
    }
  },
);
