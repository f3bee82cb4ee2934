// `npm run verify` against sources that are not well: they fail, leave things open, change while they
// are read, or are no source at all.
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Command } from '../../src/commands/command.ts';
import * as importCommand from '../../src/commands/import.ts';
import * as verifyCommand from '../../src/commands/verify.ts';
import { callCommand } from '../commands.ts';
import { makeMigratedPlace } from '../gateway.ts';
import { laneKinds } from '../lane.ts';
import {
  type LegacyRecord,
  type LegacyService,
  makeLegacyRecords,
  startLegacyService,
} from '../legacy-service.ts';
import { openBefore } from '../old-side.ts';
import type { TestPlace } from '../places.ts';

// Half a minute of patience is too much for a test.
vi.mock('../../src/import/retry.ts', async (original) => ({
  ...(await original<object>()),
  delayAfter: () => 1,
}));

const folder = mkdtempSync(join(tmpdir(), 'outfit-verify-sources-test-'));
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

const accept = (...kinds: string[]) => kinds.flatMap((kind) => ['--accept', kind]);
const decided = accept('previous-page-1', 'unknown-ordering', 'fraction');

describe.each(laneKinds)('on %s', (kind) => {
  let place: TestPlace;
  beforeAll(async () => {
    place = await makeMigratedPlace(kind);
    const legacy = await startLegacyService(makeLegacyRecords(65));
    expect((await call(importCommand, [legacy.url])).code).toBe(0);
    await legacy.close();
  });
  afterAll(() => place.remove());

  const call = (command: Command, args: readonly string[]) =>
    callCommand(command, args, {
      ...place.environment,
      MEDIA_URL: 'https://media.example.com',
      VIDEO_URL: 'https://video.example.com',
    });

  async function verify(url: string, ...args: string[]) {
    const json = join(folder, 'report.json');
    const all = [url, '--wait', '0', '--json', json, ...decided, ...args];
    const result = await call(verifyCommand, all);
    const report = existsSync(json) ? (JSON.parse(readFileSync(json, 'utf8')) as Written) : null;
    rmSync(json, { force: true });
    const named = report?.differences.map((group) => `${group.kind} ${group.where}`);
    return { ...result, report, named };
  }

  async function serve(records: LegacyRecord[] = makeLegacyRecords(65)): Promise<LegacyService> {
    const legacy = await startLegacyService(records);
    onTestFinished(() => legacy.close());
    return legacy;
  }

  /** Calls a function before each answer. */
  function before(legacy: LegacyService, act: (target: string) => void): void {
    const { fault } = legacy;
    let current = fault;
    let acted = 0;
    Object.defineProperty(legacy, 'fault', {
      get() {
        const { length } = legacy.requests;
        if (length > acted) act(legacy.requests.at(-1)?.target ?? '');
        acted = length;
        return current;
      },
      set(value: typeof fault) {
        current = value;
      },
    });
  }

  describe('a source that fails', () => {
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
      const found = await verify(legacy.url, '--timeout', '0.3');
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
    /** So that pages repeat some records and leave out others. */
    function shuffle(legacy: LegacyService): void {
      legacy.tieBreak = false;
      before(legacy, () => legacy.records.reverse());
    }
    // Two values on four pages: their records are apart by more than a page.
    const likes = (id: number) => id % 2;

    beforeAll(async () => {
      const legacy = await startLegacyService(
        makeLegacyRecords(65).map((record) => ({ ...record, likes: likes(record.id) })),
      );
      expect((await call(importCommand, [legacy.url])).code).toBe(0);
      await legacy.close();
    });
    afterAll(async () => {
      const legacy = await startLegacyService(makeLegacyRecords(65));
      expect((await call(importCommand, [legacy.url])).code).toBe(0);
      await legacy.close();
    });
    const records = () =>
      makeLegacyRecords(65).map((record) => ({ ...record, likes: likes(record.id) }));

    test('has all records, whatever its pages repeat and leave out', async () => {
      const legacy = await serve(records());
      shuffle(legacy);
      const found = await verify(legacy.url, ...accept('tie-order'));
      expect(found).toMatchObject({ code: 0, named: [] });
      expect(found.stdout).toContain('In the order like_count, records with the same value come');
    });

    test('is told so for a sample too', async () => {
      const legacy = await serve(records());
      legacy.records.reverse();
      legacy.tieBreak = false;
      const found = await verify(legacy.url, '--sample', '2', ...accept('tie-order'));
      expect(found.code).toBe(0);
      expect(found.stdout).toContain('In the order like_count, records with the same value come');
    });
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

  test('the report names every record that only one side has', async () => {
    const legacy = await serve(makeLegacyRecords(65).filter(({ id }) => id % 2 === 0));
    const found = await verify(legacy.url);
    const group = found.report?.differences.find((one) => one.kind === 'record-number');
    const ids = group?.examples.map(({ sentence }) => Number(/\d+/.exec(sentence)?.[0]));
    const expected = makeLegacyRecords(65).flatMap(({ id }) => (id % 2 ? [id] : []));
    expect(ids?.sort((a, b) => a - b)).toEqual(expected);
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

  describe('one that is none', () => {
    const page = '<html></html>';
    async function servePage(): Promise<string> {
      const server = createServer((_request, response) => response.end(page));
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      onTestFinished(() => void server.close());
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    }

    test('is said in a sentence: --against that answers pages for people', async () => {
      const legacy = await serve();
      const found = await verify(legacy.url, '--against', await servePage());
      expect(found).toMatchObject({ code: 2, stdout: '', report: null });
      expect(found.stderr).toMatch(/^http:\S+ answers, but with no page of a listing\.\n$/);
    });

    test('is said in a sentence: an address with a query', async () => {
      const legacy = await serve();
      const found = await verify(`${legacy.url}?user=5`);
      expect(found).toMatchObject({ code: 2, stdout: '' });
      expect(found.stderr).toMatch(/^http:\S+\?user=5 must be a listing without a query.*\n$/);
      const against = await verify(legacy.url, '--against', `${legacy.url}?user=5`);
      expect(against.stderr).toMatch(/^--against is .* without a query\.\n$/);
    });

    test('is said in a sentence: --against that passes requests on to the source', async () => {
      const legacy = await serve();
      const gateway = await openBefore(kind, legacy.base, { LEGACY_MODE: 'shadow' });
      onTestFinished(() => gateway.close());
      const found = await verify(legacy.url, '--against', `${gateway.base}/api/outfits/`);
      expect(found).toMatchObject({ code: 2, stdout: '', report: null });
      expect(found.stderr).toMatch(/^http\S+ passes requests on to the old service, .*LEGACY_MODE/);
    });
  });
});
