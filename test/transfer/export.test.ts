// `npm run export`: what it writes is what the listing serves, and what the import takes back.
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { buildApp } from '../../src/app.ts';
import * as exportCommand from '../../src/commands/export.ts';
import * as importCommand from '../../src/commands/import.ts';
import { readConfig } from '../../src/config/config.ts';
import type { Database } from '../../src/database/database.ts';
import { readOneSnapshot } from '../../src/database/transaction.ts';
import type { OutfitRow } from '../../src/outfits/row.ts';
import { parseTimestamp } from '../../src/outfits/timestamps.ts';
import { saveOutfits } from '../../src/outfits/writes/bulk.ts';
import { readRecords } from '../../src/transfer/export/records.ts';
import { callCommand } from '../support/cli/commands.ts';
import { useFolder } from '../support/cli/folder.ts';
import { dist, migratedEnvironmentOf, run } from '../support/cli/process.ts';
import { withDatabase } from '../support/databases/connections.ts';
import { describeOnce, laneKinds } from '../support/lane.ts';
import { makeRecord, uuid } from '../support/legacy/legacy-service.ts';
import { rowsOf } from '../support/legacy/two-services.ts';

type Environment = Record<string, string>;

const micros = (text: string) => parseTimestamp(text) ?? 0n;

/** Some share the moment that lists are sorted by. */
function makeRow(id: number, changes: Partial<OutfitRow> = {}): OutfitRow {
  const created = `2024-02-29T12:00:00.00000${Math.abs(id) % 7}Z`;
  const [row] = rowsOf([makeRecord(id, { created })]) as [OutfitRow];
  return { ...row, ...changes };
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

const folder = useFolder();

async function fill(environment: Environment, outfits: readonly OutfitRow[]): Promise<void> {
  await withDatabase(environment, ({ pool }) => saveOutfits(pool, outfits));
}

/** The bodies of all pages of a listing, in the default order and by likes. */
function readPages(environment: Environment): Promise<{ newest: string[]; leastLiked: string[] }> {
  return withDatabase(environment, async (database) => {
    const app = await buildApp(readConfig(environment), database);
    const walk = async (start: string) => {
      const bodies: string[] = [];
      for (let url: string | null = start; url; url = JSON.parse(bodies.at(-1) ?? '').next) {
        const answer = await app.inject({ url, headers: { host: 'shop.test' } });
        expect(answer.statusCode).toBe(200);
        bodies.push(answer.body);
      }
      return bodies;
    };
    const newest = await walk('/api/outfits/');
    const leastLiked = await walk('/api/outfits/?ordering=like_count');
    await app.close();
    return { newest, leastLiked };
  });
}

const exportTo = (environment: Environment, ...args: string[]) =>
  callCommand(exportCommand, args, environment);

/** A database with these outfits. */
async function filled(outfits: readonly OutfitRow[]): Promise<Environment> {
  const environment = await migratedEnvironmentOf('PostgreSQL');
  await fill(environment, outfits);
  return environment;
}

const readLines = (bytes: Buffer | string) =>
  bytes.toString().split('\n').filter(Boolean) as string[];

describe.each(laneKinds)('on %s', (kind) => {
  test('lines hold what the listing serves, and their import serves it again', async () => {
    const environment = await migratedEnvironmentOf(kind);
    await fill(environment, rows);
    const served = await readPages(environment);
    const pages = served.newest;
    expect(pages.length).toBeGreaterThan(10);

    const lines = folder.at('all.ndjson.gz');
    const told = await exportTo(environment, lines);
    expect(told).toMatchObject({ code: 0, stderr: '' });
    expect(told.stdout).toContain(`236 records written to ${lines} in `);
    const written = readLines(gunzipSync(readFileSync(lines)));
    expect(pages.map((page) => page.slice(page.indexOf('[') + 1, -2)).join(',')).toBe(
      written.join(','),
    );
    const streamed = await exportTo(environment, '-');
    expect(readLines(streamed.stdout)).toEqual(written);

    const other = await migratedEnvironmentOf(kind);
    const imported = await callCommand(importCommand, [lines], other);
    expect(imported).toMatchObject({ code: 0, stderr: '' });
    expect(await readPages(other)).toEqual(served);
    expect(readdirSync(folder.at())).toEqual(['all.ndjson.gz']);
  });
});

describeOnce('an export', () => {
  test('of an empty listing is an empty file', async () => {
    const environment = await migratedEnvironmentOf('PostgreSQL');
    const lines = folder.at('none.jsonl');
    expect(await exportTo(environment, lines)).toMatchObject({ code: 0 });
    expect(readFileSync(lines, 'utf8')).toBe('');
  });

  test('with --since takes what was created or modified after it, each once', async () => {
    const before = micros('2026-01-01T00:00:00Z');
    const after = before + 6n;
    const many = Array.from({ length: 150 }, (_, index) => index + 1);
    const environment = await filled([
      ...many.map((id) => makeRow(id, { modified: after })),
      makeRow(1001, { created: after, modified: after }),
      // As an import may bring it: created later than it was modified.
      makeRow(1002, { created: after, modified: before }),
      makeRow(1003, { created: before + 5n, modified: before + 5n }),
      makeRow(1004, { created: before, modified: before }),
    ]);
    const { stdout } = await exportTo(environment, '-', '--since', '2026-01-01T00:00:00.000005Z');
    const ids = readLines(stdout).map((line): number => JSON.parse(line).id);
    expect(ids.toSorted((a, b) => a - b)).toEqual([...many, 1001, 1002]);
  });

  test('is one snapshot, even if there are writes while it is read', async () => {
    const environment = await filled(Array.from({ length: 350 }, (_, index) => makeRow(index + 1)));
    const { signal } = new AbortController();
    const read = async (database: Database, onFirst = async () => {}) =>
      readOneSnapshot(database.pool, signal, async (reading) => {
        const lines: string[] = [];
        for await (const some of readRecords(database, reading, readConfig(environment))) {
          if (lines.length === 0) await onFirst();
          lines.push(...some.map(String));
        }
        return lines;
      });
    await withDatabase(environment, async (database) => {
      const quiet = await read(database);
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

  test('replaces nothing, unless it is told to, nor by an export without a record', async () => {
    const environment = await filled([makeRow(1)]);
    const file = folder.save('all.ndjson', 'mine');
    const exists = expect.stringContaining('is there already: choose another name, or add --over');
    expect(await exportTo(environment, file)).toMatchObject({ code: 1, stderr: exists });
    expect(readFileSync(file, 'utf8')).toBe('mine');
    const replaced = await exportTo(environment, file, '--overwrite');
    expect(replaced).toMatchObject({ code: 0, stderr: '' });
    expect(readLines(readFileSync(file))).toHaveLength(1);

    await withDatabase(environment, ({ pool }) => pool.query('DELETE FROM outfits'));
    const stderr = expect.stringContaining('There is no record to export, so ');
    const empty = await exportTo(environment, file, '--overwrite');
    expect(empty).toMatchObject({ code: 1, stderr });
    expect(readLines(readFileSync(file))).toHaveLength(1);

    mkdirSync(folder.at('a.ndjson'));
    const refused = await exportTo(environment, folder.at('a.ndjson'), '--overwrite');
    expect(refused.stderr).toContain('a.ndjson is a folder: choose another name.');
    expect(readdirSync(folder.at()).sort()).toEqual(['a.ndjson', 'all.ndjson']);
  });

  test('leaves nothing behind when it is interrupted', async () => {
    const environment = await filled([makeRow(1)]);
    await withDatabase(environment, async ({ pool }) => {
      const client = await pool.connect();
      try {
        // So that it waits in the middle of its work for as long as it takes to be interrupted.
        await client.query('BEGIN; LOCK TABLE users IN ACCESS EXCLUSIVE MODE');
        const args = [`${dist}commands/cli.js`, 'export', folder.at('all.ndjson')];
        const exporting = run(args, environment);
        await expect.poll(() => readdirSync(folder.at())).not.toEqual([]);
        exporting.child.kill('SIGINT');
        expect(await exporting.ended).toBe(130);
        expect(exporting.errors()).toBe('Interrupted.\n');
      } finally {
        client.release(true);
      }
    });
    expect(readdirSync(folder.at())).toEqual([]);
  });

  test.each([
    [[], "Missing required argument 'TARGET': see --help."],
    [['a.ndjson', 'b.ndjson'], 'Too many arguments, expected 1 argument but got 2: see --help.'],
    [['all.json'], 'all.json must end in .ndjson or .jsonl, or .gz of these.'],
    [['pages/'], 'pages/ must end in .ndjson or .jsonl, or .gz of these.'],
    [['all.ndjson', '--since', 'monday'], '--since is "monday", but it must be a UTC timestamp'],
    [['nowhere/all.ndjson'], 'The folder of nowhere/all.ndjson does not exist: make it first.', 1],
  ])('with the words %j is refused in a sentence', async (words, sentence, code = 2) => {
    const environment = await migratedEnvironmentOf('PostgreSQL');
    const stderr = expect.stringContaining(sentence);
    expect(await exportTo(environment, ...words)).toMatchObject({ code, stderr });
  });
});
