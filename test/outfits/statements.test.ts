// What is sent to the database for a list: how many statements, and which.
import type pg from 'pg';
import { describe, expect, test, vi } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { sentBy } from '../support/databases/statements.ts';
import { openForTest, useGateway } from '../support/gateway.ts';
import { secret, signIn } from '../support/http/tokens.ts';
import { orderings, sortIds } from '../support/models/orderings.ts';

const outfits = [...generateOutfits({ outfits: 1000, users: 60 })];

describe('on PostgreSQL, a list', () => {
  test('a list is read as ever after a statement that failed', async () => {
    const gateway = await openForTest('PostgreSQL', [], { CACHE_MAX_SIZE: '0' });
    for (let round = 0; round < 5; round++) {
      await expect(gateway.database.read('SELECT 1 / $1::int', [0])).rejects.toThrow('zero');
      expect((await gateway.get('/api/outfits/')).statusCode).toBe(200);
    }
  });

  describe.each([1, 100])('of %i per page', (pageSize) => {
    const gateway = useGateway('PostgreSQL', outfits, {
      CACHE_MAX_SIZE: '0',
      PAGE_SIZE: String(pageSize),
      GRAPHQL_MAX_COST: '1000000',
    });

    const outfit = '{ id: databaseId title likes user { id: databaseId username firstName } }';
    const ownPages = `user { id: databaseId outfits { count results ${outfit} } }`;
    const search = 'filter: { search: "coat" }';
    const ownRanges = `user { outfitConnection(first: 1, ${search}) { totalCount edges { node ${outfit} } } }`;
    test.each([
      ['REST', 1, '/api/outfits/?page=2'],
      ['REST, the last page', 1, '/api/outfits/?page=last&ordering=-modified'],
      ['by page', 1, `outfits(page: 2) { count nextPage results ${outfit} }`],
      ['a connection', 1, `outfitConnection(first: ${pageSize}) { edges { node ${outfit} } }`],
      ['its count too', 2, `outfitConnection(first: 1) { totalCount edges { node ${outfit} } }`],
      ['a search', 1, `outfitConnection(${search}) { edges { node ${outfit} } }`],
      ['its count too', 2, `outfitConnection(${search}) { totalCount edges { node ${outfit} } }`],
      ['a search of each owner', 3, `outfits { results { ${ownRanges} } }`],
      ['a page of each owner', 2, `outfits { results { id: databaseId ${ownPages} } }`],
      ['one outfit', 1, `outfit(databaseId: 1) ${outfit}`],
      ['two by id', 1, `a: outfit(databaseId: 1) ${outfit} b: outfit(databaseId: 2) ${outfit}`],
      [
        'a page of each of two users',
        2,
        `a: user(databaseId: 1) { outfits { results ${outfit} } } b: user(databaseId: 2) { outfits { count } }`,
      ],
    ])('over %s, owners included, takes %i', async (_name, statements, question) => {
      const ask = async () =>
        question.startsWith('/')
          ? (await gateway.get(question)).json()
          : gateway.post(`{ ${question} }`);
      // Interpreted at first, compiled in the end.
      for (let round = 1; round <= 6; round++) {
        const sent = await sentBy(gateway, ask);
        expect(sent).toHaveLength(statements);
        // What is searched for decides on the plan.
        const isNamed = sent.every(({ name }) => /^[\w-]{10,63}$/.test(`${name}`));
        expect(isNamed).toBe(!question.includes('search'));
      }
      expect(await ask()).not.toHaveProperty('errors');
    });
  });

  test('a list with a filter that has no condition is the plain list', async () => {
    const gateway = await openForTest('PostgreSQL', outfits, { CACHE_MAX_SIZE: '0' });
    const textsFor = async (list: string) => {
      const sent = await sentBy(gateway, async () => {
        expect(await gateway.post(`{ ${list} { edges { cursor } } }`)).not.toHaveProperty('errors');
      });
      return sent.map(({ text }) => text);
    };
    const plain = await textsFor('outfitConnection');
    for (const filter of ['{}', 'null', '{ search: " \\t" }', '{ ids: null }']) {
      expect(await textsFor(`outfitConnection(filter: ${filter})`)).toEqual(plain);
    }
  });

  describe('of outfits whose owners are asked for their outfits', () => {
    const gateway = useGateway('PostgreSQL', outfits, { CACHE_MAX_SIZE: '0', PAGE_SIZE: '7' });

    interface User {
      readonly id: number;
      readonly first: object;
      readonly last: object;
    }

    test.each(orderings)('a list by $enum, all get theirs in one statement', async (list) => {
      const page = (what: string) =>
        `outfits(ordering: ${list.enum}, ${what}) { count page pageCount results { id: databaseId user { id: databaseId } } }`;
      let edges: { node: { user: User } }[] = [];
      const sent = await sentBy(gateway, async () => {
        const { data, errors } = await gateway.post(`{ outfitConnection(first: 20) { edges { node {
          user { id: databaseId first: ${page('page: 1')} last: ${page('last: true')} }
        } } } }`);
        expect(errors).toBeUndefined();
        edges = (data as { outfitConnection: { edges: typeof edges } }).outfitConnection.edges;
      });
      // One for the outfits, one for all first pages, one for all last pages.
      expect(sent).toHaveLength(3);
      expect(edges).toHaveLength(20);
      expect(new Set(edges.map(({ node }) => node.user.id)).size).toBeGreaterThan(5);
      for (const { user } of edges.map(({ node }) => node)) {
        const own = outfits.filter((row) => row.userId === user.id);
        const ids = sortIds(own, list);
        const pageCount = Math.ceil(ids.length / 7);
        const pageOf = (number: number) => ({
          count: ids.length,
          page: number,
          pageCount,
          results: ids
            .slice((number - 1) * 7, number * 7)
            .map((id) => ({ id, user: { id: user.id } })),
        });
        expect(user.first).toEqual(pageOf(1));
        expect(user.last).toEqual(pageOf(pageCount));
      }
    });

    test('no more rows are read for a user than a page has', async () => {
      const query = vi.spyOn(gateway.database.pool, 'query');
      await gateway.post(
        '{ outfitConnection(first: 20) { edges { node { user { outfits { results { id: databaseId } } } } } } }',
      );
      const [, pages] = await Promise.all(query.mock.results.map(({ value }) => value));
      query.mockRestore();
      const perUser = new Map<number, number>();
      for (const { ownerId } of (pages as unknown as pg.QueryResult).rows) {
        perUser.set(ownerId, (perUser.get(ownerId) ?? 0) + 1);
      }
      expect(perUser.size).toBeGreaterThan(5);
      expect(Math.max(...perUser.values())).toBe(7);
    });

    test('who has no outfit has an empty page, and a page past the end is an error for its user', async () => {
      await gateway.database.pool.query(`INSERT INTO users (id, username) VALUES (999999, 'none')`);
      const ask = (page: number) =>
        gateway.post(
          `{ none: user(databaseId: 999999) { outfits(page: ${page}) { count page pageCount nextPage results { id: databaseId } } }
             some: user(databaseId: 1) { outfits(page: ${page}) { page } } }`,
        );
      expect(await ask(1)).toEqual({
        data: {
          none: { outfits: { count: 0, page: 1, pageCount: 1, nextPage: null, results: [] } },
          some: { outfits: { page: 1 } },
        },
      });
      const { data, errors } = await ask(2);
      expect(data).toEqual({ none: { outfits: null }, some: { outfits: { page: 2 } } });
      expect(errors).toMatchObject([
        { path: ['none', 'outfits'], extensions: { code: 'PAGE_NOT_FOUND' } },
      ]);
    });
  });
});

describe('on PostgreSQL, a write', () => {
  const image = 'outfits/2b1d3c4e-0000-4000-8000-000000000001.png';
  const create = `createOutfit(input: { imageKey: "${image}" }) { outfit { id: databaseId user { username } } }`;
  const liked = 'id: "T3V0Zml0OjE=") { outfit { likes user { username } } }';
  const gateway = useGateway('PostgreSQL', outfits, { AUTH_JWT_SECRET: secret });

  test.each([
    ['a like', `likeOutfit(${liked}`, {}, 1],
    ['a like taken back', `unlikeOutfit(${liked}`, {}, 1],
    ['a new outfit', create, {}, 1],
    // One looks for the first answer.
    ['a new outfit with a key', create, { 'idempotency-key': 'new' }, 2],
    ['the same again', create, { 'idempotency-key': 'new' }, 1],
  ] as const)('of %s, owner included', async (_name, field, headers, statements) => {
    const viewer = await signIn(outfits[0]?.userId);
    const sent = await sentBy(gateway, async () => {
      const answer = await gateway.post(`mutation { ${field} }`, {}, { ...viewer, ...headers });
      expect(answer).not.toHaveProperty('errors');
    });
    expect(sent).toHaveLength(statements);
    for (const { name } of sent) expect(name).toMatch(/^[\w-]{10,63}$/);
  });
});

// The pages that end within the limit of their index ranges, 21 or 101, or their own size above that.
describe.each([
  { pageSize: 20, near: 1 },
  { pageSize: 22, near: 4 },
  { pageSize: 100, near: 1 },
  { pageSize: 1000, near: 1 },
])('the first pages of $pageSize outfits on PostgreSQL', ({ pageSize, near }) => {
  test('are read by one statement for each ordering, without a seek', async () => {
    const gateway = await openForTest('PostgreSQL', outfits, {
      CACHE_MAX_SIZE: '0',
      PAGE_SIZE: String(pageSize),
      GRAPHQL_MAX_COST: '1000000',
    });
    const found: number[] = [];
    const sent = await sentBy(gateway, async () => {
      for (let page = 1; page <= near + 1; page++) {
        const field = `outfits(ordering: LIKE_COUNT_DESC, page: ${page})`;
        const { data } = await gateway.post(`{ list: ${field} { results { id: databaseId } } }`);
        // The last one may be past the end.
        const { list } = data as { list: { results: { id: number }[] } | null };
        found.push(...(list?.results ?? []).map(({ id }) => id));
      }
    });
    const texts = sent.map(({ text }) => text);
    expect(texts.map((text) => text.includes('seek_outfits'))).toEqual([
      ...Array(near).fill(false),
      true,
    ]);
    expect(new Set(texts).size).toBe(2);
    const expected = outfits.toSorted((a, b) => b.likes - a.likes || b.id - a.id);
    expect(found).toEqual(expected.slice(0, (near + 1) * pageSize).map(({ id }) => id));
  });
});

describe('on PostgreSQL, prepared statements', () => {
  const gateway = useGateway('PostgreSQL', outfits, {
    CACHE_MAX_SIZE: '0',
    DATABASE_POOL_MAX: '1',
  });

  test('each is prepared once on a connection, and used again for every page', async () => {
    const sent = await sentBy(gateway, async () => {
      for (let page = 1; page <= 8; page++) {
        await gateway.get(`/api/outfits/?page=${page}`);
        await gateway.get(`/api/outfits/?ordering=-like_count&page=${page}`);
        await gateway.post(
          '{ outfits { results { user { outfits { results { id: databaseId } } } } } }',
        );
      }
    });
    const texts = new Set(sent.map(({ text }) => text));
    const names = new Set(sent.map(({ name }) => name));
    // A text has one name, and a name has one text.
    expect(new Set(sent.map(({ text, name }) => `${name}: ${text}`)).size).toBe(texts.size);
    expect(names.size).toBe(texts.size);
    expect(names.size).toBeLessThan(6);
    const { rows } = await gateway.database.pool.query(
      `SELECT count(*)::int AS statements, sum(generic_plans + custom_plans)::int AS uses
       FROM pg_prepared_statements WHERE name = ANY($1)`,
      [[...names]],
    );
    expect(rows).toEqual([{ statements: names.size, uses: 8 * 4 }]);
  });

  test('for a single outfit and lists of a user the plan is made once, not for every request', async () => {
    const sent = await sentBy(gateway, async () => {
      for (let id = 1; id <= 20; id++) {
        await gateway.post(
          `{ outfit(databaseId: ${id}) { title } user(databaseId: ${id}) { outfits { count } } }`,
        );
      }
    });
    // Users are read by Prisma, whose LIMIT is a parameter: PostgreSQL plans for its value each time, by the primary key.
    const own = sent.filter(({ text }) => !text.includes('"users"'));
    const names = [...new Set(own.map(({ name }) => name))];
    expect(names).toHaveLength(2);
    const { rows } = await gateway.database.pool.query(
      `SELECT custom_plans::int AS made FROM pg_prepared_statements
       WHERE name = ANY($1) AND generic_plans + custom_plans >= 15`,
      [names],
    );
    // PostgreSQL tries five times whether a plan for the values is better than one for any.
    expect(rows).toEqual([{ made: 5 }, { made: 5 }]);
  });
});
