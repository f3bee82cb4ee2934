// `npm run verify` against a live old service: what it finds, what it does not take for a difference, and
// sources that fail, leave things open, change while they are read, or are no source at all.
import { linkSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import timers from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import * as importCommand from '../../src/commands/import.ts';
import * as verifyCommand from '../../src/commands/verify.ts';
import { callCommand } from '../support/cli/commands.ts';
import { makeFolder } from '../support/cli/folder.ts';
import type { TestDatabase } from '../support/databases/test-database.ts';
import { makeMigratedDatabase } from '../support/gateway.ts';
import { listen } from '../support/http/listen.ts';
import { describeInSoak, describeOnce } from '../support/lane.ts';
import {
  type Fault,
  type LegacyRecord,
  type LegacyService,
  makeRecord,
  makeRecords,
  startLegacyService,
} from '../support/legacy/legacy-service.ts';
import { accept, compare, decided, kindsOf } from '../support/legacy/reports.ts';

/** The first page, as it is usually. */
const page = ({ records, url }: LegacyService) => ({
  count: records.length,
  next: `${url}?page=2`,
  previous: null,
  results: records.toSorted((a, b) => (a.created < b.created ? 1 : -1)).slice(0, 20),
});

// A retry of half a minute is too long for a test. Not by vi.mock: other files of this process may have loaded what
// sleeps before.
beforeAll(() => {
  const { setTimeout: sleep } = timers;
  vi.spyOn(timers, 'setTimeout').mockImplementation((milliseconds = 0, ...others) =>
    sleep(Math.min(milliseconds, 1), ...others),
  );
  syncBuiltinESMExports();
  return () => {
    vi.restoreAllMocks();
    syncBuiltinESMExports();
  };
});

let testDatabase: TestDatabase;

async function fill(records = makeRecords(65)): Promise<void> {
  const legacy = await startLegacyService(records);
  expect((await callCommand(importCommand, [legacy.url], testDatabase.environment)).code).toBe(0);
  await legacy.close();
}

async function serve(records = makeRecords(65), pageSize = 20): Promise<LegacyService> {
  const legacy = await startLegacyService(records, { pageSize });
  onTestFinished(() => legacy.close());
  return legacy;
}

const verifyAll = (args: readonly string[], settings: Record<string, string> = {}) =>
  compare(verifyCommand, args, {
    ...testDatabase.environment,
    MEDIA_URL: 'https://media.example.com',
    VIDEO_URL: 'https://video.example.com',
    ...settings,
  });
/** The same, with all accepted that was decided. */
const verify = (...args: string[]) => verifyAll([...args, ...accept(...decided)]);

/** Calls a function before each answer: it may give the fault of this one. */
function beforeEachAnswer(
  legacy: LegacyService,
  act: (target: string, number: number) => Fault | undefined,
): void {
  let [acted, fault]: [number, Fault | undefined] = [0, undefined];
  const get = () => {
    const { length } = legacy.requests;
    if (length > acted) fault = act(legacy.requests.at(-1)?.target ?? '', length);
    acted = length;
    return fault;
  };
  Object.defineProperty(legacy, 'fault', { get });
}

/** The database of the tests of a group, with what a listing without a fault has. */
function useFilled(): void {
  beforeAll(async () => {
    testDatabase = await makeMigratedDatabase('PostgreSQL');
    await fill();
  });
  afterAll(() => testDatabase.remove());
}

describeOnce('verify', () => {
  useFilled();

  /** Single records, as the listing has them. */
  const serveRecord = (
    { records }: LegacyService,
    path: string,
    change: (record: LegacyRecord) => object,
    unknown: string,
  ): [number, Record<string, string>, object] | undefined => {
    const [, id] = /^\/api\/outfits\/(\d+)\/$/.exec(path) ?? [];
    if (id === undefined) return undefined;
    const found = records.find((record) => record.id === Number(id));
    const read = { Allow: 'GET, HEAD, OPTIONS' };
    return found ? [200, read, change(found)] : [404, read, { detail: unknown }];
  };

  test('a listing without a fault differs in what was decided, and in nothing else', async () => {
    const legacy = await serve();
    legacy.intercept = ({ url }) => serveRecord(legacy, url.pathname, (same) => same, 'Not found.');
    const plain = await verifyAll([legacy.url, '--sample', '1']);
    expect([plain.code, kindsOf(plain.report?.differences)]).toEqual([1, decided]);
    // Limits that the operator sets for others do not count.
    const limits = { RATE_LIMIT: '1/day', PRIVATE_OUTFITS: 'owner' };
    const forgiven = await verifyAll([legacy.url, ...accept(...decided)], limits);
    expect(forgiven).toMatchObject({ code: 0, stderr: '', named: [], report: { same: true } });
    expect(kindsOf(forgiven.report?.accepted)).toEqual(decided);
    expect(forgiven.stdout).toMatch(
      /^Accepted: .*\n65 records in 9 orders, \d+ answers compared: nothing differs but what was accepted.\n$/,
    );
    const methods = new Set(legacy.requests.map(({ method }) => method));
    expect([...methods].sort()).toEqual(['GET', 'HEAD', 'OPTIONS', 'TRACE']);
  });

  test('reports other single records and unknown ones, errors for a wrong credential or in another language, and no 304', async () => {
    const legacy = await serve();
    legacy.intercept = ({ url, method, headers }) => {
      if (headers.authorization?.startsWith('Bearer')) return [403, {}, { detail: 'No.' }];
      if (url.search === '?page=0' && headers['accept-language']?.startsWith('de')) {
        return [404, {}, { detail: 'Ungültige Seite.' }];
      }
      if (url.search === '' && url.pathname === '/api/outfits/' && method === 'GET') {
        return [200, { ETag: '"a"' }, page(legacy)];
      }
      const change = (one: LegacyRecord) => ({ ...one, likes: one.likes + 1 });
      return serveRecord(legacy, url.pathname, change, 'No Outfit matches.');
    };
    const { code, report } = await verify(legacy.url);
    expect(code).toBe(1);
    const sentences = report?.differences.flatMap(({ kind, where, examples }) =>
      examples.map(({ sentence }) => `${kind} ${where}: ${sentence}`),
    );
    for (const sentence of [
      /^value likes: likes is 10 in the source, 9 here/,
      /^body error: detail is "No Outfit matches\."/,
      /^status undefined: The status is 403 in the source, /,
      /^status undefined: The status is 200 in the source, 304 here\./,
      /^body error in another language: detail is "Ungültige/,
    ]) {
      expect(sentences).toContainEqual(expect.stringMatching(sentence));
    }
    expect(report?.differences).toHaveLength(4);
  });

  test('asks for the parameters and paths of REST_DOCUMENTS with values of the first page', async () => {
    const legacy = await serve();
    const file = join(makeFolder(onTestFinished), 'rest.graphql');
    writeFileSync(
      file,
      `
      query ListOutfits($ordering: OutfitOrdering, $page: Int, $last: Boolean, $user: [Int!], $search: String, $page_size: Int) @route(path: "/api/outfits/") {
        page: outfits(ordering: $ordering, page: $page, last: $last, pageSize: $page_size, filter: { userDatabaseIds: $user, search: $search }) {
          count next: nextPage previous: previousPage results { ...OutfitRecord }
        }
      }
      query ReadUser($id: Int!) @route(path: "/api/users/:id/") { record: user(databaseId: $id) { id: databaseId } }`,
    );
    await verifyAll([legacy.url, '--sample', '1'], { REST_DOCUMENTS: file });
    const [first] = legacy.records.toSorted((a, b) => (a.created < b.created ? 1 : -1));
    const targets = legacy.requests.map(({ target }) => target);
    const word = /\p{L}{3,}/u.exec(first?.title ?? '')?.[0];
    for (const query of [
      `user=${first?.user.id}`,
      `search=${encodeURIComponent(`${word}`)}`,
      'page_size=2',
    ]) {
      expect(targets).toContain(`/api/outfits/?${query}`);
    }
    expect(targets).toContain(`/api/users/${first?.user.id}/`);
    // The source does not have this path.
    expect(targets).not.toContain('/api/users/2147483647/');
  });

  test('several faults of a source are each reported in their place, and nothing else', async () => {
    const legacy = await serve();
    legacy.unknown.add('like_count');
    const results = legacy.records.toSorted((a, b) => a.id - b.id).slice(0, 20);
    const next = `${legacy.url}?ordering=id&page=2`;
    legacy.intercept = ({ method, url: { search } }, { socket }) => {
      // A proxy that ends the connection says nothing about the service.
      if (method === 'TRACE') return !!socket?.destroy();
      if (method === 'HEAD' && search === '') return [200, {}, {}];
      if (search === '?ordering=id')
        return [200, {}, { count: '65', next, previous: null, results }];
      if (search === '?ordering=-id') return [400, {}, { ordering: ['No.'] }];
      // Asked again, and compared to the end all the same.
      if (search === '?ordering=no-such-ordering') return [500, {}, {}];
      return search === '?ordering=modified&page=2' ? [200, {}, 'no page'] : undefined;
    };
    const { code, named, report, stdout } = await verify(legacy.url);
    expect(stdout).toContain('65 records in 9 orders');
    expect([code, named?.toSorted()]).toEqual([
      1,
      [
        'header content-length',
        'records ordering=-like_count',
        'records ordering=like_count',
        'status',
        'value',
        'value count',
      ],
    ]);
    const statuses = report?.differences.find(({ kind }) => kind === 'status')?.examples;
    expect(statuses?.map(({ sentence }) => /\d+/.exec(sentence)?.[0])).toEqual(['500', '400']);
    const ignored = report?.differences.find(({ where }) => where === 'ordering=like_count');
    expect(ignored?.examples[0]?.sentence).toMatch(
      /^Order \(like_count\): outfit \d+ comes before outfit \d+, but the listing here is sorted\.$/,
    );
    const targets = legacy.requests.map(({ target }) => target);
    expect(targets).toContain('/api/outfits/?ordering=id&page=4');
  });

  test('the report names every record that only one side has, once for all orders', async () => {
    const [even, odd] = [0, 1].map((rest) =>
      makeRecords(65).filter(({ id }) => id % 2 === rest),
    ) as [LegacyRecord[], LegacyRecord[]];
    const legacy = await serve([...even, makeRecord(1_001), makeRecord(1_002)]);
    const found = await verify(legacy.url);
    const groups = found.report?.differences ?? [];
    const oneSided = groups.filter(({ where = '' }) => /^(?:missing|additional)$/.test(where));
    const ids = oneSided
      .flatMap(({ examples }) => examples)
      .map(({ sentence }) => Number(/\d+/.exec(sentence)?.[0]));
    const expected = [...odd.map(({ id }) => id), 1_001, 1_002];
    expect(ids.toSorted((a, b) => a - b)).toEqual(expected);
    expect(oneSided.map(({ times }) => times)).toEqual([odd.length, 2]);
  });

  test('what differs is printed record by record, field by field, in at most twenty lines', async () => {
    const legacy = await serve();
    const [first] = legacy.records.splice(0, 2);
    legacy.records.push({ ...first, title: 'Other', extra: 1 } as LegacyRecord, makeRecord(99));
    const { code, stdout } = await verify(legacy.url);
    expect(code).toBe(1);
    for (const sentence of [
      'Outfit 1: title is "Other" in the source, "さくら 🌸" here.',
      'Outfit 1: extra is 1 in the source, missing here.',
      'Outfit 99 is missing here.',
      'Outfit 2 is not in the source.',
    ]) {
      expect(stdout).toContain(`\n  ${sentence}`);
    }
    expect(stdout.split('\n').length).toBeLessThan(22);
    legacy.fault = 'another order of records';
    for (const record of legacy.records) Object.assign(record, { quality: 9, description: '' });
    const many = await verify(legacy.url);
    expect(many.stdout.split('\n').length).toBeLessThan(22);
    expect(many.stdout).toContain('value (results.quality): ');
    const order = many.report?.differences.find(({ where }) => where === 'order');
    expect(order?.examples[0]?.sentence).toMatch(
      /^Order \(default\): outfit \d+ comes before outfit \d+, but the listing here is sorted\.$/,
    );
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
    beforeEachAnswer(legacy, (target) => {
      const changed = { modified: '2030-01-01T00:00:00.123456Z' };
      if (/ordering=-modified&page=2$/.test(target))
        Object.assign(legacy.records[5] ?? {}, changed);
      return undefined;
    });
    const found = await verify(legacy.url);
    expect(found.named).toContain('value results.modified');
    expect(found.named?.filter((name) => !name.startsWith('value'))).toEqual([]);
  });

  test('a page is asked for once more for each pair of pages whose records moved, not for each record', async () => {
    const legacy = await serve(makeRecords(55));
    for (const record of legacy.records) record.title = 'Other';
    expect(await verify(legacy.url)).toMatchObject({ code: 1 });
    const asked = legacy.requests.filter(({ target }) => /=-created&page=2$/.test(target));
    // In the walk, and by two rechecks of its page and of those before and behind.
    expect(asked.length).toBeLessThanOrEqual(7);
  });

  test('a record that only the source has is named, although a page of the default order is not answered', async () => {
    const legacy = await serve([...makeRecords(65), makeRecord(1_001)]);
    const missing = [404, {}, { detail: 'Invalid page.' }] as const;
    legacy.intercept = ({ url }) => (url.search === '?page=3' ? missing : undefined);
    const { report } = await verify(legacy.url);
    const named = report?.differences.filter(({ where }) => where === 'missing');
    expect(named).toMatchObject([
      { times: 1, examples: [{ sentence: 'Outfit 1001 is missing here.' }] },
    ]);
  });

  test('the values of a record are compared, although it is on another page in every order', async () => {
    const before = makeRecords(20).map(({ id }) => makeRecord(-id, { likes: -1 }));
    const after = makeRecords(20).map(({ id }) => makeRecord(1_000 + id, { likes: 100 }));
    const legacy = await serve([...before, ...makeRecords(65), ...after]);
    Object.assign(legacy.records[50] ?? {}, { title: 'Other' });
    expect((await verify(legacy.url)).named).toContain('value results.title');
  });

  test('what differed is reported, although the source fails when it is asked again', async () => {
    const legacy = await serve();
    Object.assign(legacy.records[9] ?? {}, { title: 'Other' });
    const hasAsked = (query: string) =>
      legacy.requests.some(({ target }) => target === `/api/outfits/${query}`);
    beforeEachAnswer(legacy, (target) =>
      hasAsked('?page=4') && target.endsWith('/?page=3') ? 'errors' : undefined,
    );
    const found = await verify(legacy.url);
    expect(found).toMatchObject({ code: 2, report: { same: false } });
    expect(found.named).toEqual(expect.arrayContaining(['status', 'value results.title']));
  });

  test('another page size is one difference, with what to set or to send', async () => {
    const legacy = await serve(makeRecords(65), 7);
    const found = await verify(legacy.url);
    const named = found.report?.differences.filter(({ where }) => where === 'page size');
    expect(named).toMatchObject([{ kind: 'records', times: 1 }]);
    expect(found.stdout).toContain('A page has 7 records in the source, 20 here: set PAGE_SIZE=7;');
    expect(found.named).not.toContain('value results.title');
    // Pages from which the source has removed what others may not see.
    legacy.hidden.add(1).add(7).add(64);
    const hidden = await verify(legacy.url, '--page-size=7');
    expect(hidden.stdout).toContain('give the --header of a user who sees all.');
    expect(hidden.stdout).toContain('Outfit 7 is not in the source.');
  });

  test('preflights are sent for each method that the source allows, and a missing --origin is named', async () => {
    const legacy = await serve();
    legacy.cors = { origin: 'https://app.test', methods: 'GET' };
    const unnamed = await verify(legacy.url, '--sample=1');
    expect(unnamed.stdout).toContain('name those of your web apps by --origin.');
    const found = await verify(legacy.url, '--sample=1', '--cors-origins=https://app.test,*');
    expect(found.stdout).not.toContain('by --origin.');
    expect(found.named).toContain('header access-control-allow-methods');
    const asked = legacy.requests.map(
      ({ headers }) => `${headers['access-control-request-method']} from ${headers.origin}`,
    );
    for (const origin of ['https://app.test', 'https://origin.invalid']) {
      for (const method of ['GET', 'POST']) expect(asked).toContain(`${method} from ${origin}`);
    }
  });

  test('LEGACY_HOST is sent where the source is LEGACY_URL, and its links may have that name', async () => {
    const legacy = await serve();
    const verifyAs = async (url: string, ...headers: string[]) => {
      legacy.requests.length = 0;
      const settings = ['--sample=1', `--legacy-url=${url}`, '--legacy-host=old.example.com'];
      const given = headers.flatMap((header) => ['--header', header]);
      expect(await verify(legacy.url, ...settings, ...given)).toMatchObject({ code: 0 });
      return [...new Set(legacy.requests.map(({ headers }) => headers.host))];
    };
    expect(await verifyAs(legacy.base)).toEqual(['old.example.com']);
    expect(await verifyAs('http://other.example.com')).toEqual([new URL(legacy.base).host]);
    const named = await verifyAs(
      ...[legacy.base, 'Host: named.example.com', 'X-Forwarded-Proto: https'],
    );
    expect(named).toEqual(['named.example.com']);
    const protocols = legacy.requests.map(({ headers }) => headers['x-forwarded-proto']);
    expect(new Set(protocols)).toEqual(new Set(['https']));
  });

  test('--sample compares some pages of each order', async () => {
    const legacy = await serve(makeRecords(65), 5);
    const sample = ['--page-size=5', '--sample', '3'];
    expect(await verify(legacy.url, ...sample)).toMatchObject({ code: 0 });
    const asked = new Set(
      legacy.requests.map(({ target }) => /\?ordering=id&page=(\d+)$/.exec(target)?.[1]),
    );
    expect(asked).toEqual(new Set([undefined, '7', '13']));
    legacy.fault = 'another value';
    legacy.records.splice(0, 6);
    expect(await verify(legacy.url, ...sample)).toMatchObject({ code: 1 });
  });

  test('what is accepted in one place is, among however many', async () => {
    const extra = (id: number) =>
      Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`f_${id}_${index}`, 1]));
    const records = makeRecords(65).map((record) => ({ ...record, ...extra(record.id) }));
    const legacy = await serve(records);
    const places = accept('value:results.f_1_19', 'value:results.f_65_0');
    const found = await verify(legacy.url, '--sample', '4', ...places);
    const accepted = found.report?.accepted.map(({ where }) => where);
    expect(accepted).toEqual(expect.arrayContaining(['results.f_1_19', 'results.f_65_0']));
    expect(found.named).toContain('value others');
  });

  test('a page without a list at both services ends it, instead of passing for the end', async () => {
    const page = { count: 65, next: '/?page=nothing', results: makeRecords(20) };
    const server = createServer((request, response) => {
      const content = request.url?.includes('page=nothing') ? 'nothing' : page;
      response.setHeader('Content-Type', 'application/json').end(JSON.stringify(content));
    });
    onTestFinished(() => void server.close());
    const ours = `http://127.0.0.1:${await listen(server)}/api/outfits/`;
    const found = await verify(ours, '--against', ours);
    expect(found.code).toBe(2);
    expect(found.stderr).toContain(
      '/api/outfits/?page=nothing is a page that others link to, and was answered without a list.',
    );
  });

  test('the report of the run before is replaced as a whole', async () => {
    const folder = makeFolder(onTestFinished);
    const [report, kept] = [join(folder, 'report.json'), join(folder, 'kept.json')];
    writeFileSync(report, 'before');
    linkSync(report, kept);
    const { code } = await verify((await serve()).url, '--sample', '1', '--json', report);
    expect(JSON.parse(readFileSync(report, 'utf8'))).toMatchObject({ same: code === 0 });
    expect(readFileSync(kept, 'utf8')).toBe('before');
    expect(readdirSync(folder).toSorted()).toEqual(['kept.json', 'report.json']);
  });

  describe('ends in a sentence', () => {
    test.each([
      [['--sample', '0'], /^--sample is "0"/],
      [['--sample=1', '--json', '/nowhere/report.json'], /^--json cannot be written/m],
      [['--against', 'http://x/?user=5'], /^--against is .* without a query\.\n$/],
    ])('with %j', async (args, sentence) => {
      const stderr = expect.stringMatching(sentence);
      // What was compared is told all the same.
      const stdout = expect.stringMatching(args.includes('--json') ? / compared: /m : /^$/);
      expect(await verify((await serve()).url, ...args)).toMatchObject({ code: 2, stdout, stderr });
    });

    test('with an address that has a query, and with files, which a dry run compares', async () => {
      const { url } = await serve();
      const query = expect.stringMatching(
        /^http:\S+\?user=5 must be a listing without a query.*\n$/,
      );
      expect(await verify(`${url}?user=5`)).toMatchObject({ code: 2, stdout: '', stderr: query });
      expect(await verify('saved/')).toMatchObject({
        code: 2,
        stderr:
          'verify compares a live listing, by its URL. For saved files, type "outfit-gateway import saved/ --dry-run" (in a checkout "npm run import -- saved/ --dry-run").\n',
      });
    });

    test('with --against that answers pages for people', async () => {
      const server = createServer((_request, response) => response.end('<html></html>'));
      onTestFinished(() => void server.close());
      const page = `http://127.0.0.1:${await listen(server)}/`;
      const found = await verify((await serve()).url, '--against', page);
      expect(found.code).toBe(2);
      expect(found.stderr).toMatch(/: http:\S+ answers, but with no page of a listing\.\n$/);
    });
  });
});

describeInSoak('verify of', () => {
  useFilled();

  describe('a source that fails', () => {
    test('a source that fails by being slow is waited for, and one that hangs is asked again', async () => {
      const legacy = await serve();
      const faults: Record<number, Fault> = { 5: 'hanging', 9: 'slow' };
      beforeEachAnswer(legacy, (_target, number) => faults[number]);
      const found = await verify(legacy.url, '--timeout', '3s');
      expect(found.code).toBe(0);
      expect(found.stderr).toContain('no complete answer in 3 s');
    });

    test.each([
      ['errors', 'status'],
      ['hanging', 'status unreachable'],
    ] as const)(
      'a source that fails for good (%s) ends it, with a report of what was found',
      async (fault, named) => {
        const legacy = await serve();
        const isLast = ({ target }: { readonly target: string }) =>
          /ordering=-like_count&page=3/.test(target);
        beforeEachAnswer(legacy, () => (legacy.requests.some(isLast) ? fault : undefined));
        legacy.records[4] = { ...legacy.records[4], title: 'spoilt' } as LegacyRecord;
        const found = await verify(legacy.url, '--timeout', '1s');
        expect(found.code).toBe(2);
        expect(found.stderr).toContain('Not everything could be compared: http');
        expect(found.report).toMatchObject({
          same: false,
          broken: expect.stringContaining('7 times'),
        });
        expect(found.named).toEqual(expect.arrayContaining([named, 'value results.title']));
      },
    );
  });

  describe('a source that leaves the order of equal values open', () => {
    // Two values on four pages: their records are apart by more than a page.
    const records = () => makeRecords(65).map((record) => ({ ...record, likes: record.id % 2 }));
    beforeAll(() => fill(records()));
    afterAll(() => fill());

    test.each([
      ['has all records, whatever its pages repeat and leave out', []],
      ['is told so for a sample too', ['--sample', '2']],
    ])('%s', async (_name, args) => {
      const legacy = await serve(records());
      legacy.tieBreak = false;
      if (args.length > 0) legacy.records.reverse();
      else beforeEachAnswer(legacy, () => void legacy.records.reverse());
      const found = await verify(legacy.url, ...args, ...accept('tie-order'));
      expect(found).toMatchObject({ code: 0, named: [] });
      expect(found.stdout).toContain('In the order like_count, records with the same value come');
    });
  });
});
