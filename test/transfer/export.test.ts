// `npm run export`: what it writes is what the listing serves, and what the import takes back.
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { buildApp } from '../../src/app.ts';
import { type Command, runCommand } from '../../src/commands/command.ts';
import * as exportCommand from '../../src/commands/export.ts';
import * as importCommand from '../../src/commands/import.ts';
import { readConfig } from '../../src/config.ts';
import { type Database, openDatabase } from '../../src/database/database.ts';
import { readOneSnapshot } from '../../src/database/transaction.ts';
import type { OutfitRow } from '../../src/outfits/row.ts';
import { parseTimestamp } from '../../src/outfits/timestamps.ts';
import { saveOutfits } from '../../src/outfits/writes/bulk.ts';
import { readRecords } from '../../src/transfer/export/records.ts';
import { dist, migratedEnvironmentOf, run } from '../support/cli/process.ts';
import { describeOnce, laneKinds } from '../support/lane.ts';

type Environment = Record<string, string>;

const micros = (text: string) => parseTimestamp(text) ?? 0n;
const uuid = (id: number) => `00000000-0000-4000-8000-${String(Math.abs(id)).padStart(12, '0')}`;

function makeRow(id: number, changes: Partial<OutfitRow> = {}): OutfitRow {
  const userId = changes.userId ?? 1;
  return {
    id,
    title: `Outfit ${id}`,
    description: '',
    imageKey: `outfits/${uuid(id)}.png`,
    imageOriginalKey: `outfits/${uuid(id + 1)}.jpeg`,
    complete: true,
    likes: 0,
    userId,
    quality: 3,
    private: false,
    backgroundColor: '',
    videoKey: null,
    playVideo: false,
    created: micros('2024-02-29T12:00:00Z') + BigInt(id % 7),
    modified: micros('2024-03-01T00:00:00Z'),
    creationDevice: 'web',
    modificationDevice: '',
    user: { id: userId, avatarKey: '', username: `user_${userId}`, firstName: '', lastName: '' },
    ...changes,
  };
}

const everyScript = 'Ünï Ελλάδα שלום مرحبا 日本語 한국어 ไทย हिन्दी 👗👩🏽‍🚀 \u{10FFFF}';
const controls = String.fromCharCode(...Array.from({ length: 31 }, (_, index) => index + 1));

/** Ordinary outfits, more than one reading gives, and all that is unusual. */
const rows = [
  ...Array.from({ length: 230 }, (_, index) => makeRow(index + 1)),
  makeRow(-2147483648, { title: everyScript, private: true }),
  makeRow(0, { title: `${controls}\u007f\u0085\u2028\u2029\ufeff`, description: '"\\/</script>' }),
  makeRow(2147483647, { likes: 2147483647, quality: -2147483648 }),
  makeRow(500, {
    created: micros('0001-01-01T00:00:00Z'),
    modified: micros('0001-01-01T00:00:00.000001Z'),
  }),
  makeRow(501, {
    created: micros('9999-12-31T23:59:59.999999Z'),
    modified: micros('1969-12-31T23:59:59.999999Z'),
  }),
  makeRow(502, {
    complete: false,
    videoKey: `outfits_videos/${uuid(502)}.mp4`,
    playVideo: true,
    backgroundColor: '#0a9',
    creationDevice: 'ios',
    modificationDevice: 'android',
    userId: -5,
    user: {
      id: -5,
      avatarKey: `avatars/${uuid(1)}.gif`,
      username: 'שרה_९95-é',
      firstName: everyScript,
      lastName: `${controls}\u2028`,
    },
  }),
];

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'outfit-export-test-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function withDatabase<Result>(
  environment: Environment,
  work: (database: Database) => Promise<Result>,
): Promise<Result> {
  const database = await openDatabase(readConfig(environment));
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}

async function fill(environment: Environment, outfits: readonly OutfitRow[]): Promise<void> {
  await withDatabase(environment, ({ pool }) => saveOutfits(pool, outfits));
}

/** The bodies of all pages of a listing, in the default order and by likes. */
function readPages(environment: Environment): Promise<{ newest: string[]; leastLiked: string[] }> {
  return withDatabase(environment, async (database) => {
    const app = await buildApp(readConfig(environment), database);
    const walk = async (start: string) => {
      const bodies: string[] = [];
      for (let next: string | undefined = start; next; ) {
        const answer: { statusCode: number; body: string } = await app.inject({
          url: next,
          headers: { host: 'shop.test' },
        });
        expect(answer.statusCode).toBe(200);
        bodies.push(answer.body);
        const link: string | null = JSON.parse(answer.body).next;
        next = link?.replace('http://shop.test', '');
      }
      return bodies;
    };
    const newest = await walk('/api/outfits/');
    const leastLiked = await walk('/api/outfits/?ordering=like_count');
    await app.close();
    return { newest, leastLiked };
  });
}

async function call(command: Command, environment: Environment, ...args: string[]) {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const [output, errors] = [buffer(stdout), buffer(stderr)];
  const code = await runCommand(command, {
    args,
    env: environment,
    stdin: Readable.from([]),
    stdout,
    stderr,
    signal: new AbortController().signal,
  });
  stdout.end();
  stderr.end();
  return { code, stdout: await output, stderr: String(await errors) };
}

const base = ['--base', 'http://shop.test'];
const readLines = (bytes: Buffer | string) =>
  bytes.toString().split('\n').filter(Boolean) as string[];
const idsOf = (lines: readonly string[]) => lines.map((line) => JSON.parse(line).id as number);

describe.each(laneKinds)('on %s', (kind) => {
  test('lines and pages hold what the listing serves, and their import serves it again', async () => {
    const environment = await migratedEnvironmentOf(kind);
    await fill(environment, rows);
    const served = await readPages(environment);
    const pages = served.newest;
    expect(pages.length).toBeGreaterThan(10);

    const lines = join(folder, 'all.ndjson.gz');
    const told = await call(exportCommand, environment, lines);
    expect(told).toMatchObject({ code: 0, stderr: '' });
    expect(String(told.stdout)).toContain(`236 records written to ${lines} in `);
    const written = readLines(gunzipSync(readFileSync(lines)));
    expect(pages.map((page) => page.slice(page.indexOf('[') + 1, -2)).join(',')).toBe(
      written.join(','),
    );
    const streamed = await call(exportCommand, environment, '-');
    expect(readLines(streamed.stdout)).toEqual(written);

    const saved = join(folder, 'pages');
    expect(await call(exportCommand, environment, saved, ...base)).toMatchObject({ code: 0 });
    const files = readdirSync(saved).sort();
    expect([files[0], files.at(-1)]).toEqual(['page-01.json', 'page-12.json']);
    expect(files.map((file) => readFileSync(join(saved, file), 'utf8'))).toEqual(pages);

    for (const source of [lines, saved]) {
      const other = await migratedEnvironmentOf(kind);
      const imported = await call(importCommand, other, source);
      expect(imported).toMatchObject({ code: 0, stderr: '' });
      expect(await readPages(other)).toEqual(served);
    }
    expect(readdirSync(folder).sort()).toEqual(['all.ndjson.gz', 'pages']);
  });
});

describe.each(laneKinds)('on %s', (kind) => {
  test('an empty listing is an empty file, or its one page', async () => {
    const environment = await migratedEnvironmentOf(kind);
    expect(await call(exportCommand, environment, join(folder, 'none.jsonl'))).toMatchObject({
      code: 0,
    });
    expect(readFileSync(join(folder, 'none.jsonl'), 'utf8')).toBe('');
    const publicUrl = { ...environment, PUBLIC_URL: 'https://shop.test/x' };
    expect(await call(exportCommand, publicUrl, join(folder, 'none'))).toMatchObject({ code: 0 });
    expect(readFileSync(join(folder, 'none/page-1.json'), 'utf8')).toBe(
      '{"count":0,"next":null,"previous":null,"results":[]}',
    );
  });

  test('--since takes what was created or modified after it, each once', async () => {
    const environment = await migratedEnvironmentOf(kind);
    const before = micros('2026-01-01T00:00:00Z');
    const moment = '2026-01-01T00:00:00.000005Z';
    const after = before + 6n;
    await fill(environment, [
      ...Array.from({ length: 150 }, (_, index) => makeRow(index + 1, { modified: after })),
      makeRow(1001, { created: after, modified: after }),
      // As an import may bring it: created later than it was modified.
      makeRow(1002, { created: after, modified: before }),
      makeRow(1003, { created: before + 5n, modified: before + 5n }),
      makeRow(1004, { created: before, modified: before }),
    ]);
    const file = join(folder, 'changes.ndjson');
    expect(await call(exportCommand, environment, file, '--since', moment)).toMatchObject({
      code: 0,
    });
    const ids = idsOf(readLines(readFileSync(file)));
    expect(ids.toSorted((a, b) => a - b)).toEqual([
      ...Array.from({ length: 150 }, (_, index) => index + 1),
      1001,
      1002,
    ]);
  });
});

describeOnce('an export', () => {
  test('is one snapshot, even if there are writes while it is read', async () => {
    const environment = await migratedEnvironmentOf('PostgreSQL');
    await fill(
      environment,
      Array.from({ length: 350 }, (_, index) => makeRow(index + 1)),
    );
    const { signal } = new AbortController();
    const read = async (database: Database, onFirst: () => Promise<unknown>) =>
      readOneSnapshot(database.pool, signal, async (reading) => {
        const lines: string[] = [];
        for await (const some of readRecords(database, reading, readConfig(environment))) {
          if (lines.length === 0) await onFirst();
          lines.push(...some.map(String));
        }
        return lines;
      });
    await withDatabase(environment, async (database) => {
      const quiet = await read(database, async () => {});
      const busy = await read(database, async () => {
        await database.pool.query(`UPDATE outfits SET title = 'new'`);
        await database.pool.query('UPDATE outfit_like_counts SET likes = likes + 1');
        await database.pool.query('DELETE FROM outfits WHERE id > 300');
        await saveOutfits(database.pool, [makeRow(999, { created: 1n })]);
      });
      expect(busy).toEqual(quiet);
      expect(busy).toHaveLength(350);
    });
  });

  test('replaces nothing, unless it is told to, and then only what an export has written', async () => {
    const environment = await migratedEnvironmentOf('PostgreSQL');
    await fill(environment, [makeRow(1)]);
    const file = join(folder, 'all.ndjson');
    const pages = join(folder, 'pages');
    writeFileSync(file, 'mine');
    mkdirSync(pages);
    expect(await call(exportCommand, environment, pages, ...base)).toMatchObject({ code: 0 });
    for (const target of [[file], [pages, ...base]]) {
      const refused = await call(exportCommand, environment, ...target);
      expect(refused).toMatchObject({ code: 1 });
      expect(refused.stderr).toContain(
        'is there already: choose another name, or add --overwrite.',
      );
    }
    expect(readFileSync(file, 'utf8')).toBe('mine');

    await fill(environment, [makeRow(2)]);
    for (const target of [[file], [pages, ...base]]) {
      const replaced = await call(exportCommand, environment, ...target, '--overwrite');
      expect(replaced).toMatchObject({ code: 0, stderr: '' });
    }
    expect(readLines(readFileSync(file))).toHaveLength(2);
    expect(readFileSync(join(pages, 'page-1.json'), 'utf8')).toContain('{"count":2,');

    writeFileSync(join(pages, 'letter.txt'), 'mine');
    const foreign = await call(exportCommand, environment, pages, ...base, '--overwrite');
    expect(foreign).toMatchObject({ code: 1 });
    expect(foreign.stderr).toContain('holds "letter.txt", which no export has written');
    expect(readdirSync(folder).sort()).toEqual(['all.ndjson', 'pages']);
  });

  test.each([
    ['all.ndjson', []],
    ['pages', base],
  ])('leaves nothing half of %s behind when it is interrupted', async (target, options) => {
    const environment = await migratedEnvironmentOf('PostgreSQL');
    await fill(environment, [makeRow(1)]);
    await withDatabase(environment, async ({ pool }) => {
      const client = await pool.connect();
      try {
        // So that it waits in the middle of its work for as long as it takes to be interrupted.
        await client.query('BEGIN; LOCK TABLE users IN ACCESS EXCLUSIVE MODE');
        const args = [`${dist}commands/cli.js`, 'export', join(folder, target), ...options];
        const exporting = run(args, environment);
        while (readdirSync(folder).length === 0)
          await new Promise((settle) => setTimeout(settle, 20));
        exporting.child.kill('SIGINT');
        expect(await exporting.ended).toBe(130);
        expect(exporting.errors()).toBe('Interrupted.\n');
      } finally {
        client.release(true);
      }
    });
    expect(readdirSync(folder)).toEqual([]);
  });

  test('whose counts are wrong writes no pages, and says what to do', async () => {
    const environment = await migratedEnvironmentOf('PostgreSQL');
    await fill(environment, [makeRow(1)]);
    await withDatabase(environment, async ({ pool }) => {
      await pool.query('SELECT apply_pending_outfit_changes()');
      await pool.query('DELETE FROM outfit_bucket_counts');
    });
    const result = await call(exportCommand, environment, join(folder, 'pages'), ...base);
    expect(result).toMatchObject({ code: 1 });
    expect(result.stderr).toContain(
      'counts 0 outfits, but holds 1: run "outfit-gateway counts rebuild"',
    );
    expect(readdirSync(folder)).toEqual([]);
  });

  test.each([
    [[], "Missing required argument 'TARGET': see --help."],
    [['a.ndjson', 'b.ndjson'], 'Too many arguments, expected 1 argument but got 2: see --help.'],
    [
      ['all.json'],
      'all.json may end in .ndjson or .jsonl (or .gz of these), or be the name of a folder.',
    ],
    [
      ['pages'],
      'Pages need a base for their links: add --base https://shop.example.com, or set PUBLIC_URL.',
    ],
    [
      ['pages', ...base, '--since', '2026-01-01T00:00:00Z'],
      '--since needs lines, such as changes.ndjson',
    ],
    [['all.ndjson', ...base], '--base is for pages: lines have no links.'],
    [['all.ndjson', '--since', 'monday'], '--since is "monday", but it may be a UTC timestamp'],
    [['nowhere/all.ndjson'], 'The folder of nowhere/all.ndjson does not exist: make it first.', 1],
  ])('with the words %j is refused in a sentence', async (words, sentence, code = 2) => {
    const environment = await migratedEnvironmentOf('PostgreSQL');
    const result = await call(exportCommand, environment, ...words);
    expect(result).toMatchObject({ code });
    expect(result.stderr).toContain(sentence);
    expect(existsSync('pages')).toBe(false);
  });
});
