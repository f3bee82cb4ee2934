// What GraphQL answers, held against the REST records of the same database.

import { readFileSync } from 'node:fs';
import {
  buildClientSchema,
  buildSchema,
  getIntrospectionQuery,
  type IntrospectionQuery,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
  isSpecifiedScalarType,
  lexicographicSortSchema,
  printSchema,
} from 'graphql';
import { describe, expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { buildApp } from '../../src/app.ts';
import { openDatabase } from '../../src/database/database.ts';
import {
  BrowsePageDocument,
  FindOutfitDocument,
  FindUserDocument,
} from '../../src/generated/test-client.ts';
import { schema } from '../../src/graphql/schema.ts';
import { databaseKinds, openGateway, useGateway } from '../support/gateway.ts';

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

describe.each(databaseKinds)('GraphQL on %s', (kind) => {
  const gateway = useGateway(kind, rows);

  const restRecords = async (query: string): Promise<RestRecord[]> =>
    (await gateway.get(`/api/outfits/${query}`)).json().results;
  const failure = async (query: string) => {
    const { data, errors = [] } = await gateway.post(query);
    expect(errors).toHaveLength(1);
    return { data, code: errors[0]?.extensions?.code, message: errors[0]?.message };
  };

  test('a page has every value of the REST page', async () => {
    for (const page of [1, 2, 3]) {
      const { outfits } = await gateway.query(BrowsePageDocument, { page });
      expect(outfits).toEqual({
        count: 45,
        page,
        pageCount: 3,
        nextPage: page === 3 ? null : page + 1,
        previousPage: page === 1 ? null : page - 1,
        results: camelCase(await restRecords(`?page=${page}`)),
      });
      expect(outfits?.results).toHaveLength(page === 3 ? 5 : 20);
    }
  });

  test('last is the last page, whichever that is', async () => {
    const { outfits } = await gateway.query(BrowsePageDocument, { last: true });
    expect(outfits?.page).toBe(3);
    expect(outfits?.results).toEqual(camelCase(await restRecords('?page=last')));
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

  test('a user without outfits has one empty page', async () => {
    await gateway.database.pool.query(`INSERT INTO users (id, username) VALUES (900, 'newcomer')`);
    const { user } = await gateway.query(FindUserDocument, { username: 'newcomer' });
    expect(user).toEqual({
      id: 900,
      avatarKey: '',
      username: 'newcomer',
      firstName: '',
      lastName: '',
      outfits: {
        count: 0,
        page: 1,
        pageCount: 1,
        nextPage: null,
        previousPage: null,
        results: [],
      },
    });
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

  test('a user needs exactly one of id and username', async () => {
    for (const args of ['', '(id: 1, username: "a")', '(id: null)', '(id: null, username: null)']) {
      expect(await failure(`{ user${args} { id: databaseId } }`)).toEqual({
        data: { user: null },
        code: 'BAD_USER_INPUT',
        message: 'Give exactly one of id, databaseId and username.',
      });
    }
  });

  test('a page past the end says where the end is', async () => {
    for (const page of [4, 2_147_483_647]) {
      expect(await failure(`{ outfits(page: ${page}) { count } }`)).toEqual({
        data: { outfits: null },
        code: 'PAGE_NOT_FOUND',
        message: `Page ${page} does not exist: the last page is 3.`,
      });
    }
    const mixed =
      '{ user(databaseId: 1) { databaseId outfits(page: 9) { count } } outfits { count } wrong: outfitConnection(first: -1) { totalCount } }';
    const { data, errors } = await gateway.post(mixed);
    // One wrong page leaves the rest of the screen.
    expect(data).toEqual({
      user: { databaseId: 1, outfits: null },
      outfits: { count: 45 },
      wrong: null,
    });
    expect(errors).toMatchObject([
      { path: ['wrong'], extensions: { code: 'BAD_USER_INPUT' } },
      { path: ['user', 'outfits'], extensions: { code: 'PAGE_NOT_FOUND' } },
    ]);
  });

  test('a page below 1, or page and last together, is bad input', async () => {
    for (const page of [0, -1, -2_147_483_648]) {
      expect(await failure(`{ outfits(page: ${page}) { count } }`)).toEqual({
        data: { outfits: null },
        code: 'BAD_USER_INPUT',
        message: `page must be 1 or more, but it is ${page}.`,
      });
    }
    expect(await failure('{ outfits(page: 1, last: true) { count } }')).toEqual({
      data: { outfits: null },
      code: 'BAD_USER_INPUT',
      message: 'Give either page or last, not both.',
    });
  });

  test('mistakes in the query itself are explained, not masked', async () => {
    const mistakes: [query: string, message: RegExp][] = [
      ['{ outfits(ordering: NOPE) { count } }', /"NOPE" does not exist in "OutfitOrdering"/],
      ['{ outfits(ordering: "id") { count } }', /Enum "OutfitOrdering" cannot represent/],
      ['{ outfits(page: 2147483648) { count } }', /Int cannot represent non 32-bit/],
      ['{ outfits { image_key } }', /Cannot query field "image_key"/],
      ['{ outfit { id: databaseId } }', /Give either id or databaseId/],
      ['{', /Syntax Error/],
    ];
    for (const [query, message] of mistakes) {
      expect((await failure(query)).message).toMatch(message);
    }
    const { errors } = await gateway.post(
      'query($o: OutfitOrdering) { outfits(ordering: $o) { count } }',
      {
        o: 'nope',
      },
    );
    expect(errors?.[0]?.message).toMatch(/"nope" does not exist in "OutfitOrdering"/);
  });

  test('several lists in one query do not disturb each other', async () => {
    const { data } = await gateway.post(`{
      a: outfits(ordering: ID_ASC) { results { id: databaseId } }
      b: outfits(ordering: ID_DESC, page: 3) { results { id: databaseId user { outfits(last: true) { page } } } }
      c: outfit(databaseId: ${rows[0]?.id}) { id: databaseId user { outfits { count results { id: databaseId } } } }
    }`);
    const ids = rows.map(({ id }) => id).toSorted((a, b) => a - b);
    const own = rows.filter(({ userId }) => userId === rows[0]?.userId);
    expect(data).toMatchObject({
      a: { results: ids.slice(0, 20).map((id) => ({ id })) },
      b: {
        results: ids
          .slice(0, 5)
          .toReversed()
          .map((id) => ({ id })),
      },
      c: { id: rows[0]?.id, user: { outfits: { count: own.length } } },
    });
  });
});

test('when the database is away, clients learn nothing about it', async () => {
  const gateway = await openGateway('PostgreSQL');
  const away = await openDatabase({
    databaseUrl: 'postgresql://shop:s3cret@127.0.0.1:1/shop',
    databasePoolMax: 2,
    dataDir: '',
  });
  const app = await buildApp(gateway.config, away);
  try {
    for (const field of [
      'outfits { count }',
      'outfit(databaseId: 1) { id: databaseId }',
      'user(username: "a") { id: databaseId }',
    ]) {
      const response = await app.inject({
        method: 'POST',
        url: '/graphql',
        payload: { query: `{ ${field} }` },
      });
      expect(response.statusCode).toBe(503);
      expect(response.headers['retry-after']).toBe('1');
      expect(response.json()).toEqual({
        errors: [
          {
            message: 'Service temporarily unavailable, try again later.',
            extensions: { code: 'SERVICE_UNAVAILABLE' },
          },
        ],
      });
      expect(response.body).not.toMatch(/prisma|connect|127\.0\.0\.1|s3cret|\bat /i);
    }
    const rest = await app.inject('/api/outfits/');
    expect(rest.statusCode).toBe(503);
    expect(rest.body).toBe('{"detail":"Service temporarily unavailable, try again later."}');
    expect(rest.headers).toMatchObject({
      'retry-after': '1',
      allow: 'GET, POST, HEAD, OPTIONS',
      vary: 'Accept',
      'content-type': 'application/json',
    });
  } finally {
    await app.close();
    await away.close();
    await gateway.close();
  }
});

describe('the schema', () => {
  test('describes every type, field, argument, enum value and input field', () => {
    const undescribed: string[] = [];
    const check = (path: string, { description }: { description?: string | null | undefined }) => {
      if (!description?.trim()) undescribed.push(path);
    };
    for (const type of Object.values(schema.getTypeMap())) {
      if (type.name.startsWith('__') || isSpecifiedScalarType(type)) continue;
      check(type.name, type);
      if (isEnumType(type)) {
        for (const value of type.getValues()) check(`${type.name}.${value.name}`, value);
      } else if (isObjectType(type) || isInterfaceType(type)) {
        for (const field of Object.values(type.getFields())) {
          check(`${type.name}.${field.name}`, field);
          for (const arg of field.args) check(`${type.name}.${field.name}(${arg.name})`, arg);
        }
      } else if (isInputObjectType(type)) {
        for (const field of Object.values(type.getFields()))
          check(`${type.name}.${field.name}`, field);
      }
    }
    expect(undescribed).toEqual([]);
  });

  test('is printed in the committed schema.graphql', () => {
    const file = new URL('../../src/graphql/schema.graphql', import.meta.url);
    const committed = buildSchema(readFileSync(file, 'utf8'));
    expect(printSchema(committed)).toBe(printSchema(lexicographicSortSchema(schema)));
  });

  test('can be read by introspection', async () => {
    const gateway = await openGateway('PostgreSQL');
    try {
      const options = { schemaDescription: true, specifiedByUrl: true };
      const { data } = await gateway.post(getIntrospectionQuery(options));
      const read = buildClientSchema(data as IntrospectionQuery);
      expect(printSchema(lexicographicSortSchema(read))).toBe(
        printSchema(lexicographicSortSchema(schema)),
      );
    } finally {
      await gateway.close();
    }
  });
});
