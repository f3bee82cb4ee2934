// What GraphQL answers, held against the REST records of the same database.
import { parse, print, printSchema, visit } from 'graphql';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { buildApp } from '../../src/app.ts';
import { readConfig } from '../../src/config/config.ts';
import { openDatabase } from '../../src/database/database.ts';
import {
  BrowsePageDocument,
  FindOutfitDocument,
  FindUserDocument,
} from '../../src/generated/test-client.ts';
import { schema } from '../../src/graphql/schema.ts';
import { useGateway } from '../support/gateway.ts';

const rows = [...generateOutfits({ outfits: 45, users: 3 })];

/** A REST value under GraphQL's own names. */
function camelCase(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(camelCase);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name.replace(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase()),
      camelCase(inner),
    ]),
  );
}

interface RestRecord {
  readonly id: number;
  readonly user: { readonly id: number; readonly username: string };
}

describe('GraphQL', () => {
  const gateway = useGateway('PostgreSQL', rows);

  const restRecords = async (query: string): Promise<RestRecord[]> =>
    (await gateway.get(`/api/outfits/${query}`)).json().results;

  test('a page has every value of the REST page, and last is the last one', async () => {
    for (const variables of [{ page: 1 }, { page: 2 }, { page: 3 }, { last: true }]) {
      const { outfits } = await gateway.query(BrowsePageDocument, variables);
      const { page = 3 } = variables;
      expect(outfits).toEqual({
        count: 45,
        page,
        pageCount: 3,
        nextPage: page === 3 ? null : page + 1,
        previousPage: page === 1 ? null : page - 1,
        results: camelCase(await restRecords(`?page=${variables.page ?? 'last'}`)),
      });
      expect(outfits?.results).toHaveLength(page === 3 ? 5 : 20);
    }
  });

  test('an outfit found by id has every value of its REST record', async () => {
    for (const record of await restRecords('?ordering=id&page=2')) {
      const { outfit } = await gateway.query(FindOutfitDocument, { id: record.id });
      expect(outfit).toEqual(camelCase(record));
    }
  });

  test('a user is found by id and by username, with all own outfits page by page', async () => {
    const [record] = await restRecords('');
    const { id, username } = record?.user ?? { id: 0, username: '' };
    const own = rows.filter(({ userId }) => userId === id).map((row) => row.id);
    const sorted = own.toSorted((a, b) => b - a);

    const byId = await gateway.query(FindUserDocument, { id, ordering: 'ID_DESC' });
    const byName = await gateway.query(FindUserDocument, { username, ordering: 'ID_DESC' });
    expect(byName).toEqual(byId);
    const { outfits, ...values } = byId.user ?? expect.fail('no such user');
    expect(values).toEqual(camelCase(record?.user));
    expect(outfits).toMatchObject({ count: own.length, page: 1, previousPage: null });
    expect(outfits?.pageCount).toBe(Math.ceil(own.length / 20));
    expect(outfits?.results.map((outfit) => outfit.id)).toEqual(sorted.slice(0, 20));
    const found = await gateway.query(FindOutfitDocument, { id: sorted[0] ?? 0 });
    expect(outfits?.results[0]).toEqual(found.outfit);
  });

  test('an outfit and its user have what an app shows: links, hashtags, devices, likes', async () => {
    const { pool } = gateway.database;
    const [first, second] = rows.filter(({ userId }) => userId === rows[0]?.userId);
    await pool.query(
      `UPDATE outfits SET title = '#One #one ＃Zwei', description = E'a#drei\n##four.five #', creation_device = 'ios',
         modification_device = 'fridge' WHERE id = $1`,
      [first?.id],
    );
    const ask = () =>
      gateway.post(
        `query ($id: Int!) { outfit(databaseId: $id) { hashtags url creationDeviceType modificationDeviceType
          user { avatarUrl likesReceived } } }`,
        { id: first?.id },
      );
    const avatar = 'avatars/0f8fad5b-d9cb-469f-a165-70867728950e.png';
    const likes = rows
      .filter(({ userId }) => userId === first?.userId)
      .reduce((sum, row) => sum + row.likes, 0);
    const set = 'UPDATE users SET avatar_key = $2 WHERE id = $1';
    await pool.query(set, [first?.userId, '']);
    const outfit = {
      ...{ hashtags: ['One', 'Zwei', 'drei', 'four'], url: `/outfits/${first?.id}` },
      ...{ creationDeviceType: 'IOS', modificationDeviceType: null },
    };
    expect(await ask()).toEqual({
      data: { outfit: { ...outfit, user: { avatarUrl: null, likesReceived: likes } } },
    });
    await pool.query(set, [first?.userId, avatar]);
    await pool.query('UPDATE outfit_like_counts SET likes = likes + 5 WHERE id = $1', [second?.id]);
    const user = { avatarUrl: `https://media.example.com/${avatar}`, likesReceived: likes + 5 };
    expect(await ask()).toEqual({ data: { outfit: { ...outfit, user } } });
  });

  test('a hashtag of an outfit is not normalized whole: thousands of combining marks take quadratic time', async () => {
    const id = rows[2]?.id;
    const hashtag = `a${'\u0301\u0316'.repeat(4_990)}`;
    const set = 'UPDATE outfits SET description = $2 WHERE id = $1';
    await gateway.database.pool.query(set, [id, `#${hashtag} #${hashtag}`]);
    const normalized = vi.spyOn(String.prototype, 'normalize');
    onTestFinished(() => normalized.mockRestore());
    const query = 'query ($id: Int!) { outfit(databaseId: $id) { hashtags } }';
    expect(await gateway.post(query, { id })).toEqual({
      data: { outfit: { hashtags: [`á${'\u0316'.repeat(99)}`] } },
    });
    const lengths = normalized.mock.contexts.map((text) => String(text).length);
    expect(Math.max(...lengths)).toBeLessThanOrEqual(800);
  });

  test('a hashtag of an outfit is one that the filter finds it by', async () => {
    const id = rows[1]?.id;
    const description = `#Straße #ÉTÉ #日本 #a_b-c #ﬁn #İx &#39; #👗 #🇫🇷x #١٢ x＃y #é\u0301 #${'𝒜'.repeat(150)} #${'a\u0301'.repeat(60)} #${'\u03b1\u0313\u0300\u0345'.repeat(120)}`;
    await gateway.database.pool.query('UPDATE outfits SET description = $2 WHERE id = $1', [
      ...[id, description],
    ]);
    const { data } = await gateway.post(
      'query ($id: Int!) { outfit(databaseId: $id) { id hashtags } }',
      { id },
    );
    const { outfit } = data as { outfit: { id: string; hashtags: string[] } };
    expect(outfit.hashtags.length).toBeGreaterThan(8);
    for (const hashtag of outfit.hashtags) {
      const filter = { hashtags: [hashtag], ids: [outfit.id] };
      const found = await gateway.post(
        'query ($filter: OutfitFilter!) { outfits(filter: $filter) { count } }',
        { filter },
      );
      expect([hashtag, found]).toEqual([hashtag, { data: { outfits: { count: 1 } } }]);
    }
  });

  test('of several users with one name the one with the lowest id is found', async () => {
    await gateway.database.pool.query(
      `INSERT INTO users (id, username) VALUES (912, 'twin'), (911, 'twin'), (913, 'twin')`,
    );
    const { user } = await gateway.query(FindUserDocument, { username: 'twin' });
    expect(user?.id).toBe(911);
  });

  test('what does not exist is null, without an error', async () => {
    for (const id of [999_999, 0, -1, 2_147_483_647]) {
      expect(await gateway.query(FindOutfitDocument, { id })).toEqual({ outfit: null });
      expect(await gateway.query(FindUserDocument, { id })).toEqual({ user: null });
    }
    for (const username of ['nobody', '', '%', 'a\0b', '\ud800', "'; --"]) {
      expect(await gateway.query(FindUserDocument, { username })).toEqual({ user: null });
    }
  });

  const oneOfThree = 'Give exactly one of id, databaseId and username.';
  const pastTheEnd = 'does not exist: the last page is 3.';
  test.each<[query: string, message: string, code?: string]>([
    ['{ outfit { id } }', 'Give exactly one of id and databaseId.'],
    ['{ user { id } }', oneOfThree],
    ['{ user(databaseId: 1, username: "a") { id } }', oneOfThree],
    ['{ user(id: null, username: null) { id } }', oneOfThree],
    ['{ outfits(page: 0) { count } }', 'page must be 1 or more, but it is 0.'],
    ['{ outfits(page: -2147483648) { count } }', 'page must be 1 or more, but it is -2147483648.'],
    ['{ outfits(page: 1, last: true) { count } }', 'Give either page or last, not both.'],
    ['{ outfits(page: 4) { count } }', `Page 4 ${pastTheEnd}`, 'PAGE_NOT_FOUND'],
    ['{ outfits(page: 2147483647) { count } }', `Page 2147483647 ${pastTheEnd}`, 'PAGE_NOT_FOUND'],
    ['{ outfits(pageSize: 0) { count } }', 'pageSize must be from 1 to 100, but it is 0.'],
    ['{ outfits(pageSize: 101) { count } }', 'pageSize must be from 1 to 100, but it is 101.'],
    ['{ outfits(offset: -1) { count } }', 'offset must be from 0 to 2147483646, but it is -1.'],
    ['{ outfits(offset: 0, page: 1) { count } }', 'Give either offset or a page, not both.'],
    ['{ outfits(offset: 0, last: true) { count } }', 'Give either offset or a page, not both.'],
  ])(
    'of what is wrong with %s, the message is %s',
    async (query, message, code = 'BAD_USER_INPUT') => {
      const { data, errors } = await gateway.post(query);
      expect(Object.values(data as object)).toEqual([null]);
      expect(errors).toMatchObject([{ message, extensions: { code } }]);
    },
  );
});

test('when the database is away, clients learn nothing about it', async () => {
  const databaseUrl = 'postgresql://shop:s3cret@127.0.0.1:1/shop';
  const away = await openDatabase({ databaseUrl, databasePoolMax: 2, dataDir: '' });
  const app = await buildApp(readConfig({ DATABASE_URL: databaseUrl }), away);
  onTestFinished(async () => {
    await app.close();
    await away.close();
  });
  const message = 'Service temporarily unavailable, try again later.';
  const ask = async (url: string) => {
    const { statusCode, headers, body } = await app.inject(url);
    expect([statusCode, headers['retry-after']]).toEqual([503, '1']);
    return { headers, body };
  };
  for (const field of ['outfits{count}', 'outfit(databaseId:1){id}', 'user(username:"a"){id}']) {
    const { body } = await ask(`/graphql?${new URLSearchParams({ query: `{${field}}` })}`);
    const extensions = { code: 'SERVICE_UNAVAILABLE' };
    expect(JSON.parse(body)).toEqual({ errors: [{ message, extensions }] });
  }
  const { headers, body } = await ask('/api/outfits/');
  expect(body).toBe(JSON.stringify({ detail: message }));
  expect(headers).toMatchObject({ allow: 'GET, POST, HEAD, OPTIONS', vary: 'Accept' });
  expect(headers['content-type']).toBe('application/json');
});

test('the schema describes every type, field, argument, enum value and input field', () => {
  const undescribed: string[] = [];
  visit(parse(printSchema(schema)), {
    enter(node) {
      const isDescribed = 'description' in node && Boolean(node.description?.value.trim());
      const isNamed = node.kind.endsWith('Definition') && 'name' in node;
      if (isNamed && !isDescribed) undescribed.push(print(node));
    },
  });
  expect(undescribed).toEqual([]);
});
