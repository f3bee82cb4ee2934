// `npm run replay`: what stands in access logs is asked of both services as it stood there.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { buildApp } from '../../src/app.ts';
import * as importCommand from '../../src/commands/import.ts';
import * as replayCommand from '../../src/commands/replay.ts';
import { readConfig } from '../../src/config.ts';
import { openDatabase } from '../../src/database/database.ts';
import { callCommand } from '../support/cli/commands.ts';
import { dist, run } from '../support/cli/process.ts';
import { makeMigratedDatabase } from '../support/gateway.ts';
import { laneKinds } from '../support/lane.ts';
import {
  type LegacyService,
  makeLegacyRecords,
  startLegacyService,
} from '../support/legacy/legacy-service.ts';
import { openBefore } from '../support/legacy/two-services.ts';

const folder = mkdtempSync(join(tmpdir(), 'outfit-replay-test-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function save(name: string, content: string | Buffer): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

const line = (target: string, method = 'GET') =>
  `10.0.0.1 - - [22/Nov/2026:02:00:00 +0000] "${method} ${target} HTTP/1.1" 200 12 "-" "okhttp/4.9"`;

/** One request in each form that logs have, for `/api/outfits/?f=` and the number of the form. */
const forms: Readonly<Record<string, string>> = {
  common: '10.0.0.1 - ann [22/Nov/2026:02:00:00 +0000] "GET /api/outfits/?f=0 HTTP/1.1" 200 12',
  combined: line('/api/outfits/?f=1'),
  'with a virtual host': `shop.test:443 ${line('/api/outfits/?f=2')}`,
  'with a whole URL': line('https://shop.test:443/api/outfits/?f=3'),
  'with escapes': line('/api/outfits/\\x3ff=4'),
  'nginx JSON': '{"time":"x","request":"GET /api/outfits/?f=5 HTTP/1.1","status":200}',
  'nginx fields': '{"request_method":"GET","request_uri":"/api/outfits/?f=6","uri":"/x"}',
  'a path and its query': '{"method":"GET","path":"/api/outfits/","query":"f=7"}',
  Caddy: '{"request":{"method":"GET","host":"x","uri":"/api/outfits/?f=8"},"status":200}',
  Traefik: '{"RequestMethod":"GET","RequestPath":"/api/outfits/?f=9","DownstreamStatus":200}',
  Fastify: '{"req":{"method":"GET","url":"/api/outfits/?f=10"},"msg":"incoming request"}',
  'what became of the path':
    '{"request_method":"GET","uri":"/api/outfits/","request":"GET /api/outfits/?f=11 HTTP/1.1"}',
  Docker: JSON.stringify({ log: `${line('/api/outfits/?f=12')}\n`, stream: 'stdout', time: 'x' }),
  'Docker around JSON': JSON.stringify({
    log: '{"req":{"method":"GET","url":"/api/outfits/?f=13"}}\n',
  }),
  'words before JSON': 'app-1  | {"req":{"method":"GET","url":"/api/outfits/?f=14"}}',
};

describe.each(laneKinds)('on %s', (kind) => {
  let legacy: LegacyService;
  let against: string;
  const opened: { close(): Promise<unknown> }[] = [];

  beforeAll(async () => {
    const testDatabase = await makeMigratedDatabase(kind);
    legacy = await startLegacyService(makeLegacyRecords(65));
    expect((await callCommand(importCommand, [legacy.url], testDatabase.environment)).code).toBe(0);
    const config = readConfig({
      ...testDatabase.environment,
      MEDIA_URL: 'https://media.example.com',
      VIDEO_URL: 'https://video.example.com',
    });
    const database = await openDatabase(config);
    const app = await buildApp(config, database);
    against = await app.listen({ port: 0, host: '127.0.0.1' });
    opened.push(app, database, { close: () => testDatabase.remove() }, legacy);
  });
  afterAll(async () => {
    for (const one of opened) await one.close();
  });
  beforeEach(() => {
    legacy.fault = undefined;
    legacy.requests.length = 0;
  });

  interface Written {
    readonly same: boolean;
    readonly broken?: string;
    readonly requests: number;
    readonly distinct: number;
    readonly differences: readonly {
      readonly kind: string;
      readonly where?: string;
      readonly times: number;
    }[];
    readonly accepted: readonly { readonly kind: string; readonly times: number }[];
  }

  async function replay(args: readonly string[], input?: string | Buffer) {
    const json = join(folder, 'report.json');
    const all = ['--legacy', legacy.base, '--against', against, '--wait', '0', '--rate', '1000'];
    const result = await callCommand(replayCommand, [...all, '--json', json, ...args], {}, input);
    const written = existsSync(json) ? readFileSync(json, 'utf8') : 'null';
    rmSync(json, { force: true });
    return { ...result, report: JSON.parse(written) as Written | null };
  }
  const accept = ['previous-page-1', 'unknown-ordering', 'fraction'].flatMap((kind) => [
    '--accept',
    kind,
  ]);
  /** Without preflights. */
  const asked = () =>
    legacy.requests
      .filter(({ headers }) => headers['access-control-request-method'] === undefined)
      .map(({ method, target }) => `${method} ${target}`)
      .sort();
  const preflights = () =>
    legacy.requests
      .flatMap(({ target, headers }) => {
        const method = headers['access-control-request-method'];
        return method === undefined ? [] : [`${headers.origin} ${method} ${target}`];
      })
      .sort();

  test.each(Object.entries(forms).map(([name, text], number) => ({ name, text, number })))(
    'reads a log in the form of $name',
    async ({ text, number }) => {
      await replay([...accept, '-'], `${text}\n`);
      expect(asked()).toEqual([`GET /api/outfits/?f=${number}`]);
    },
  );

  test('asks each distinct request once, and says how often it was asked', async () => {
    const page = (number: number) => line(`/api/outfits/?page=${number}`);
    const log = save('access.log', `${[page(1), page(2), page(1), page(1)].join('\n')}\n`);
    const more = save(
      'access.log.1.gz',
      gzipSync(`${page(1)}\n${line('/api/outfits/', 'HEAD')}\n`),
    );
    const found = await replay([...accept, log, more]);
    expect(found).toMatchObject({ code: 0, stderr: '' });
    expect(found.stdout).toMatch(
      /^Accepted: .+\n3 requests, asked 6 times, compared: nothing differs but what was accepted\.\n$/,
    );
    expect(asked()).toEqual([
      'GET /api/outfits/?page=1',
      'GET /api/outfits/?page=2',
      'HEAD /api/outfits/',
    ]);
    expect(found.report).toMatchObject({ requests: 6, distinct: 3 });
    const known = found.report?.accepted.find(({ kind }) => kind === 'fraction');
    expect(known?.times).toBe(5);
  });

  test('asks in exactly the words of the log, whatever they are', async () => {
    const targets = [
      '/api/outfits/?a=%zz',
      '/api/outfits/?a=%C3%28&page=1',
      '/api/./outfits/../outfits/',
      '/api/outfits/?a=[b]|{c}^`',
      '/api/outfits/?a=%20+',
      '/api//outfits/',
    ];
    await replay(['-', ...accept], targets.map((target) => `${line(target)}\n`).join(''));
    expect([...new Set(asked())]).toEqual(targets.map((target) => `GET ${target}`).sort());
  });

  test('never sends what could write, and says what it left out', async () => {
    const lines = [
      ...['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'].map((method) =>
        line('/api/outfits/', method),
      ),
      line('/static/app.js'),
      'no request at all',
      line('/api/outfits/?page=1'),
    ];
    const found = await replay(['-', ...accept], lines.join('\n'));
    expect(asked()).toEqual(['GET /api/outfits/?page=1']);
    expect(found.stdout).toMatch(
      /^Left out: 5 other methods, 1 other paths, 1 lines without a request that can be asked again\.\n/,
    );
    expect(found.stderr).toBe('-:7 holds no request that can be asked again.\n');
  });

  test('sends a preflight for each method of the log to a path of each form, with or without --origin', async () => {
    const log = [
      line('/api/outfits/?page=1'),
      line('/api/outfits/?page=2', 'HEAD'),
      line('/api/outfits/', 'POST'),
      line('/api/outfits/7/like/', 'POST'),
      line('/api/outfits/8/like/', 'DELETE'),
      line('/api/outfits/8/like/', 'PURGE'),
      // Not here: a preflight would only say so once more.
      line('/api/echo/'),
      line('/about', 'POST'),
    ].join('\n');
    const sent = ['GET /api/outfits/', 'POST /api/outfits/'];
    const liked = ['POST /api/outfits/7/like/', 'DELETE /api/outfits/7/like/'];
    const from = (...origins: string[]) =>
      origins.flatMap((origin) => [...sent, ...liked].map((one) => `${origin} ${one}`)).sort();
    await replay(['-', ...accept], log);
    expect(preflights()).toEqual(from('https://origin.invalid'));
    legacy.requests.length = 0;
    await replay(['-', ...accept, '--origin', 'https://app.test'], log);
    expect(preflights()).toEqual(from('https://app.test', 'https://origin.invalid'));
  });

  test('judges each method that pages of other origins may send, and says when an origin is missing', async () => {
    legacy.cors = { origin: 'https://app.test', methods: 'DELETE, GET, OPTIONS, PATCH, POST, PUT' };
    onTestFinished(() => {
      legacy.cors = undefined;
    });
    const settings = { LEGACY_MODE: 'off', CORS_ORIGINS: 'https://app.test' };
    const gateway = await openBefore(kind, legacy.base, settings);
    onTestFinished(() => gateway.close());
    const args = ['-', '--against', gateway.base];
    const log = ['GET', 'POST', 'PATCH'].map((method) => line('/api/outfits/', method)).join('\n');
    const methodsIn = ({ report }: { readonly report: Written | null }) =>
      report?.differences.filter(({ where }) => where === 'access-control-allow-methods');
    const unnamed = await replay(args, log);
    expect(methodsIn(unnamed)).toEqual([]);
    expect(unnamed.stdout).toContain('name those of your web apps by --origin.');
    const named = await replay([...args, '--origin', 'https://app.test'], log);
    expect(named.stdout).not.toContain('by --origin.');
    expect(methodsIn(named)).toMatchObject([
      { times: 1, examples: [{ sentence: expect.stringContaining('"patch" in the source') }] },
    ]);
  });

  test('reports differences by kind, weighed by how often apps asked', async () => {
    legacy.fault = 'wrong count';
    const log = `${line('/api/outfits/?page=1')}\n`.repeat(7) + line('/api/outfits/?page=abc');
    const found = await replay(['-', ...accept], log);
    expect(found.code).toBe(1);
    expect(found.report?.differences).toMatchObject([{ kind: 'count', times: 7 }]);
    expect(await replay(['-', ...accept, '--accept', 'count'], log)).toMatchObject({ code: 0 });
    expect(await replay(['-', ...accept, '--accept', 'count:count'], log)).toMatchObject({
      code: 0,
    });
    expect(await replay(['-', ...accept, '--accept', 'count:next'], log)).toMatchObject({
      code: 1,
    });
  });

  test.each(['closing early', 'cut short'] as const)(
    'a service that is %s is a difference',
    async (fault) => {
      legacy.fault = fault;
      const found = await replay(['-', ...accept], line('/api/outfits/?page=1'));
      expect(found.code).toBe(1);
      expect(found.report?.differences).toMatchObject([{ kind: 'unreachable', times: 1 }]);
    },
  );

  test('a service that does not answer in time is a difference', async () => {
    legacy.fault = 'hanging';
    const found = await replay(
      ['-', ...accept, '--timeout', '200ms'],
      line('/api/outfits/?page=1'),
    );
    expect(found.stdout).toContain('did not answer (no whole answer in 0.2 s)');
    expect(found.code).toBe(1);
  });

  test('a service that has gone away ends it, with a report of what was found', async () => {
    legacy.fault = 'closing early';
    const lines = Array.from({ length: 300 }, (_, index) => line(`/api/outfits/?f=${index}`));
    const many = ['--concurrency', '32'];
    const found = await replay(['-', ...accept, ...many], lines.join('\n'));
    expect(found.code).toBe(2);
    expect(found.stderr).toContain('Not everything could be compared: 50 requests in a row');
    expect(found.report).toMatchObject({ same: false, broken: expect.stringMatching(/^50 /) });
    expect(found.report?.differences).toMatchObject([{ kind: 'unreachable' }]);
    expect(new Set(asked()).size).toBeLessThan(150);
    // Also when that alone is forgiven.
    const forgiven = ['--accept', 'unreachable', ...many];
    expect((await replay(['-', ...accept, ...forgiven], lines.join('\n'))).code).toBe(2);
  });

  test('asks again no faster than it asks', async () => {
    legacy.fault = 'wrong count';
    const begin = performance.now();
    await replay(['-', ...accept, '--rate', '2'], line('/api/outfits/?page=1'));
    expect(asked()).toHaveLength(3);
    // Three requests have two distances between them; a slow machine only adds to these.
    expect(performance.now() - begin).toBeGreaterThan(990);
  });

  test('does not compare the old service with itself', async () => {
    const gateway = await openBefore(kind, legacy.base, { LEGACY_MODE: 'shadow' });
    onTestFinished(() => gateway.close());
    const json = join(folder, 'passed-on.json');
    const sides = ['--legacy', legacy.base, '--against', gateway.base, '--json', json];
    const found = await callCommand(replayCommand, ['-', ...sides], {}, line('/api/outfits/'));
    expect(found).toMatchObject({ code: 2, stdout: '' });
    expect(found.stderr).toMatch(
      /^http\S+ passes requests on to the old service, .*LEGACY_MODE=off/,
    );
    expect(existsSync(json)).toBe(false);
  });

  test.each([
    ['between two requests', ['--rate', '0.1']],
    ['before it asks again', ['--wait', '3600s']],
  ])('Ctrl-C %s says so and exits with 130', async (_when, args) => {
    legacy.fault = 'wrong count';
    const log = save(
      'interrupted.log',
      [1, 2].map((page) => line(`/api/outfits/?page=${page}`)).join('\n'),
    );
    const sides = ['--legacy', legacy.base, '--against', against];
    const running = run([`${dist}commands/cli.js`, 'replay', log, ...sides, ...args], {});
    await expect.poll(() => legacy.requests.length, { timeout: 20_000 }).toBeGreaterThan(0);
    running.child.kill('SIGINT');
    expect(await running.ended).toBe(130);
    expect(running.errors()).toBe('Interrupted.\n');
  });

  test('errors of the old service are a status', async () => {
    legacy.fault = 'errors';
    const found = await replay(['-', ...accept], line('/api/outfits/?page=1'));
    expect(found.report?.differences).toMatchObject([{ kind: 'status', times: 1 }]);
  });

  test('sends headers to the side they are for only', async () => {
    const headers = ['--header', 'x-shop: 7', '--against-header', 'x-ours: 8'];
    await replay(['-', ...accept, ...headers], line('/api/outfits/?page=1'));
    expect(legacy.requests[0]?.headers).toMatchObject({
      'x-shop': '7',
      accept: 'application/json',
    });
    expect(legacy.requests[0]?.headers).not.toHaveProperty('x-ours');
  });

  test.each([
    [['-'], '', 'No GET request of the 0 lines has a path that begins with /api/.'],
    [['-', '--prefix', '/v2/'], line('/api/outfits/'), 'begins with /v2/.'],
    [['/nowhere.log'], '', '/nowhere.log cannot be read'],
    [
      ['-', '--accept', 'counts'],
      '',
      '--accept is "counts", but it may be one of status, header, count,',
    ],
    [
      ['-', '--concurrency', '0'],
      '',
      '--concurrency is "0", but it may be a whole number from 1 to 64.',
    ],
    [['-', '--against-header', 'x'], '', '--header is not of the form'],
  ])('%j ends in a sentence', async (args, input, sentence) => {
    const found = await replay(args, input);
    expect(found).toMatchObject({ code: 2, stdout: '' });
    expect(found.stderr).toContain(sentence);
    expect(found.stderr.trim().split('\n')).toHaveLength(1);
  });
});

test('needs both services', async () => {
  const found = await callCommand(replayCommand, ['-', '--legacy', 'http://127.0.0.1:1']);
  expect(found).toMatchObject({
    code: 2,
    stderr: "Required option '--against <URL>' not specified: see --help.\n",
  });
  const wrong = await callCommand(replayCommand, ['-', '--legacy', 'http://127.0.0.1:1/api/']);
  expect(wrong.stderr).toContain('without path');
});
