// `npm run verify` against a live old service: what it finds, and what it does not take for a difference.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import * as importCommand from '../../src/commands/import.ts';
import * as verifyCommand from '../../src/commands/verify.ts';
import { type CommandRun, callCommand } from '../commands.ts';
import { makeMigratedPlace } from '../gateway.ts';
import {
  type Fault,
  type LegacyRecord,
  type LegacyService,
  makeLegacyRecord,
  makeLegacyRecords,
  startLegacyService,
} from '../legacy-service.ts';
import type { TestPlace } from '../places.ts';

interface Group {
  readonly kind: string;
  readonly where?: string;
  readonly times: number;
  readonly examples: readonly { readonly sentence: string }[];
}
interface Written {
  readonly same: boolean;
  readonly differences: readonly Group[];
  readonly accepted: readonly Group[];
}

const folder = mkdtempSync(join(tmpdir(), 'outfit-verify-test-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const decided = ['previous-page-1', 'unknown-ordering', 'fraction'];
const accept = decided.flatMap((kind) => ['--accept', kind]);

describe('verify', () => {
  let place: TestPlace;
  beforeAll(async () => {
    place = await makeMigratedPlace('PostgreSQL');
    const legacy = await startLegacyService(makeLegacyRecords(65));
    const imported = await callCommand(importCommand, [legacy.url], place.environment);
    await legacy.close();
    expect(imported.code).toBe(0);
  });
  afterAll(() => place.remove());

  async function serve(records: LegacyRecord[] = makeLegacyRecords(65)): Promise<LegacyService> {
    const legacy = await startLegacyService(records);
    onTestFinished(() => legacy.close());
    return legacy;
  }

  const environment = () => ({
    ...place.environment,
    MEDIA_URL: 'https://media.example.com',
    VIDEO_URL: 'https://video.example.com',
  });

  async function verify(url: string, ...args: string[]): Promise<CommandRun & Written> {
    const json = join(folder, 'report.json');
    const all = [url, '--wait', '0', '--json', json, ...args];
    const result = await callCommand(verifyCommand, all, environment());
    const written = existsSync(json) ? readFileSync(json, 'utf8') : '{}';
    rmSync(json, { force: true });
    return { ...result, ...(JSON.parse(written) as Written) };
  }

  const kindsOf = (groups: readonly Group[]) =>
    [...new Set(groups.map((group) => group.kind))].sort();

  test('a listing without a fault differs in what was decided, and in nothing else', async () => {
    const legacy = await serve();
    const plain = await verify(legacy.url);
    expect({ code: plain.code, kinds: kindsOf(plain.differences) }).toEqual({
      code: 1,
      kinds: [...decided].sort(),
    });
    const forgiven = await verify(legacy.url, ...accept);
    expect(forgiven).toMatchObject({ code: 0, same: true, differences: [], stderr: '' });
    expect(kindsOf(forgiven.accepted)).toEqual([...decided].sort());
    expect(forgiven.stdout).toMatch(
      /^Accepted: .*\n65 records in 9 orders, \d+ answers compared: nothing differs but what was accepted.\n$/,
    );
    expect(new Set(legacy.requests.map(({ method }) => method))).toEqual(
      new Set(['GET', 'HEAD', 'OPTIONS']),
    );
    expect(readdirSync(folder)).toEqual([]);
  });

  test.each<[Fault, string[]]>([
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
  ])('the fault "%s" is reported as %j', async (fault, expected) => {
    const legacy = await serve();
    legacy.fault = fault;
    const found = await verify(legacy.url, ...accept);
    expect({
      code: found.code,
      kinds: kindsOf(found.differences),
      out: found.stdout,
    }).toMatchObject({ code: 1, kinds: expected });
    const all = expected.flatMap((name) => ['--accept', name]);
    expect(await verify(legacy.url, ...accept, ...all)).toMatchObject({ code: 0, differences: [] });
  });

  describe('a record that one side lacks', () => {
    test('is named once for all orders, however many pages it moves', async () => {
      const legacy = await serve();
      legacy.fault = 'lost record';
      const lost = await verify(legacy.url, ...accept);
      const [group] = lost.differences.filter(({ kind }) => kind === 'record-number');
      expect(group).toMatchObject({
        times: 1,
        examples: [{ sentence: 'Outfit 7 is not in the source.' }],
      });
    });

    test('is named when there are many of them', async () => {
      const records = makeLegacyRecords(65).filter(({ id }) => id % 3 !== 0 || id > 40);
      const more = [makeLegacyRecord(1_001), makeLegacyRecord(1_002)];
      const legacy = await serve([...records, ...more]);
      const found = await verify(legacy.url, ...accept, '--accept', 'count');
      const [group] = found.differences.filter(({ kind }) => kind === 'record-number');
      expect(group?.times).toBe(13 + 2);
      // Another number of pages shows at the last one and behind it.
      const others = new Set(kindsOf(found.differences));
      for (const name of ['record-number', 'status', 'next', 'previous']) others.delete(name);
      expect([...others]).toEqual([]);
    });
  });

  describe('a listing that changes meanwhile', () => {
    test('does not differ where both are the same again when they are asked again', async () => {
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
      const found = await verify(legacy.url, ...accept);
      expect({ code: found.code, out: found.differences }).toEqual({ code: 0, out: [] });
    });

    test('differs in what stays different', async () => {
      const legacy = await serve();
      legacy.records[4] = makeLegacyRecord(5, { likes: 1_000 });
      const found = await verify(legacy.url, ...accept);
      expect(found.code).toBe(1);
      expect(found.differences.map(({ kind, where }) => `${kind} ${where}`)).toContain(
        'value results.likes',
      );
      expect(kindsOf(found.differences)).toEqual(['value']);
    });
  });

  test('equal values to sort by may come in any order where the source leaves that open', async () => {
    const legacy = await serve();
    // Sorting is stable, so records that share their likes keep this order in both directions.
    legacy.records.reverse();
    legacy.tieBreak = false;
    const found = await verify(legacy.url, ...accept);
    expect(found).toMatchObject({ code: 0 });
    expect(found.stdout).toContain('In the order like_count, records with the same value come');
  });

  test('pages of another size are said once, and compared with the size of the source', async () => {
    const legacy = await startLegacyService(makeLegacyRecords(65), { pageSize: 7 });
    onTestFinished(() => legacy.close());
    const found = await verify(legacy.url, ...accept);
    expect(found.differences).toMatchObject([
      { kind: 'record-number', where: 'page size', times: 1 },
    ]);
    expect(found.stdout).toContain('A page has 7 records in the source, 20 here: set PAGE_SIZE=7.');
    const size = ['--accept', 'record-number:page size'];
    expect(await verify(legacy.url, ...accept, ...size)).toMatchObject({ code: 0 });
  });

  test('--sample compares some pages of each order', async () => {
    const legacy = await startLegacyService(makeLegacyRecords(65), { pageSize: 5 });
    onTestFinished(() => legacy.close());
    const size = ['--accept', 'record-number:page size'];
    expect(await verify(legacy.url, ...accept, ...size, '--sample', '3')).toMatchObject({
      code: 0,
    });
    const asked = new Set(
      legacy.requests.map(({ target }) => /\?ordering=id&page=(\d+)$/.exec(target)?.[1]),
    );
    expect(asked).toEqual(new Set([undefined, '7', '13']));
    legacy.fault = 'another value';
    legacy.records.splice(0, 6);
    expect(await verify(legacy.url, ...accept, ...size, '--sample', '3')).toMatchObject({
      code: 1,
    });
  });

  test.each(['closing early', 'cut short', 'errors'] as const)(
    'a source that is %s for a moment is asked again',
    async (fault) => {
      const legacy = await serve();
      Object.defineProperty(legacy, 'fault', {
        get: () => (legacy.requests.length === 10 ? fault : undefined),
      });
      const found = await verify(legacy.url, ...accept);
      expect(found.code).toBe(0);
      expect(found.stderr).toMatch(/trying again in/);
    },
  );

  test('a slow source is waited for, and one that hangs is asked again', async () => {
    const legacy = await serve();
    Object.defineProperty(legacy, 'fault', {
      get: () => ({ 5: 'hanging', 9: 'slow' })[legacy.requests.length],
    });
    const found = await verify(legacy.url, ...accept, '--timeout', '3');
    expect(found.code).toBe(0);
    expect(found.stderr).toContain('no whole answer in 3 s');
  });

  test.each([
    [['--accept', 'nope'], /^--accept is "nope", but it may be one of status, .*unreachable\.\n$/],
    [['--sample', '0'], /^--sample is "0"/],
    [['--json', '/nowhere/report.json'], /^--json cannot be written/],
  ])('%j ends in a sentence', async (args, sentence) => {
    const legacy = await serve();
    const found = await callCommand(verifyCommand, [legacy.url, ...args], environment());
    expect(found.code).toBe(2);
    expect(found.stderr).toMatch(sentence);
  });
});
