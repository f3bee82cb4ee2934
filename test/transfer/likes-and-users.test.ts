// Likes and users beside the outfits: `import --likes` and `--users`, over the command line and GraphQL.
import { readFileSync } from 'node:fs';
import type { FastifyInstance } from 'fastify';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { buildApp } from '../../src/app.ts';
import type { Command } from '../../src/commands/command.ts';
import * as countsCommand from '../../src/commands/counts.ts';
import * as exportCommand from '../../src/commands/export.ts';
import * as forgetCommand from '../../src/commands/forget.ts';
import * as importCommand from '../../src/commands/import.ts';
import { readConfig } from '../../src/config/config.ts';
import { openDatabase } from '../../src/database/database.ts';
import { callCommand, startCommand } from '../support/cli/commands.ts';
import { useFolder } from '../support/cli/folder.ts';
import { withDatabase } from '../support/databases/connections.ts';
import type { TestDatabase } from '../support/databases/test-database.ts';
import { makeMigratedDatabase, openForTest, outfitId } from '../support/gateway.ts';
import { postGraphql } from '../support/http/graphql.ts';
import { secret, signIn } from '../support/http/tokens.ts';
import { makeRecord, makeUser } from '../support/legacy/legacy-service.ts';
import { serveListing, toLines } from '../support/legacy/listing.ts';

const folder = useFolder();
const { save } = folder;
let testDatabase: TestDatabase;
let environment: Record<string, string>;

const call = (command: Command, args: readonly string[]) => callCommand(command, args, environment);
const runImport = (...args: string[]) => call(importCommand, args);

let gateway: Promise<{ app: FastifyInstance; close(): Promise<void> }> | undefined;

async function openGateway() {
  const config = readConfig({ ...environment, AUTH_JWT_SECRET: secret });
  const database = await openDatabase(config, config.requestTimeout);
  const app = await buildApp(config, database);
  return { app, close: () => app.close().then(() => database.close()) };
}

/** What GraphQL answers to a user, by one gateway for the whole test. */
async function ask(userId: number, query: string) {
  gateway ??= openGateway();
  const { app } = await gateway;
  const headers = await signIn(userId);
  const { data, errors } = (await postGraphql(app, { query }, headers)).json();
  expect(errors).toBeUndefined();
  return data as Record<string, unknown>;
}

const likesOf = async (userId: number, id: number) =>
  (await ask(userId, `{ outfit(id: "${outfitId(id)}") { likes viewerHasLiked } }`))['outfit'];
const like = (userId: number, id: number, name = 'likeOutfit') =>
  ask(userId, `mutation { ${name}(id: "${outfitId(id)}") { outfit { likes } } }`);

/** Three outfits with one, two and three likes, before each test; what is counted is right after it. */
describe('on PostgreSQL', () => {
  beforeEach(async () => {
    testDatabase = await makeMigratedDatabase('PostgreSQL');
    environment = { DATA_DIR: folder.at('data'), ...testDatabase.environment };
    const records = [1, 2, 3].map((id) => makeRecord(id, { likes: id, private: false }));
    const { code } = await runImport(save('outfits.ndjson', toLines(records)));
    expect(code).toBe(0);
  });
  afterEach(async () => {
    await (await gateway)?.close();
    gateway = undefined;
    const checked = await call(countsCommand, ['check']);
    await testDatabase.remove();
    expect(checked).toMatchObject({ code: 0 });
  });

  test('likes are rows that the numbers include, once, however often they are imported', async () => {
    const users = save('users.ndjson', toLines([8, 9].map((id) => makeUser(id))));
    expect((await runImport('--users', users)).stdout).toMatch(
      /^2 users read in .+: 2 created, 0 updated, 0 unchanged, 0 broken\.\n$/,
    );
    const rows = [
      { outfit: 1, user: 8 },
      { outfit_id: 2, user_id: 8, created: '2024-01-01' },
      { outfit: { id: 2 }, user: makeUser(9) },
      { outfit: 3, user: 8 },
      { outfit: 3, user: 8 },
    ];
    const likes = save('likes.ndjson', toLines(rows));
    const dry = await runImport('--likes', likes, '--dry-run');
    expect(dry.stdout).toMatch(
      /nothing is saved: 4 created, 0 updated, 1 unchanged, 0 broken\.\n$/,
    );
    expect(await likesOf(8, 1)).toEqual({ likes: 1, viewerHasLiked: false });
    const first = await runImport('--likes', likes);
    expect(first.code).toBe(1);
    expect(first.stdout).toMatch(
      /^5 likes read .+: 4 created, 0 updated, 1 unchanged, 0 broken\.\n1 outfit \(3\): the number of likes is 2 above their rows; who gave these likes did not come\.\n$/,
    );
    const again = await runImport('--likes', likes);
    expect(again.stdout).toContain('0 created, 0 updated, 5 unchanged');
    expect(await likesOf(8, 3)).toEqual({ likes: 3, viewerHasLiked: true });
    await like(8, 3);
    expect(await likesOf(8, 3)).toEqual({ likes: 3, viewerHasLiked: true });
    await like(8, 3, 'unlikeOutfit');
    expect(await likesOf(8, 3)).toEqual({ likes: 2, viewerHasLiked: false });
    const outfits = await runImport(folder.at('outfits.ndjson'));
    expect(outfits.stdout).toContain('0 created, 1 updated, 2 unchanged');
    expect(await likesOf(9, 2)).toEqual({ likes: 2, viewerHasLiked: true });
  });

  test('a dry run counts a record once that comes again after a thousand others', async () => {
    const often = <Row>(row: Row) => toLines(Array.from({ length: 1_500 }, () => row));
    const summary = /nothing is saved: 1 created, 0 updated, 1,499 unchanged, 0 broken\.\n/;
    const users = save('users.ndjson', often(makeUser(8)));
    expect((await runImport('--users', users, '--dry-run')).stdout).toMatch(summary);
    await runImport('--users', users);
    const likes = save('likes.ndjson', often({ outfit: 1, user: 8 }));
    expect((await runImport('--likes', likes, '--dry-run')).stdout).toMatch(summary);
  });

  test('exits with 1 where numbers of likes and rows disagree, and names --replace, which mends it', async () => {
    await runImport('--users', save('users.ndjson', toLines([8, 9, 10].map((id) => makeUser(id)))));
    const rows = [8, 9, 10].flatMap((user, index) =>
      [1, 2, 3].slice(index).map((outfit) => ({ outfit, user })),
    );
    const all = await runImport('--likes', save('likes.ndjson', toLines(rows)));
    expect(all).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('agree with their rows'),
    });
    // Somebody has taken back a like there.
    const fewer = makeRecord(3, { likes: 2, private: false });
    await runImport(save('outfits.ndjson', toLines([fewer])));
    const left = save('likes.ndjson', toLines(rows.slice(0, -1)));
    expect(await runImport('--likes', left)).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(
        /\n1 outfit \(3\): the number of likes is 1 below their rows; .+ --replace\.\n$/,
      ),
    });
    const replaced = await runImport('--likes', left, '--replace');
    expect(replaced).toMatchObject({ code: 0, stdout: expect.stringContaining('agree') });
    expect(await likesOf(10, 3)).toEqual({ likes: 2, viewerHasLiked: false });
  });

  test('a like that was given here and there counts once, in both orders of the imports', async () => {
    await runImport('--users', save('users.ndjson', toLines([makeUser(8)])));
    await like(8, 1);
    await like(8, 2);
    expect(await likesOf(8, 1)).toEqual({ likes: 2, viewerHasLiked: true });
    const likes = save('likes.ndjson', toLines([{ outfit: 1, user: 8 }]));
    const outfits = save('again.ndjson', toLines([makeRecord(1, { likes: 2, private: false })]));
    await runImport(outfits);
    expect(await likesOf(8, 1)).toEqual({ likes: 3, viewerHasLiked: true });
    const imported = await runImport('--likes', likes);
    expect(imported.stdout).toContain('0 created, 1 updated, 0 unchanged');
    expect(await likesOf(8, 1)).toEqual({ likes: 2, viewerHasLiked: true });
    expect((await runImport(outfits)).stdout).toContain('1 unchanged');
    expect(await likesOf(8, 2)).toEqual({ likes: 3, viewerHasLiked: true });
    const none = save('none.ndjson', toLines([{ outfit: 2, user: 8 }]));
    const replaced = await runImport('--likes', none, '--replace');
    expect(replaced.stdout).toContain(
      '0 created, 1 updated, 0 unchanged, 0 broken.\nRemoved, because the source does not have them: 1 likes.\n',
    );
    for (const [content, reason] of [
      ['', 'the source is empty'],
      ['{"outfit": 2, "us', 'some records were broken'],
    ] as const) {
      const refused = await runImport('--likes', save('none.ndjson', content), '--replace');
      expect(refused).toMatchObject({ code: 1, stdout: expect.stringContaining(reason) });
    }
    expect(await likesOf(8, 1)).toEqual({ likes: 2, viewerHasLiked: false });
    expect(await likesOf(8, 2)).toEqual({ likes: 2, viewerHasLiked: true });
  });

  test('what cannot be saved is named, and the rest is saved', async () => {
    const rows = [
      { outfit: 1, user: 2 },
      { outfit: 99, user: 2 },
      { outfit: 1, user: 99 },
      ...[{ outfit: '1', user: 2 }, { outfit: 1 }, 'x', null, { outfit: 2 ** 40, user: 2 }],
    ];
    const likes = save('likes.ndjson', `{"user": 1\n\n${toLines(rows)}[[[[[[1]]]]]]\n`);
    const { code, stdout, stderr } = await runImport('--likes', likes);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^10 likes read .+: 1 created, 0 updated, 0 unchanged, 9 broken\.\n/);
    expect(stdout).toContain('\nUsers without outfits come with --users: import them first.\n');
    for (const line of [
      `${likes}:4): there is no outfit 99`,
      `${likes}:5): there is no user 99`,
      `${likes}:6): outfit is "1", but must be a whole number`,
      `${likes}:7): user is missing, but must be a whole number`,
      `${likes}:8): the record is "x", but must be an object with outfit and user`,
    ]) {
      expect(stderr).toContain(`Like (${line}`);
    }
  });

  test('likes of a live listing come to its end, although they have no ids', async () => {
    const users = Array.from({ length: 30 }, (_, index) => index + 20);
    await runImport('--users', save('users.ndjson', toLines(users.map((id) => makeUser(id)))));
    const listing = await serveListing(users.map((user) => ({ outfit: 1, user })) as never);
    listing.pageSize = 1;
    expect(await runImport('--likes', listing.url)).toMatchObject({
      stdout: expect.stringMatching(/^30 likes read .+: 30 created, /),
      stderr: '',
    });
  });

  // Without an end of the request, the page counts as failed after 30 s.
  test('a live listing is not asked any more once what came cannot be saved', {
    timeout: 20_000,
  }, async () => {
    const listing = await serveListing(
      Array.from({ length: 2_000 }, (_, index) => makeUser(index + 20)) as never,
    );
    listing.pageSize = 1_000;
    const left = new Promise<void>((resolve) => {
      // It is asked for while the first one is saved, and never comes.
      listing.intercept = ({ page }, response) =>
        page === 2 && Boolean(response.on('close', resolve));
    });
    await withDatabase(environment, ({ pool }) =>
      pool.query(`ALTER TABLE users ADD CHECK (id < 20)`),
    );
    expect(await runImport('--users', listing.url)).toMatchObject({ code: 2 });
    await left;
  });

  test('names and avatars of users follow a listing of users, round by round', async () => {
    const listing = await serveListing([makeUser(2), makeUser(9)] as never);
    const args = ['--users', listing.url, '--follow', '1s'];
    const { stdout, ended, stop } = startCommand(importCommand, args, environment);
    onTestFinished(stop);
    await stdout.until(/1 created, 0 updated, 1 unchanged/);
    listing.records = [makeUser(2, { first_name: 'Anna' }), makeUser(9)] as never;
    await stdout.until(/0 created, 1 updated, 1 unchanged/);
    stop();
    expect(await ended).toBe(130);
    const { user } = await ask(2, '{ user(databaseId: 2) { firstName } }');
    expect(user).toEqual({ firstName: 'Anna' });
  });

  test('an export carries likes and users, and importing it gives the same export', async () => {
    const users = save('users.ndjson', toLines([2, 3, 4, 8].map((id) => makeUser(id))));
    const rows = [
      [1, 8],
      [2, 3],
      [2, 8],
    ].map(([outfit, user]) => ({ outfit, user }));
    const likes = save('likes.ndjson', toLines(rows));
    await runImport('--users', users);
    await runImport('--likes', likes);
    for (const [option, file] of [
      ['--users', users],
      ['--likes', likes],
    ] as const) {
      const { code, stdout } = await call(exportCommand, ['-', option]);
      expect([code, stdout]).toEqual([0, readFileSync(file, 'utf8')]);
    }
  });

  test('a person is erased with everything, and the counts stay exact', async () => {
    await runImport('--users', save('users.ndjson', toLines([makeUser(8)])));
    await runImport('--likes', save('likes.ndjson', toLines([{ outfit: 3, user: 8 }])));
    await like(8, 1);
    await like(8, 2);
    await like(3, 2);
    const asked = await call(forgetCommand, ['--user', '8']);
    const found = 'User 8 (ann_8): 0 outfits, 3 likes, 0 stored answers, 0 rate limits found';
    const stdout = `${found}; nothing is erased without --yes.\n`;
    expect(asked).toMatchObject({ code: 1, stdout });
    expect(await likesOf(8, 1)).toEqual({ likes: 2, viewerHasLiked: true });
    const erased = await call(forgetCommand, ['--user', '8', '--yes']);
    expect(erased).toMatchObject({ code: 0, stdout: expect.stringMatching(/ erased\.\n$/) });
    expect(await likesOf(8, 1)).toEqual({ likes: 1, viewerHasLiked: false });
    expect(await likesOf(3, 2)).toEqual({ likes: 3, viewerHasLiked: true });
    expect(await likesOf(8, 3)).toEqual({ likes: 2, viewerHasLiked: false });
    expect(await ask(8, '{ user(databaseId: 8) { username } }')).toEqual({ user: null });
    await call(forgetCommand, ['--user', '3', '--yes']);
    expect(await ask(4, `{ outfits { count } }`)).toEqual({ outfits: { count: 2 } });
    const gone = await call(forgetCommand, ['--user', '3', '--yes']);
    expect(gone.stdout).toBe('There is nothing of user 3.\n');
  });
});

test('a person is erased from memory and from every table while a gateway serves', async () => {
  const gateway = await openForTest('PostgreSQL', [...generateOutfits({ outfits: 5, users: 2 })], {
    AUTH_JWT_SECRET: secret,
    RATE_LIMIT: '1000/hour',
  });
  const { app, config, database } = gateway;
  const { pool } = database;
  await pool.query(
    `INSERT INTO users (id, username, first_name, last_name, avatar_key) VALUES (77, 'zelda', '', '', '')`,
  );
  const headers = { ...(await signIn(77)), 'idempotency-key': 'once' };
  const payload = { image_key: 'outfits/2b1d3c4e-0000-4000-8000-000000000077.png' };
  const create = () => app.inject({ method: 'POST', url: '/api/outfits/', headers, payload });
  const { id } = (await create()).json();
  expect((await create()).json().id).toBe(id);
  const like = `mutation { likeOutfit(id: "${outfitId(1)}") { outfit { likes } } }`;
  await gateway.post(like, {}, headers);
  const query = `{ user(databaseId: 77) { username } outfit(databaseId: ${id}) { imageKey }
    liked: outfit(databaseId: 1) { likes } outfits { count results { user { username } } } }`;
  const read = async () => {
    const rest = await gateway.get('/api/outfits/');
    return { rest: rest.body, data: (await gateway.post(query)).data as Record<string, object> };
  };
  await read();
  const before = await read();
  expect(before.rest).toContain('zelda');

  const erased = await callCommand(forgetCommand, ['--user', '77', '--yes'], {
    DATABASE_URL: config.databaseUrl ?? '',
  });
  expect(erased.stdout).toBe(
    'User 77 (zelda): 1 outfits, 1 likes, 1 stored answers, 1 rate limits erased.\n',
  );
  const after = await read();
  expect(JSON.stringify(after)).not.toMatch(/zelda|000000000077/);
  const { likes } = before.data['liked'] as { likes: number };
  const expected = { user: null, outfit: null, liked: { likes: likes - 1 }, outfits: { count: 5 } };
  expect(after.data).toMatchObject(expected);
  const { rows: tables } = await pool.query<{ name: string }>(
    `SELECT quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = 'public'`,
  );
  expect(tables.length).toBeGreaterThan(8);
  for (const { name } of tables) {
    const { rows } = await pool.query(`SELECT to_jsonb(t) AS row FROM ${name} t`);
    for (const { row } of rows) {
      // The log of changes has numbers only, until later writes prune it.
      expect(row.user_id, name).not.toBe(77);
      expect(JSON.stringify(row), name).not.toMatch(/zelda|000000000077|user 77/);
    }
  }
  // The token still holds, and the key is free again.
  expect((await create()).statusCode).toBe(401);
});
