// `npm run verify` against a live old service: what it finds, what it does not take for a difference, and
// sources that fail, leave things open, change while they are read, or are no source at all.
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import * as importCommand from '../../src/commands/import.ts';
import * as verifyCommand from '../../src/commands/verify.ts';
import { callCommand } from '../support/cli/commands.ts';
import type { TestDatabase } from '../support/databases/test-database.ts';
import { makeMigratedDatabase } from '../support/gateway.ts';
import { amount, laneKinds } from '../support/lane.ts';
import {
  type Fault,
  type LegacyRecord,
  type LegacyService,
  makeLegacyRecord,
  makeLegacyRecords,
  startLegacyService,
} from '../support/legacy/legacy-service.ts';
import { openBefore } from '../support/legacy/two-services.ts';

// A retry of half a minute is too long for a test.
vi.mock('node:timers/promises', async (original) => {
  const real = await original<typeof import('node:timers/promises')>();
  const brief: typeof real.setTimeout = (milliseconds = 0, ...others) =>
    real.setTimeout(Math.min(milliseconds, 1), ...others);
  return { ...real, setTimeout: brief };
});

const folder = mkdtempSync(join(tmpdir(), 'outfit-verify-test-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Group {
  readonly kind: string;
  readonly where?: string;
  readonly times: number;
  readonly examples: readonly { readonly sentence: string }[];
}
interface Written {
  readonly same: boolean;
  readonly broken?: string;
  readonly differences: readonly Group[];
  readonly accepted: readonly Group[];
}

const decided = ['previous-page-1', 'unknown-ordering', 'several-orderings', 'fraction'];
const accept = (...kinds: string[]) => kinds.flatMap((kind) => ['--accept', kind]);
const kindsOf = (groups: readonly Group[] = []) =>
  [...new Set(groups.map((group) => group.kind))].sort();

let testDatabase: TestDatabase;

async function fill(records = makeLegacyRecords(65)): Promise<void> {
  const legacy = await startLegacyService(records);
  expect((await callCommand(importCommand, [legacy.url], testDatabase.environment)).code).toBe(0);
  await legacy.close();
}

async function serve(records = makeLegacyRecords(65), pageSize = 20): Promise<LegacyService> {
  const legacy = await startLegacyService(records, { pageSize });
  onTestFinished(() => legacy.close());
  return legacy;
}

async function verifyAll(url: string, ...args: string[]) {
  const json = join(folder, 'report.json');
  const all = [url, '--wait', '0', '--json', json, ...args];
  const result = await callCommand(verifyCommand, all, {
    ...testDatabase.environment,
    MEDIA_URL: 'https://media.example.com',
    VIDEO_URL: 'https://video.example.com',
  });
  const report = existsSync(json) ? (JSON.parse(readFileSync(json, 'utf8')) as Written) : null;
  rmSync(json, { force: true });
  const named = report?.differences.map((group) => `${group.kind} ${group.where}`);
  return { ...result, report, named };
}
/** The same, with all accepted that was decided. */
const verify = (url: string, ...args: string[]) => verifyAll(url, ...accept(...decided), ...args);
const size = accept('record-number:page size');

/** Calls a function before each answer. */
function before(legacy: LegacyService, act: (target: string) => void): void {
  let current = legacy.fault;
  let acted = 0;
  Object.defineProperty(legacy, 'fault', {
    get() {
      const { length } = legacy.requests;
      if (length > acted) act(legacy.requests.at(-1)?.target ?? '');
      acted = length;
      return current;
    },
    set(value: typeof current) {
      current = value;
    },
  });
}

describe.each(laneKinds)('on %s', (kind) => {
  beforeAll(async () => {
    testDatabase = await makeMigratedDatabase(kind);
    await fill();
  });
  afterAll(() => testDatabase.remove());

  test('a listing without a fault differs in what was decided, and in nothing else', async () => {
    const legacy = await serve();
    const plain = await verifyAll(legacy.url);
    expect(plain.code).toBe(1);
    expect(kindsOf(plain.report?.differences)).toEqual([...decided].sort());
    const forgiven = await verify(legacy.url);
    expect(forgiven).toMatchObject({ code: 0, report: { same: true, differences: [] } });
    expect(forgiven.stderr).not.toContain('trying again');
    expect(kindsOf(forgiven.report?.accepted)).toEqual([...decided].sort());
    expect(forgiven.stdout).toMatch(
      /^Accepted: .*\n65 records in 9 orders, \d+ answers compared: nothing differs but what was accepted.\n$/,
    );
    expect(new Set(legacy.requests.map(({ method }) => method))).toEqual(
      new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']),
    );
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe('verify', () => {
  beforeAll(async () => {
    testDatabase = await makeMigratedDatabase('PostgreSQL');
    await fill();
  });
  afterAll(() => testDatabase.remove());

  const faultKinds: [Fault, string[]][] = [
    ['wrong count', ['count']],
    ['lost record', ['count', 'record-number']],
    ['additional record', ['count', 'record-number']],
    ['reordered keys', ['key-order']],
    ['another order of records', ['record-order']],
    ['another link', ['next', 'previous']],
    ['relative links', ['next', 'previous']],
    ['extra field', ['missing-field']],
    ['missing field', ['extra-field']],
    ['another value', ['value']],
    ['escapes', ['bytes-only']],
    ['another error body', ['error-body']],
    ['another error status', ['status']],
    ['missing header', ['header']],
    ['another content type', ['header']],
    ['redirect', ['status']],
    ['gzip', ['header']],
    ['no JSON', ['header', 'not-json']],
  ];
  test.each(faultKinds.slice(0, amount(6, faultKinds.length)))(
    'the fault "%s" is reported as %j',
    async (fault, expected) => {
      const legacy = await serve();
      legacy.fault = fault;
      const found = await verify(legacy.url);
      expect({ code: found.code, kinds: kindsOf(found.report?.differences) }).toEqual({
        code: 1,
        kinds: expected,
      });
      expect(await verify(legacy.url, ...accept(...expected))).toMatchObject({
        code: 0,
        named: [],
      });
    },
  );

  test('a record that one side lacks is named once for all orders, however many pages it moves', async () => {
    const legacy = await serve();
    legacy.fault = 'lost record';
    const lost = await verify(legacy.url);
    expect(lost.report?.differences.find((group) => group.kind === 'record-number')).toMatchObject({
      times: 1,
      examples: [{ sentence: 'Outfit 7 is not in the source.' }],
    });
  });

  test('the report names every record that only one side has', async () => {
    const more = [makeLegacyRecord(1_001), makeLegacyRecord(1_002)];
    const legacy = await serve([
      ...makeLegacyRecords(65).filter(({ id }) => id % 2 === 0),
      ...more,
    ]);
    const found = await verify(legacy.url);
    const group = found.report?.differences.find((one) => one.kind === 'record-number');
    const ids = group?.examples.map(({ sentence }) => Number(/\d+/.exec(sentence)?.[0]));
    const odd = makeLegacyRecords(65).flatMap(({ id }) => (id % 2 ? [id] : []));
    expect(ids?.sort((a, b) => a - b)).toEqual([...odd, 1_001, 1_002]);
  });

  test('what differs for a moment only does not differ', async () => {
    const legacy = await serve();
    const [changed] = legacy.records as [LegacyRecord];
    // A like that has come to the one side only when a page is asked for the first time.
    const isFirst = () => {
      const { target } = legacy.requests.at(-1) ?? {};
      return legacy.requests.filter((request) => request.target === target).length === 1;
    };
    legacy.records[0] = Object.defineProperty({ ...changed }, 'likes', {
      enumerable: true,
      get: () => changed.likes + (isFirst() ? 1 : 0),
    });
    expect(await verify(legacy.url)).toMatchObject({ code: 0, named: [] });
  });

  test('a record that changes its place while it is read is not lost', async () => {
    const legacy = await serve();
    before(legacy, (target) => {
      const record = legacy.records[5];
      if (record && /ordering=-modified&page=2$/.test(target)) {
        record.modified = '2030-01-01T00:00:00.123456Z';
      }
    });
    const found = await verify(legacy.url);
    expect(found.named).toContain('value results.modified');
    expect(found.named?.filter((name) => !name.startsWith('value'))).toEqual([]);
  });

  test('pages of another size are said once, and compared with the size of the source', async () => {
    const legacy = await serve(makeLegacyRecords(65), 7);
    const found = await verify(legacy.url);
    expect(found.report?.differences).toMatchObject([
      { kind: 'record-number', where: 'page size', times: 1 },
    ]);
    expect(found.stdout).toContain('A page has 7 records in the source, 20 here: set PAGE_SIZE=7.');
    expect(await verify(legacy.url, ...size)).toMatchObject({ code: 0 });
  });

  test('no size is advised where pages do not add up: the source leaves out what others may not see', async () => {
    const legacy = await serve();
    // Hidden from pages that were cut before.
    legacy.hidden.add(1).add(7).add(30).add(64);
    const found = await verify(legacy.url);
    expect(found.stdout).toContain(
      'A page has 19 records in the source, 20 here: its pages do not add up to its count of 65, as if',
    );
    expect(found.stdout).not.toContain('PAGE_SIZE');
    expect(found.named).toContain('record-number page size');
  });

  test('preflights are sent for each method that the source allows', async () => {
    const legacy = await serve();
    legacy.cors = { origin: 'https://app.test', methods: 'GET' };
    const { stdout } = await verify(legacy.url, '--cors-origins=https://app.test,*');
    expect(stdout).not.toContain('by --origin.');
    const asked = legacy.requests.map(({ headers }) => [
      headers.origin,
      headers['access-control-request-method'],
    ]);
    for (const origin of ['https://app.test', 'https://origin.invalid']) {
      for (const method of ['GET', 'POST']) expect(asked).toContainEqual([origin, method]);
    }
  });

  test('LEGACY_HOST is sent where the source is LEGACY_URL, and its links may have that name', async () => {
    const legacy = await serve();
    const settings = (url: string) => [`--legacy-url=${url}`, '--legacy-host=old.example.com'];
    expect(await verify(legacy.url, ...settings(legacy.base))).toMatchObject({ code: 0 });
    expect(new Set(legacy.requests.map(({ headers }) => headers.host))).toEqual(
      new Set(['old.example.com']),
    );
    legacy.requests.length = 0;
    await verify(legacy.url, ...settings('http://other.example.com'));
    const headers = ['Host: named.example.com', 'X-Forwarded-Proto: https'];
    const named = await verify(
      ...[legacy.url, ...settings(legacy.base)],
      ...headers.flatMap((header) => ['--header', header]),
    );
    expect(named).toMatchObject({ code: 0 });
    expect(new Set(legacy.requests.map(({ headers }) => headers.host))).toEqual(
      new Set([new URL(legacy.base).host, 'named.example.com']),
    );
  });

  test('--sample compares some pages of each order', async () => {
    const legacy = await serve(makeLegacyRecords(65), 5);
    const sample = [...size, '--sample', '3'];
    expect(await verify(legacy.url, ...sample)).toMatchObject({ code: 0 });
    const asked = new Set(
      legacy.requests.map(({ target }) => /\?ordering=id&page=(\d+)$/.exec(target)?.[1]),
    );
    expect(asked).toEqual(new Set([undefined, '7', '13']));
    legacy.fault = 'another value';
    legacy.records.splice(0, 6);
    expect(await verify(legacy.url, ...sample)).toMatchObject({ code: 1 });
  });

  test('an ordering that the source passes over is one difference', async () => {
    const legacy = await serve();
    legacy.unknown.add('like_count');
    const found = await verify(legacy.url);
    expect(found).toMatchObject({
      code: 1,
      named: ['ignored-ordering ordering=like_count', 'ignored-ordering ordering=-like_count'],
    });
    expect(found.stdout).toContain(
      'The source passes over ordering=like_count, and here it sorts.',
    );
    expect(await verify(legacy.url, ...accept('ignored-ordering'))).toMatchObject({ code: 0 });
  });

  test('what is accepted in one place is, among however many', async () => {
    const extra = (id: number) =>
      Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`f_${id}_${index}`, 1]));
    const records = makeLegacyRecords(65).map((record) => ({ ...record, ...extra(record.id) }));
    const legacy = await serve(records);
    const places = accept('missing-field:results.f_1_19', 'missing-field:results.f_65_0');
    const found = await verify(legacy.url, ...places);
    const accepted = found.report?.accepted.map(({ where }) => where);
    expect(accepted).toEqual(expect.arrayContaining(['results.f_1_19', 'results.f_65_0']));
    expect(found.named).toContain('missing-field others');
  });

  describe('a source that fails', () => {
    test.each(['closing early', 'cut short', 'errors'] as const)(
      '(%s) for a moment is asked again',
      async (fault) => {
        const legacy = await serve();
        Object.defineProperty(legacy, 'fault', {
          get: () => (legacy.requests.length === 10 ? fault : undefined),
        });
        const found = await verify(legacy.url);
        expect(found.code).toBe(0);
        expect(found.stderr).toMatch(/trying again in/);
      },
    );

    test('by being slow is waited for, and one that hangs is asked again', async () => {
      const legacy = await serve();
      Object.defineProperty(legacy, 'fault', {
        get: () => ({ 5: 'hanging', 9: 'slow' })[legacy.requests.length],
      });
      const found = await verify(legacy.url, '--timeout', '3s');
      expect(found.code).toBe(0);
      expect(found.stderr).toContain('no whole answer in 3 s');
    });

    test('for one question differs in that, and is compared to the end', async () => {
      const legacy = await serve();
      Object.defineProperty(legacy, 'fault', {
        get: () =>
          /nope|no-such/.test(legacy.requests.at(-1)?.target ?? '') ? 'errors' : undefined,
      });
      const found = await verify(legacy.url);
      expect(found).toMatchObject({ code: 1, named: ['status undefined'] });
      expect(found.stdout).toContain('65 records in 9 orders');
    });

    test.each([
      ['errors', 'status'],
      ['closing early', 'unreachable'],
      ['hanging', 'unreachable'],
    ] as const)('for good (%s) ends it, with a report of what was found', async (fault, named) => {
      const legacy = await serve();
      before(legacy, (target) => {
        if (/ordering=-like_count&page=3/.test(target)) legacy.fault = fault;
      });
      legacy.records[4] = { ...legacy.records[4], title: 'spoilt' } as LegacyRecord;
      const found = await verify(legacy.url, '--timeout', '300ms');
      expect(found.code).toBe(2);
      expect(found.stderr).toContain('Not everything could be compared: http');
      expect(found.report).toMatchObject({
        same: false,
        broken: expect.stringContaining('7 times'),
      });
      expect(found.named).toContain(`${named} undefined`);
      expect(found.named).toContain('value results.title');
    });
  });

  describe('a source that leaves the order of equal values open', () => {
    // Two values on four pages: their records are apart by more than a page.
    const records = () =>
      makeLegacyRecords(65).map((record) => ({ ...record, likes: record.id % 2 }));
    beforeAll(() => fill(records()));
    afterAll(() => fill());

    test.each([
      ['has all records, whatever its pages repeat and leave out', []],
      ['is told so for a sample too', ['--sample', '2']],
    ])('%s', async (_name, args) => {
      const legacy = await serve(records());
      legacy.tieBreak = false;
      if (args.length > 0) legacy.records.reverse();
      else before(legacy, () => legacy.records.reverse());
      const found = await verify(legacy.url, ...args, ...accept('tie-order'));
      expect(found).toMatchObject({ code: 0, named: [] });
      expect(found.stdout).toContain('In the order like_count, records with the same value come');
    });
  });

  describe('ends in a sentence', () => {
    test.each([
      [
        ['--accept', 'nope'],
        /^--accept is "nope", but it may be one of status, .*unreachable\.\n$/,
      ],
      [['--sample', '0'], /^--sample is "0"/],
      [['--json', '/nowhere/report.json'], /^--json cannot be written/m],
      [['--against', 'http://x/?user=5'], /^--against is .* without a query\.\n$/],
    ])('with %j', async (args, sentence) => {
      const found = await verify((await serve()).url, ...args);
      expect(found.code).toBe(2);
      expect(found.stderr).toMatch(sentence);
    });

    test('with an address that has a query', async () => {
      const found = await verify(`${(await serve()).url}?user=5`);
      expect(found).toMatchObject({ code: 2, stdout: '' });
      expect(found.stderr).toMatch(/^http:\S+\?user=5 must be a listing without a query.*\n$/);
    });

    test('with --against that answers pages for people', async () => {
      const server = createServer((_request, response) => response.end('<html></html>'));
      await once(server.listen(0, '127.0.0.1'), 'listening');
      onTestFinished(() => void server.close());
      const page = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
      const found = await verify((await serve()).url, '--against', page);
      expect(found).toMatchObject({ code: 2, stdout: '', report: null });
      expect(found.stderr).toMatch(/^http:\S+ answers, but with no page of a listing\.\n$/);
    });

    test('with --against that passes requests on to the source', async () => {
      const legacy = await serve();
      const gateway = await openBefore('PostgreSQL', legacy.base, { LEGACY_MODE: 'shadow' });
      onTestFinished(() => gateway.close());
      const found = await verify(legacy.url, '--against', `${gateway.base}/api/outfits/`);
      expect(found).toMatchObject({ code: 2, stdout: '', report: null });
      expect(found.stderr).toMatch(/^http\S+ passes requests on to the old service, .*LEGACY_MODE/);
    });
  });
});
