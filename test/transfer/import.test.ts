// `npm run import`, on real databases and a real HTTP server. What is about the process (signals) runs as one;
// all else is called as a function.
import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import * as exportCommand from '../../src/commands/export.ts';
import * as importCommand from '../../src/commands/import.ts';
import { createFetchPage } from '../../src/old-listing/fetch-page.ts';
import { formatNumber } from '../../src/transfer/reporter.ts';
import { callCommand } from '../support/cli/commands.ts';
import { useFolder } from '../support/cli/folder.ts';
import { dist, run } from '../support/cli/process.ts';
import { connectForTest, withDatabase } from '../support/databases/connections.ts';
import type { TestDatabase } from '../support/databases/test-database.ts';
import { countBlocked } from '../support/faults/clients.ts';
import { type DatabaseKind, makeEmptyDatabase, makeMigratedDatabase } from '../support/gateway.ts';
import { describeInSoak, describeOnce, laneKinds, testOnce } from '../support/lane.ts';
import {
  type LegacyService,
  makeRecord,
  makeUser,
  uuid,
} from '../support/legacy/legacy-service.ts';
import { newest, serveListing, toLines } from '../support/legacy/listing.ts';

/** Records of a file whose import takes some seconds. */
const many = 12_000;

const folder = useFolder();
const { save } = folder;
let testDatabase: TestDatabase;
/** One for all tests on PostgreSQL, emptied before each: making it takes longer than most of them. */
let shared: TestDatabase | undefined;

beforeEach(() => openTestDatabase('PostgreSQL'));
afterEach(async () => {
  if (testDatabase !== shared) await testDatabase.remove();
});
afterAll(() => shared?.remove());

async function openTestDatabase(kind: DatabaseKind): Promise<void> {
  if (kind === 'embedded') {
    testDatabase = await makeMigratedDatabase(kind);
    return;
  }
  shared ??= await makeMigratedDatabase(kind);
  testDatabase = shared;
  await query('TRUNCATE users, outfits, outfit_likes, idempotency_keys RESTART IDENTITY');
}

const query = (sql: string) =>
  withDatabase(testDatabase.environment, async ({ pool }) => (await pool.query(sql)).rows);

const environmentOf = () => ({
  DATA_DIR: folder.at('data'),
  PAGE_SIZE: '10',
  ...testDatabase.environment,
});

const runImport = (args: readonly string[], input?: string | Buffer) =>
  callCommand(importCommand, args, environmentOf(), input);

/** Imports lines from standard input. */
const importLines = (...records: unknown[]) => runImport(['-'], toLines(records));

/** The import of a file as a process. */
const start = (source: string) =>
  run([`${dist}commands/cli.js`, 'import', source], environmentOf());

describeOnce('an import', () => {
  test('a live listing is read to the end, and again with what has changed', async () => {
    const listing = await serveListing(newest(45));
    const first = await runImport([listing.url]);
    expect(first).toMatchObject({ code: 0, stderr: '' });
    expect(first.stdout).toContain('45 created, 0 updated, 0 unchanged, 0 broken');
    const again = await runImport([listing.url]);
    expect(again.stdout).toContain('0 created, 0 updated, 45 unchanged, 0 broken');
    expect(listing.asked).toHaveLength(10);

    listing.records[3] = makeRecord(42, { likes: 900, title: 'Other' });
    const updated = await runImport([listing.url]);
    expect(updated.stdout).toContain('0 created, 1 updated, 44 unchanged, 0 broken');
    expect(
      await query(
        'SELECT title, likes FROM outfits JOIN outfit_like_counts USING (id) WHERE id = 42',
      ),
    ).toEqual([{ title: 'Other', likes: 900 }]);
  });

  test.each([
    ['behind the imported ones', [-7, 0, 812], 813],
    ['where a source has the last id there is', [12, 2147483647], 13],
  ])('new outfits get ids, %s', async (_where, imported, next) => {
    const source = save('records.ndjson', toLines(imported.map((id) => makeRecord(id))));
    expect(await runImport([source])).toMatchObject({ code: 0 });
    expect(await query(`SELECT nextval('outfits_id_seq')::int AS id`)).toEqual([{ id: next }]);
  });
});

describe.each(laneKinds)('on %s', (kind) => {
  beforeEach(() => openTestDatabase(kind));

  test('removes with --replace what the source does not have, and says how much', async () => {
    await importLines(...newest(3));
    await query(
      `INSERT INTO outfit_likes (outfit_id, user_id) VALUES (3, 2), (2, 2);
       UPDATE outfit_like_counts SET likes = likes + 1 WHERE id IN (2, 3)`,
    );
    const source = save('new.ndjson', toLines([makeRecord(50), makeRecord(2, { likes: 7 })]));
    const added = await runImport([source]);
    expect(added.stdout).toContain('2 more outfits that are not in this source; --replace');
    const replaced = await runImport([source, '--replace']);
    expect(replaced.code).toBe(0);
    expect(replaced.stdout).toContain(
      '0 created, 0 updated, 2 unchanged, 0 broken.\nRemoved, because the source does not have them: 2 outfits, 2 users, 1 likes.\n',
    );
    const left = await query(
      `SELECT (SELECT json_object_agg(id, likes ORDER BY id) FROM outfit_like_counts) AS likes,
         ARRAY(SELECT id FROM users ORDER BY id) AS users, (SELECT count(*)::int FROM outfit_likes) AS rows,
         (SELECT count(*)::int FROM check_outfit_counts()) AS wrong, nextval('outfits_id_seq')::int AS next`,
    );
    const likes = { 2: 7, 50: 3 };
    expect(left).toEqual([{ likes, users: [1, 3], rows: 0, wrong: 0, next: 51 }]);
  });
});

describeOnce('--replace', () => {
  const page = (count: number, next: string | null, ...ids: number[]) =>
    JSON.stringify({ count, next, previous: null, results: ids.map((id) => makeRecord(id)) });
  const [whole = '', begun = ''] = [JSON.stringify(makeRecord(9)), '{"id": 10, "titl'];

  test.each([
    ['an empty file', '', 'the source is empty'],
    ['blank lines', '\n \n', 'the source is empty'],
    ['an empty list', '[]', 'the source is empty'],
    ['a page without records', page(0, null), 'the source is empty'],
    ['records that are all broken', '{"id":1}\n', 'most records were broken'],
    ['an error instead of a page', '{"detail":"No."}', 'some records have no valid id'],
    ['a cut line', `${whole}\n${begun}`, 'some records have no valid id'],
    [
      'a cut gzip',
      gzipSync(`${whole}\n`.repeat(9)).subarray(0, -9),
      'some records have no valid id',
    ],
    [
      'one page of several',
      page(30, 'http://x/?page=2', 9),
      'the listing counts more than were read',
    ],
    [
      'the first of several pages without count',
      JSON.stringify({ next: 'http://x/?cursor=a', results: [makeRecord(9)] }),
      'the last page links to another one',
    ],
  ])('removes nothing for %s, from a file or standard input', async (_name, content, reason) => {
    await importLines(...newest(3));
    const dry = await runImport([save('source.json', content), '--replace', '--dry-run']);
    expect(dry.stdout).toContain(`\nNothing would be removed, because ${reason}.\n`);
    for (const args of [['--dry-run'], []]) {
      expect((await runImport(['-', ...args], content)).stdout).not.toContain('--replace');
    }
    const refused = await runImport(['-', '--replace'], content);
    expect(refused.stdout).toContain(`\nNothing is removed, because ${reason}.\n`);
    expect([dry.code, refused.code]).toEqual([1, 1]);
    const kept = await query('SELECT id FROM outfits WHERE id < 4 ORDER BY id');
    expect(kept).toEqual([{ id: 1 }, { id: 2 }, { id: 3 }]);
  });

  test('is not stopped by a broken record whose id can be read, and keeps its outfit', async () => {
    await importLines(...newest(3));
    const records = [makeRecord(3), makeRecord(2, { likes: -1 }), makeRecord(9)];
    const found = await runImport([save('source.ndjson', toLines(records)), '--replace']);
    expect(found).toMatchObject({ code: 1 });
    expect(found.stdout).toContain('source does not have them: 1 outfits');
    const kept = await query('SELECT id FROM outfits ORDER BY id');
    expect(kept).toEqual([{ id: 2 }, { id: 3 }, { id: 9 }]);
  });

  test('refuses the URL of a listing with a password, and does not repeat it', async () => {
    const refused = await runImport(['https://anna:s3cret@a.test/api/outfits/']);
    expect(refused.stderr).toBe(
      'The URL of a listing must be valid, and without user and password.\n',
    );
    expect(refused.code).toBe(2);
  });

  test('removes nothing for a listing that is empty, or empties while it is read, and begins no removal before a page that is refused', async () => {
    const listing = await serveListing(newest(40));
    await runImport([listing.url]);
    listing.records = [];
    const empty = await runImport([listing.url, '--replace']);
    expect(empty).toMatchObject({ code: 1, stdout: expect.stringContaining('source is empty') });
    listing.records = newest(40);
    listing.afterPage = () => listing.records.splice(0);
    const emptied = await runImport([listing.url, '--replace']);
    expect(emptied.stdout).toContain('the listing lost many of its records while it was read');
    expect(emptied.code).toBe(1);
    listing.records = newest(40);
    // More than half are left.
    listing.afterPage = (page) => page === 2 && listing.records.splice(21);
    const halved = await runImport([listing.url, '--replace']);
    expect(halved.stdout).toContain('the listing lost many of its records while it was read');
    expect(halved.code).toBe(1);
    listing.afterPage = () => {};
    listing.records = newest(15);
    listing.intercept = ({ page }) => page === 2 && [403, {}, { detail: 'No.' }];
    expect(await runImport([listing.url, '--replace'])).toMatchObject({ code: 2 });
    expect(await query('SELECT count(*)::int FROM outfits')).toEqual([{ count: 40 }]);

    listing.intercept = () => false;
    listing.asked.length = 0;
    const again = await runImport([listing.url, '--replace']);
    expect(again).toMatchObject({ code: 0, stderr: '' });
    expect(again.stdout).toContain('does not have them: 25 outfits');
    expect(listing.asked).toEqual([1, 2]);
    expect(await query('SELECT count(*)::int FROM outfits')).toEqual([{ count: 15 }]);
  });

  test('keeps what is created and liked here while the source is read', async () => {
    const listing = await serveListing(newest(15));
    await runImport([listing.url]);
    listing.records = newest(12);
    listing.intercept = ({ page }, response) => {
      if (page !== 2) return false;
      void query(
        `INSERT INTO outfits (id, image_key, image_original_key, user_id, created, modified)
         VALUES (99, 'outfits/a.png', 'outfits/a.png', 1, 0, 0);
         INSERT INTO outfit_likes (outfit_id, user_id) VALUES (12, 1);
         UPDATE outfit_like_counts SET likes = likes + 1 WHERE id = 12`,
      ).then(() => {
        listing.intercept = () => false;
        response.writeHead(503).end();
      });
      return true;
    };
    const replaced = await runImport([listing.url, '--replace']);
    expect(replaced.stdout).toContain('does not have them: 3 outfits, 0 users, 0 likes');
    expect(await query('SELECT outfit_id FROM outfit_likes')).toEqual([{ outfit_id: 12 }]);
    const rows = await query('SELECT id, likes FROM outfit_like_counts WHERE id > 11 ORDER BY id');
    expect(rows).toEqual([
      { id: 12, likes: 16 },
      { id: 99, likes: 0 },
    ]);
  });
});

testOnce('a batch that a deadlock with another writer ended is saved again', async () => {
  await importLines(...newest(2));
  const { DATABASE_URL } = testDatabase.environment;
  const [writer, watcher] = [
    await connectForTest(DATABASE_URL),
    await connectForTest(DATABASE_URL),
  ];
  // The import looks for the deadlock first, and is ended.
  await writer.query(
    `SET deadlock_timeout = '1min'; BEGIN; UPDATE outfits SET title = '' WHERE id = 2`,
  );
  const imported = importLines(...newest(2).map((record) => ({ ...record, title: 'New' })));
  await expect.poll(() => countBlocked(watcher)).toBe(1);
  await writer.query(`UPDATE outfits SET title = '' WHERE id = 1; COMMIT`);
  expect(await imported).toMatchObject({ code: 0, stderr: '' });
  expect(await query('SELECT title FROM outfits')).toEqual([{ title: 'New' }, { title: 'New' }]);
});

testOnce(
  'a like that is given while a batch waits for it is added to the number of the source',
  async () => {
    const [record] = newest(1);
    await importLines(record);
    const { DATABASE_URL } = testDatabase.environment;
    const [viewer, watcher] = [
      await connectForTest(DATABASE_URL),
      await connectForTest(DATABASE_URL),
    ];
    await viewer.query('BEGIN; SELECT save_like(id, user_id) FROM outfits');
    const imported = importLines({ ...record, likes: 20 });
    await expect.poll(() => countBlocked(watcher)).toBe(1);
    await viewer.query('COMMIT');
    expect(await imported).toMatchObject({ code: 0, stderr: '' });
    expect(await query('SELECT likes FROM outfit_like_counts')).toEqual([{ likes: 21 }]);
  },
);

describeOnce('files', () => {
  test('saved pages in folders are read in natural order, plain or compressed', async () => {
    const records = newest(120);
    const page = (number: number) =>
      JSON.stringify({
        count: 120,
        next: number < 12 ? `http://x/api/outfits/?page=${number + 1}` : null,
        previous: null,
        results: records.slice(number * 10 - 10, number * 10),
      });
    for (let number = 1; number <= 12; number += 2) {
      save(`pages/page${number}.json`, page(number));
      save(`pages/page${number + 1}.json.gz`, gzipSync(page(number + 1)));
    }
    save('pages/README', 'not a page');
    const result = await runImport([folder.at('pages')]);
    expect(result.stdout).toContain('120 created');
    expect(result.stderr).toContain('left out');
  });

  test.each([
    ['records per line', toLines(newest(4))],
    ['an array', JSON.stringify(newest(4), null, 2)],
    ['a page', JSON.stringify({ next: null, results: newest(4) }, null, 2)],
    ['a page per line', toLines([{ next: null, results: newest(4) }])],
    ['lines that end in CR LF', toLines(newest(4)).replaceAll('\n', '\r\n')],
    ['a byte order mark', `\uFEFF${toLines(newest(4))}`],
    ['a broken first line', `{"id":\n${toLines(newest(4))}`],
  ])('standard input may be %s', async (_name, input) => {
    const result = await runImport(['-'], input);
    expect(result.stdout).toContain('4 created');
  });

  test('what cannot be read is reported with its place, and nothing else is lost', async () => {
    const [first = '', second = '', third = ''] = toLines(newest(3)).split('\n');
    const source = save(
      'records.ndjson',
      Buffer.concat([
        Buffer.from(`${first}\n{"id": 9, "ti\n\n`),
        Buffer.from([0x22, 0xff, 0x22, 0x0a]),
        Buffer.from(`${second}\n${third}`),
      ]),
    );
    const truncated = save('pages/1.json', '{"count": 1, "next": null, "results": [');
    const result = await runImport([source, truncated]);
    expect(result.code).toBe(1);
    expect(result.stdout).toContain('3 created, 0 updated, 0 unchanged, 3 broken');
    expect(result.stderr).toContain(`${source}:2: it is not JSON`);
    expect(result.stderr).toContain(`${source}:4: it is not UTF-8`);
    expect(result.stderr).toContain(`${truncated}: it is not JSON`);
  });

  const several = newest(2).map((record) => JSON.stringify(record, null, 2));
  test.each<[string, string, string | Buffer, string]>([
    ['several documents', 'x.ndjson', several.join('\n'), 'several documents must be one per line'],
    ['several pages', 'x.json', '{\n"results":[]}\n{\n}', 'must be one per line'],
    ['an error', 'x.json', '{"detail":"No."}', 'nor a record: {"detail":"No."}'],
    ['another envelope', 'x.json', '{"links":{},"total":5,"results":[]}', 'nor a record: {"links'],
    ['UTF-16', 'x.json', Buffer.from('\uFEFF[]', 'utf16le'), 'x.json: it is not UTF-8'],
    [
      'control characters',
      'x.json',
      '\u001b]0;x\u0007 {"id":1}',
      'it is not JSON (Unexpected token',
    ],
  ])('says of a file with %s what it is', async (_name, name, content, sentence) => {
    const { code, stderr } = await runImport([save(name, content)]);
    expect(code).toBe(1);
    expect(stderr).toContain(sentence);
    expect(stderr).not.toMatch(/[^\P{Cc}\n]/u);
    expect(stderr.match(/\n/g)).toHaveLength(1);
  });

  test('gzip is read by its content, and plain text in spite of its name', async () => {
    const records = newest(4).map((record) => JSON.stringify(record));
    const [packed, plain] = [
      gzipSync(`${records[0]}\n${records[1]}`),
      `${records[2]}\n${records[3]}`,
    ];
    const result = await runImport([save('packed.ndjson', packed), save('plain.json.gz', plain)]);
    expect(result).toMatchObject({ code: 0, stdout: expect.stringContaining('4 created') });
  });

  test('files and folders that begin with a dot are left out of a folder', async () => {
    save('mac/1.json', JSON.stringify(newest(4)));
    save('mac/._1.json', Buffer.from('00051607', 'hex'));
    save('mac/..2026/1.json', JSON.stringify(newest(4)));
    const result = await runImport([folder.at('mac')]);
    expect(result).toMatchObject({ code: 0, stdout: expect.stringContaining('4 records read') });
    expect(result.stderr).toMatch(
      /^1 of the files in \S+ are left out, .+, such as \S+\/\._1\.json\.\n$/,
    );
  });

  test('a file that does not exist ends the import in one sentence', async () => {
    const stderr = expect.stringMatching(/^\/nowhere\.json cannot be read \(ENOENT[^\n]+\.\n$/);
    expect(await runImport(['/nowhere.json'])).toMatchObject({ code: 2, stderr });
  });

  test('only a hundred broken records are printed, all are counted', async () => {
    const records = newest(250).map((record) => ({ ...record, likes: -1 }));
    const result = await importLines(...records, makeRecord(900));
    expect(result.code).toBe(1);
    expect(result.stderr.match(/^Outfit /gm)).toHaveLength(100);
    expect(result.stderr).toContain('150 more');
    expect(result.stdout).toContain('1 created, 0 updated, 0 unchanged, 250 broken');
  });

  test('the most common base is that of the source, and the settings for it are named', async () => {
    const legacy = 'https://cdn.legacy.test/files';
    const records = newest(3).map((record) => ({
      ...record,
      image_key: record.image_key.replace('https://media.example.com', legacy),
      image_original_url: record.image_original_url.replace('https://media.example.com', legacy),
    }));
    const result = await importLines(makeRecord(9), ...records);
    expect(result.stdout).toContain('3 created, 0 updated, 0 unchanged, 1 broken');
    expect(result.stdout).toContain(`set MEDIA_URL=${legacy}.`);
    expect(result.stderr).toContain(
      `Outfit 9 (-:1): image_key is "https://media.example.com/outfits/${uuid(9)}.jpeg", but must be "${legacy}/<path of the file>"`,
    );
  });
});

describeOnce('a record', () => {
  const asJson = (text: string, field: string, json: string) =>
    text.replace(new RegExp(`"${field}":("[^"]*"|[^,}]*)`), `"${field}":${json}`);
  const lineWith = (field: string, json: string, id: number) => {
    const user = makeUser(1_000 + id);
    return asJson(JSON.stringify(makeRecord(id, { user })), field, json);
  };

  test('may have any value of the contract, and is unchanged then', async () => {
    const lines = [
      ['id', '1.0'],
      ['id', '-2147483648'],
      ['likes', '2147483647'],
      ['quality', '17'],
      ['title', '""'],
      ['title', '"\\u2028 \\u001f \\ud83d\\ude00"'],
      ['background_color', '"#00ff7f"'],
      ['created', '"0001-01-01T00:00:00Z"'],
      ['created', '"9999-12-31T23:59:59.999999Z"'],
      ['modification_device', '"web"'],
      ['username', '"שרה_９95-é"'],
      ['video', 'null'],
    ].map(([field = '', json = ''], index) => lineWith(field, json, index + 1));
    expect(await runImport(['-'], lines.join('\n'))).toMatchObject({ code: 0, stderr: '' });
    const again = await runImport(['-', '--dry-run'], lines.join('\n'));
    expect(again.stdout).toContain(' 0 updated, 12 unchanged (');
  });

  test('is saved, named and served with values outside of the contract', async () => {
    const outside: (readonly [field: string, json: string, stored?: Record<string, string>])[] = [
      ['username', '"lea@example.com"'],
      ['username', '"jane.doe+x y"'],
      ['avatar_key', '"http://x/a.webp"'],
      ['background_color', '"#0A9"'],
      ['image_key', '"https://media.example.com/outfits/original/x.jpg"'],
      ['image_original_url', '"https://media.example.com/2024/05/x.webp?e=1&s=2"'],
      ['video', '"https://video.example.com/clips/x.webm"'],
      ['creation_device', '"ipad"'],
      ['creation_device', '""'],
      ['modification_device', '"Windows Phone"'],
      ['created', '"2024-05-01T09:30:00.000001+01:00"', { created: '2024-05-01T08:30:00.000001Z' }],
      ['modified', '"2024-05-01t09:30:00.1000000z"', { modified: '2024-05-01T09:30:00.100000Z' }],
      ['modified', '"2024-05-01T09:30:00-23:59"', { modified: '2024-05-02T09:29:00.000000Z' }],
    ];
    const lines = outside.map(([field, json], index) => lineWith(field, json, index + 1));
    const result = await runImport(['-'], lines.join('\n'));
    expect(result).toMatchObject({ code: 0, stderr: '' });
    const { stdout } = await callCommand(exportCommand, ['-'], environmentOf());
    const served = new Map(
      stdout
        .trim()
        .split('\n')
        .map((text) => JSON.parse(text))
        .map(({ user, id, ...record }) => [id, { ...user, ...record }]),
    );
    for (const [index, [field, json, stored]] of outside.entries()) {
      expect(served.get(index + 1)).toMatchObject(stored ?? { [field]: JSON.parse(json) });
      const [, first] = outside.find(([name]) => name === field) ?? [];
      const name = /^(?:username|avatar_key)$/.test(field) ? `user.${field}` : field;
      expect(result.stdout).toContain(`${name} such as ${first} (`);
    }
  });

  test('with addresses without a host is saved, and the setting for them is named', async () => {
    const text = JSON.stringify(makeRecord(1)).replaceAll('https://media.example.com/', '/media/');
    const { stdout, code } = await runImport(['-'], text);
    expect(stdout).toContain('set MEDIA_URL=https://<host>/media.');
    expect(code).toBe(0);
  });

  test('is refused with the reason for any other value', async () => {
    const refused: (readonly [field: string, json: string, reason: string])[] = [
      ['id', '2147483648', 'id is 2147483648, but must be a whole number'],
      ['id', '"1"', 'id is "1", but must be a whole number'],
      ['likes', '-1', 'likes is -1, but must be a whole number from 0 to 2147483647'],
      ['likes', '1.5', 'likes is 1.5, but'],
      ['likes', '1e400', 'likes is Infinity, but'],
      ['quality', 'null', 'quality is null, but'],
      ['complete', '"true"', 'complete is "true", but must be true or false'],
      ['background_image', '""', 'background_image is "", but must be null'],
      ['background_color', '"red"', 'background_color is "red", but'],
      ['title', '"a\\u0000b"', 'title is "a\\u0000b", but must be text without NUL'],
      ['title', '"a\\ud83db"', 'title is "a\\ud83db", but must be text without NUL'],
      ['username', '""', 'user.username is "", but must be a text that is not'],
      ['username', 'null', 'user.username is null, but'],
      ['avatar_key', 'null', 'user.avatar_key is null, but'],
      [
        'created',
        '"2023-02-29T00:00:00Z"',
        'created is "2023-02-29T00:00:00Z", but must be a timestamp',
      ],
      ['modified', '"2023-02-28T00:00:00.1234567Z"', 'modified is'],
      ['modified', '"2023-02-28 00:00:00Z"', 'modified is'],
      ['creation_device', 'null', 'creation_device is null, but must be text'],
      ['image_key', '"https://media.example.com/a b.jpeg"', 'image_key is "https://media'],
      [
        'image_key',
        '"outfits/x.jpeg"',
        'image_key is "outfits/x.jpeg", but must be "https://media',
      ],
    ];
    const lines = refused.map(([field, json], index) => lineWith(field, json, index + 1));
    const noObject = JSON.stringify({ ...makeRecord(98), user: 7 });
    const result = await runImport(
      ['-'],
      [...lines, noObject, toLines([makeRecord(99)])].join('\n'),
    );
    for (const [, , reason] of refused) expect(result.stderr).toContain(reason);
    expect(result.stderr).toContain('user is 7, but must be an object');
    expect(result.stdout).toContain(
      `1 created, 0 updated, 0 unchanged, ${lines.length + 1} broken`,
    );
    expect(result.code).toBe(1);
  });
});

describeOnce('a live listing', () => {
  test('that fails now and then is read all the same', async () => {
    const listing = await serveListing(newest(45));
    // Of which page, and how.
    const failures: [number, (response: ServerResponse) => void][] = [
      [1, (response) => response.writeHead(503).end('busy')],
      [2, (response) => response.socket?.destroy()],
      [2, (response) => response.end('{"count": 45, "resul')],
      [3, (response) => response.writeHead(404).end('{"detail":"Not found."}')],
      [3, (response) => response.writeHead(408).end()],
      [4, (response) => response.writeHead(425).end()],
      [5, (response) => response.writeHead(429, { 'retry-after': '1' }).end()],
    ];
    listing.intercept = ({ page }, response) => {
      if (page !== failures[0]?.[0]) return false;
      failures.shift()?.[1](response);
      return true;
    };
    const result = await runImport([listing.url]);
    expect(result).toMatchObject({ code: 0, stdout: expect.stringContaining('45 created') });
    expect(result.stderr.match(/trying again in/g)).toHaveLength(7);
  });

  test.each<[string, (listing: LegacyService) => void, RegExp]>([
    [
      'has a link to a page that does not exist',
      (listing) => {
        listing.intercept = ({ page }) => page === 3 && [404, {}, {}];
      },
      /page=3 failed 3 times; the last time it answered 404, but \S+page=2 links to it\.\n/,
    ],
    [
      'counts more than it returns',
      (listing) => Object.assign(listing, { uncounted: 2 }),
      /The listing counts 2 more outfits than were read/,
    ],
  ])('that %s is imported with exit code 1', async (_name, disturb, sentence) => {
    const listing = await serveListing(newest(45));
    disturb(listing);
    const result = await runImport([listing.url]);
    expect(result.code).toBe(1);
    expect(result.stderr + result.stdout).toMatch(sentence);
  });

  test.each([
    ['one', 1, [20]],
    ['a page', 3, [41, 42, 43, 44, 45, 36, 37, 38, 39, 40]],
    ['more than a page', 4, [45, 44, 43, 42, 41, 40, 39, 38, 37, 36, 35, 34]],
    ['the last page', 4, [45, 44, 43, 42, 41]],
  ])(
    'that loses %s while it is read is read again where records moved',
    async (_name, after, gone) => {
      const listing = await serveListing(newest(45));
      listing.afterPage = (page) => {
        if (page === after)
          listing.records = listing.records.filter(({ id }) => !gone.includes(id));
      };
      const result = await runImport([listing.url]);
      expect(result.code).toBe(0);
      const ids = await query('SELECT id FROM outfits');
      expect(ids.map(({ id }) => id)).toEqual(
        expect.arrayContaining(listing.records.map(({ id }) => id)),
      );
    },
  );

  test.each(['""', '"null"', 'false', undefined])(
    'that ends with %s as next is read once',
    async (end) => {
      const listing = await serveListing(newest(45));
      listing.intercept = ({ page }, response) => {
        if (page !== 5) return false;
        const next = end === undefined ? '' : `"next":${end},`;
        const results = JSON.stringify(listing.records.slice(40));
        return Boolean(response.end(`{"count":45,${next}"results":${results}}`));
      };
      const result = await runImport([listing.url]);
      expect(result).toMatchObject({ code: 0, stderr: '' });
      expect(listing.asked).toEqual([1, 2, 3, 4, 5]);
    },
  );

  test('whose link has no parameters is asked without a question mark', async () => {
    const listing = await serveListing(newest(5));
    listing.intercept = ({ page }) =>
      page === 2 ? [200, {}, { count: 5, next: listing.url, results: [] }] : [403, {}, {}];
    const { stderr } = await runImport([`${listing.url}?page=2`]);
    expect(stderr).toContain(`${listing.url} answered 403`);
  });

  test('that refuses a page ends the import in a sentence, and the next run goes on there', async () => {
    const listing = await serveListing(newest(45));
    listing.intercept = () => [404, {}, { detail: 'Not found.' }];
    const nothing = await runImport([listing.url]);
    expect(nothing.code).toBe(2);
    expect(nothing.stderr).toContain('answered 404: {"detail":"Not found."}.');
    listing.intercept = ({ page }) => page === 4 && [403, {}, { detail: 'No.' }];
    const refused = await runImport([listing.url]);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('?page=4 answered 403: {"detail":"No."}.');
    expect(refused.stderr).toContain('continues from there');
    expect(await query('SELECT count(*)::int FROM outfits')).toEqual([{ count: 30 }]);

    listing.intercept = () => false;
    listing.asked.length = 0;
    const resumed = await runImport([listing.url]);
    expect(resumed).toMatchObject({ code: 0 });
    expect(resumed.stderr).toContain('Continuing after the 30 records');
    expect(resumed.stdout).toContain('45 records read');
    expect(listing.asked).toEqual([4, 5]);
  });

  test('that falls silent in the middle of a page is given up on after a time-out', async () => {
    const listing = await serveListing([]);
    listing.intercept = (_asked, response) => response.write('{"count":') || true;
    const { signal } = new AbortController();
    const fetchPage = createFetchPage({ listing: listing.url, timeout: 300 });
    await expect(fetchPage(listing.url, signal)).rejects.toThrow('no complete answer in 0.3 s');
  });

  test.each<[string, number, (page: number) => number, RegExp]>([
    ['in a circle', 10, (page) => (page % 3) + 1, /^The next links go in a circle: /m],
    ['to pages without records', 0, (page) => page + 1, /^The last 10 pages had no records, and/m],
    [
      'beyond its count',
      1_000,
      (page) => page + 1,
      /^The listing counts 5 records, but 11000 have come/m,
    ],
  ])('whose links go on %s ends in a sentence', async (_name, size, nextOf, sentence) => {
    const listing = await serveListing([]);
    const results = newest(size);
    listing.intercept = ({ page }) => {
      return [200, {}, { count: 5, next: `http://x/?page=${nextOf(page)}`, results }];
    };
    const { code, stderr } = await runImport([listing.url]);
    expect(code).toBe(2);
    expect(stderr).toMatch(sentence);
  });

  test('is read again with --restart', async () => {
    const listing = await serveListing(newest(15));
    listing.intercept = ({ page }) => page === 2 && [403, {}, {}];
    expect(await runImport([listing.url])).toMatchObject({ code: 2 });
    listing.intercept = () => false;
    listing.asked.length = 0;
    expect(await runImport([listing.url, '--restart'])).toMatchObject({ code: 0, stderr: '' });
    expect(listing.asked).toEqual([1, 2]);
  });
});

describeInSoak('a file', () => {
  test('is read again to its end where Ctrl-C or a lost database ended the import', async () => {
    const source = save('records.ndjson', toLines(newest(many)));
    await withDatabase(testDatabase.environment, async ({ pool }) => {
      const countSaved = async () => (await pool.query('SELECT FROM outfits')).rowCount ?? 0;
      /** Starts an import, and resolves once it has saved so many records. */
      const startUntil = async (saved: number) => {
        const started = start(source);
        while ((await countSaved()) < saved) await new Promise((settle) => setTimeout(settle, 20));
        return started;
      };
      const stopped = await startUntil(3_000);
      stopped.child.kill('SIGINT');
      expect(await stopped.ended).toBe(130);
      expect(stopped.output()).toContain('what was read is saved. Run it again for the rest.\n');
      expect(await countSaved()).toBeLessThan(many);

      const cutOff = await startUntil((await countSaved()) + 1_000);
      let isOver = false;
      void cutOff.ended.finally(() => (isOver = true));
      // Again and again, because a connection that is idle just then is replaced unnoticed.
      while (!isOver) {
        await pool.query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
           WHERE datname = current_database() AND pid <> pg_backend_pid()`,
        );
      }
      expect(await cutOff.ended).toBe(2);
      expect(cutOff.errors()).toMatch(/The database failed: .*\.\n$/);

      const again = await runImport([source]);
      expect(again).toMatchObject({ code: 0, stderr: '' });
      expect(again.stdout).toContain(`${formatNumber(many)} records read`);
      expect(await countSaved()).toBe(many);
    });
  });
});

describeOnce('what would take too much memory', () => {
  const blanks = (mebibytes: number) => Buffer.alloc(mebibytes * 1024 * 1024, ' ');
  const oneMore = `${JSON.stringify(makeRecord(1))}\n`;

  test.each([
    ['plain', {}, blanks(65)],
    ['compressed', { 'content-encoding': 'gzip' }, gzipSync(blanks(65))],
  ])('is not read of a %s page', async (_name, headers, body) => {
    const listing = await serveListing([]);
    listing.intercept = (_asked, response) => {
      response.writeHead(200, headers).end(body);
      return true;
    };
    const stderr = `${listing.url} answered more than 64 MiB for one page.\n`;
    expect(await runImport([listing.url])).toMatchObject({ code: 2, stderr });
    expect(listing.asked).toHaveLength(1);
  });

  test.each([
    ['document', 'large.json', Buffer.concat([Buffer.from('[\n'), blanks(65), Buffer.from('\n]')])],
    [
      'compressed document',
      'large.json.gz',
      gzipSync(`[\n${`${' '.repeat(999)}\n`.repeat(68_000)}]`),
    ],
    ['line', 'large.ndjson', Buffer.concat([blanks(65), Buffer.from(`\n${oneMore}`)])],
  ])(
    'is left out of a file with a large %s, and the rest is read',
    async (_name, name, content) => {
      const large = save(name, content);
      const rest = save('rest.ndjson', oneMore);
      const result = await runImport([large, rest]);
      expect(result.code).toBe(1);
      expect(result.stderr).toMatch(/large\.\S+: it is (?:longer|larger) than 64 MiB/);
      expect(result.stdout).toMatch(/1 created, 0 updated, [01] unchanged, 1 broken/);
    },
  );

  test('is left out of standard input that begins with a broken record', async () => {
    const lines = Buffer.from(toLines(newest(3)));
    const [broken, end] = [Buffer.from('{"id":\n'), Buffer.from('\n')];
    const input = Buffer.concat([broken, lines, blanks(65), end, lines]);
    const result = await runImport(['-'], input);
    expect(result.stdout).toContain('3 created, 0 updated, 3 unchanged, 2 broken');
    expect(result.stderr).toContain('-:5: it is longer than 64 MiB');
  });

  test('is not made of millions of objects', async () => {
    const source = save('objects.json', `[${'{},'.repeat(2_000_000)}{}]`);
    const result = await runImport([source]);
    expect(result.stderr).toContain(`${source}: it has more than 2000000 objects and lists`);
  });

  test('is one broken record when that is nested 200,000 deep', async () => {
    const deep = `{"id":2,"title":${'['.repeat(200_000)}${']'.repeat(200_000)}}`;
    const page = `{"next":null,"results":[${JSON.stringify(makeRecord(3))},${deep},${JSON.stringify(makeRecord(1))}]}`;
    const listing = await serveListing([]);
    listing.intercept = (_asked, response) => Boolean(response.end(page));
    for (const source of [listing.url, save('deep.json', page)]) {
      const result = await runImport([source]);
      expect(result.code).toBe(1);
      expect(result.stderr).toMatch(/, record 2: it is nested deeper than 16 levels\n$/);
      expect(result.stdout).toContain('3 records read');
    }
  });
});

describeOnce('--header', () => {
  const header = ['--header', 'Authorization: Token s3cret', '--header', 'x-shop: 7'];

  /** A listing that is shown only with both headers, and repeats what it was sent. */
  async function serveGuarded() {
    const listing = await serveListing(newest(12));
    listing.intercept = ({ headers }, response) => {
      if (headers.authorization === 'Token s3cret' && headers['x-shop'] === '7') return false;
      response.writeHead(401).end(`No: ${headers.authorization}, ${headers['x-shop']}.`);
      return true;
    };
    return listing;
  }

  test('is sent with every page that is asked for', async () => {
    const listing = await serveGuarded();
    expect((await runImport([listing.url])).code).toBe(2);
    expect(await runImport([...header, listing.url])).toMatchObject({ code: 0, stderr: '' });
  });

  test('is not sent to another host that a redirect leads to, and no error repeats it', async () => {
    const elsewhere = await serveGuarded();
    const listing = await serveListing([]);
    listing.intercept = () => [302, { location: elsewhere.url }, ''];
    const redirected = await runImport([...header, listing.url]);
    expect(redirected.stderr).toBe(`${listing.url} answered 401: No: undefined, undefined..\n`);

    const wrong = await runImport(['--header', 'Authorization: Token wr0ng', elsewhere.url]);
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toContain('answered 401: No: …');
    expect(wrong.stderr).not.toContain('wr0ng');
  });

  test.each([
    ['s3cret', 'is not of the form "Name: value"'],
    [': s3cret', 'is not of the form "Name: value"'],
    ['X-Key: s3cret\r\nX-Other: 1', 'is not of the form "Name: value"'],
    ['X-Key: s3cretü', 'is not of the form "Name: value"'],
    ['Content-Length: 5', 'must not be Content-Length'],
  ])('that is %j is refused without being repeated', async (line, sentence) => {
    const result = await runImport(['--header', line, 'http://127.0.0.1:1/']);
    expect(result.code).toBe(2);
    expect(result.stderr).toContain(`--header ${sentence}`);
    expect(result.stderr).not.toContain('s3cret');
  });

  test('is refused for files', async () => {
    const stderr = '--header needs a live listing as SOURCE.\n';
    expect(await runImport([...header, '-'])).toMatchObject({ code: 2, stderr });
  });
});

describeOnce('fields that are not kept', () => {
  test('are named once, with the number of records that have them', async () => {
    const records = [
      makeRecord(1, { comments_count: 3, user: makeUser(1, { badge: 'x' }) }),
      makeRecord(2, { comments_count: 0, 'odd\nname': 1 }),
      makeRecord(3),
      makeRecord(4, { likes: -1, comments_count: 3 }),
    ];
    const { stdout } = await importLines(...records);
    expect(stdout).toContain(
      '\nFields that are not kept: comments_count (2 records), user.badge (1 record), "odd\\nname" (1 record).\n',
    );
    const many = Array.from({ length: 30 }, (_, index) => [`field_${index}`, 1]);
    const other = await importLines(makeRecord(1, Object.fromEntries(many)));
    expect(other.stdout).toContain('field_19 (1 record) and 10 more.\n');
    expect(other.stdout).not.toContain('field_20');
  });
});

describeOnce('a dry run', () => {
  test('says what an import would do, names the first records, and writes nothing', async () => {
    await runImport([save('old.ndjson', toLines(newest(2_005)))]);
    const likes = 'INSERT INTO outfit_likes (outfit_id, user_id) VALUES (7, 1), (7, 2)';
    await query(`${likes}; UPDATE outfit_like_counts SET likes = likes + 2 WHERE id = 7`);
    const content = () =>
      query('SELECT (SELECT sum(xmin::text::bigint) FROM outfits), max(id) FROM outfits');
    const before = await content();

    const [changed, renamed] = [makeRecord(5, { likes: 900, title: 'Other' }), makeUser(1)];
    const records = [
      ...[3_004, 3_003, 3_002, 3_001].map((id) => makeRecord(id)),
      ...newest(1_990).map((record) => (record.id === 5 ? changed : record)),
      makeRecord(8, { likes: -1 }),
      makeRecord(3_004),
      makeRecord(5_000, { user: { ...renamed, username: 'új_név' }, extra: 1 }),
    ];
    const source = save('new.ndjson', toLines(records));
    const result = await runImport([source, '--dry-run']);
    expect(result.code).toBe(1);
    expect(result.stderr).toMatch(/^Outfit 8 \(.*\): likes is -1, but must be [^\n]+\n$/);
    expect(result.stdout).toMatch(
      /^1,997 records read in [^\n]+, nothing is saved: 5 would be created \(3004, 3003, 3002 and 2 more\), [^\n]+, 15 removed by --replace \(1991, 1992, 1993 and 12 more\), 1 broken\.\nFields that are not kept: extra \(1 record\)\.\n$/,
    );
    expect(result.stdout).toContain('198 updated (990: user.username, 985: user.username, ');
    expect(await content()).toEqual(before);

    const whole = await runImport([save('old.ndjson', toLines(newest(2_005))), '--dry-run']);
    expect(whole).toMatchObject({ code: 0, stderr: '' });
    expect(whole.stdout).toContain(
      '0 would be created, 0 updated, 2,005 unchanged (2005, 2004, 2003 and 2,002 more), 0 removed by --replace, 0 broken.\n',
    );
    const emptied = await runImport([source, '--dry-run', '--replace']);
    expect(emptied.stdout).toContain('199 updated');
  });

  test('keeps none waiting: it takes no lock, and no transaction outlasts a batch', async () => {
    const listing = await serveListing(newest(15));
    await runImport([listing.url]);
    let open: unknown;
    listing.intercept = ({ page }, response) => {
      if (page !== 2) return false;
      const ofOthers = `datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()
        AND backend_type = 'client backend'`;
      void query(`SELECT count(*)::int FROM pg_stat_activity WHERE ${ofOthers}`).then((rows) => {
        open = rows[0]?.count;
        response.writeHead(403).end();
      });
      return true;
    };
    expect(await runImport([listing.url, '--dry-run'])).toMatchObject({ code: 2 });
    expect(open).toBe(0);
  });

  test.each(['--follow=5s', '--prune', '--restart'])('goes without %s', async (option) => {
    const result = await runImport(['http://127.0.0.1:1/', '--dry-run', option]);
    expect(result).toMatchObject({ code: 2 });
    expect(result.stderr).toContain("'--dry-run' cannot be used with option '--");
  });
});

describeOnce('a mistake ends in one sentence and exit code 2', () => {
  let unmigrated: TestDatabase;
  beforeAll(async () => {
    unmigrated = await makeEmptyDatabase('PostgreSQL');
  });
  afterAll(() => unmigrated.remove());

  test.each([
    [[], {}, "Missing required argument 'SOURCE'"],
    [['-', '--nope'], {}, "Unknown option '--nope'"],
    [['-', '--max-removed', 'x'], {}, '--max-removed is "x"'],
    [['-'], { PAGE_SIZE: '0' }, 'PAGE_SIZE is "0"'],
    [['-'], { DATABASE_URL: 'postgresql://127.0.0.1:1/x' }, 'cannot be reached'],
    [['-'], {}, 'npm run migrate'],
  ])('%j %j', async (args, environment, sentence) => {
    const settings = { ...unmigrated.environment, ...environment };
    const result = await callCommand(importCommand, args, settings, toLines([makeRecord(1)]));
    expect(result.code).toBe(2);
    expect(result.stderr).toContain(sentence);
    expect(result.stderr.trim().split('\n')).toHaveLength(1);
  });
});
