// The cursor connection: the rules of Relay. Walks, filters and places of outfits that are gone are compared with a
// model in test/outfits/filters.test.ts and visibility.test.ts.
import { beforeAll, describe, expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import {
  ScrollOutfitsDocument,
  type ScrollOutfitsQueryVariables,
} from '../../src/generated/test-client.ts';
import { openForTest, useGateway } from '../support/gateway.ts';

describe('the connection', () => {
  const rows = [...generateOutfits({ outfits: 45, users: 9 })];
  const sorted = rows.map(({ id }) => id).toSorted((a, b) => a - b);
  const gateway = useGateway('PostgreSQL', rows);
  let cursors: string[];

  const scroll = async (variables: ScrollOutfitsQueryVariables) => {
    const data = await gateway.query(ScrollOutfitsDocument, { ordering: 'ID_ASC', ...variables });
    const { edges, nodes, pageInfo, totalCount } = data.outfitConnection ?? expect.fail('no range');
    expect(nodes).toEqual(edges.map(({ node }) => node));
    return { ids: edges.map(({ node }) => node.id), edges, pageInfo, totalCount };
  };
  const failure = async (range: string) => {
    const { data, errors = [] } = await gateway.post(
      `{ outfitConnection(${range}) { edges { cursor } } }`,
    );
    expect(data).toEqual({ outfitConnection: null });
    expect(errors).toHaveLength(1);
    return { code: errors[0]?.extensions?.code, message: errors[0]?.message };
  };

  beforeAll(async () => {
    cursors = (await scroll({ first: 100 })).edges.map(({ cursor }) => cursor);
  });

  test.each([
    { range: { first: 45 }, from: 0, to: 45, next: false, previous: false },
    { range: { last: 45 }, from: 0, to: 45, next: false, previous: false },
    { range: { first: 3, after: 44 }, from: 45, to: 45, next: false, previous: true },
    { range: { before: 10 }, from: 0, to: 10, next: true, previous: false },
    { range: { after: 34 }, from: 35, to: 45, next: false, previous: true },
    { range: { last: 3, before: 0 }, from: 0, to: 0, next: true, previous: false },
    { range: { first: 5, after: 9, before: 40 }, from: 10, to: 15, next: true, previous: true },
    { range: { last: 5, after: 9, before: 40 }, from: 35, to: 40, next: true, previous: true },
    { range: { first: 9, after: 30, before: 9 }, from: 0, to: 0, next: false, previous: true },
    { range: { first: 5, last: 3 }, from: 2, to: 5, next: true, previous: true },
    { range: { first: 3, last: 3 }, from: 0, to: 3, next: true, previous: true },
    { range: { first: 5, last: 0 }, from: 0, to: 0, next: true, previous: true },
    { range: { first: 0 }, from: 0, to: 0, next: true, previous: false },
    { range: { last: 0 }, from: 0, to: 0, next: false, previous: true },
  ])('$range gives what Relay says', async ({ range, from, to, next, previous }) => {
    const { after, before, ...limits } = range as Record<string, number | undefined>;
    const { ids, pageInfo, edges, totalCount } = await scroll({
      ...limits,
      ...(after === undefined ? {} : { after: cursors[after] ?? '' }),
      ...(before === undefined ? {} : { before: cursors[before] ?? '' }),
    });
    expect(ids).toEqual(sorted.slice(from, to));
    expect(totalCount).toBe(45);
    // Where `last` cuts the start off, Relay calls what was cut a previous page.
    expect(pageInfo.hasNextPage).toBe(next);
    if (range.first !== range.last) expect(pageInfo.hasPreviousPage).toBe(previous);
    expect(pageInfo.startCursor).toBe(edges[0]?.cursor ?? null);
    expect(pageInfo.endCursor).toBe(edges.at(-1)?.cursor ?? null);
  });

  test.each(['first', 'last'])('%s below 0 or above 100 is bad input', async (name) => {
    for (const size of [-1, 101, 2_147_483_647]) {
      expect(await failure(`${name}: ${size}`)).toEqual({
        code: 'BAD_USER_INPUT',
        message: `${name} must be from 0 to 100, but it is ${size}.`,
      });
    }
  });

  test.each(['after', 'before'])(
    'an empty text as %s is read as no cursor, as Apollo Client sends it',
    async (name) => {
      const edges = (range: string) =>
        gateway.post(`{ outfitConnection(${range}) { edges { cursor } } }`);
      const all = await edges('first: 3');
      expect(all.data).toHaveProperty('outfitConnection.edges.length', 3);
      expect(await edges(`first: 3, ${name}: ""`)).toEqual(all);
    },
  );

  test.each(['after', 'before'])('%s must be a cursor', async (name) => {
    for (const cursor of ['garbage', ' ', '12', `${cursors[3]}=`, `${cursors[3]}x`, '\\u0000']) {
      expect(await failure(`first: 3, ${name}: "${cursor}"`)).toEqual({
        code: 'BAD_USER_INPUT',
        message: `${name} is not a cursor of this list.`,
      });
    }
  });

  test.each(['after', 'before'])('%s must be a cursor of the same ordering', async (name) => {
    expect(await failure(`ordering: LIKE_COUNT_ASC, ${name}: "${cursors[3]}"`)).toEqual({
      code: 'BAD_USER_INPUT',
      message: `${name} is a cursor of a list with another ordering: start again without it.`,
    });
  });

  test('a cursor also holds in the opposite direction of the same ordering', async () => {
    const { ids } = await scroll({ ordering: 'ID_DESC', first: 5, after: cursors[9] ?? '' });
    expect(ids).toEqual(sorted.slice(4, 9).toReversed());
  });
});

test.each([100, 101, 1000])(
  'with PAGE_SIZE=%i a walk without first has 100 at a time',
  async (size) => {
    const rows = [...generateOutfits({ outfits: 250, users: 20 })];
    const gateway = await openForTest('PostgreSQL', rows, { PAGE_SIZE: String(size) });
    const met: number[] = [];
    let variables: ScrollOutfitsQueryVariables = { ordering: 'ID_ASC' };
    for (const length of [100, 100, 50]) {
      const data = await gateway.query(ScrollOutfitsDocument, variables);
      const { nodes, pageInfo } = data.outfitConnection ?? expect.fail('no range');
      expect([nodes.length, pageInfo.hasNextPage]).toEqual([length, length === 100]);
      met.push(...nodes.map(({ id }) => id));
      variables = { ...variables, after: pageInfo.endCursor ?? '' };
    }
    expect(met).toEqual(rows.map(({ id }) => id).toSorted((a, b) => a - b));
  },
);
