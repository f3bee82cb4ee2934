// The cursor connection: the rules of Relay.
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import {
  ScrollOutfitsDocument,
  type ScrollOutfitsQueryVariables,
} from '../../src/generated/test-client.ts';
import { formatCursor } from '../../src/outfits/ordering.ts';
import { openGateway, type TestGateway } from '../support/gateway.ts';

describe('the connection', () => {
  const rows = [...generateOutfits({ outfits: 45, users: 9 })];
  const sorted = rows.map(({ id }) => id).toSorted((a, b) => a - b);
  let gateway: TestGateway;
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
    gateway = await openGateway('PostgreSQL', rows);
    cursors = (await scroll({ first: 100 })).edges.map(({ cursor }) => cursor);
  });
  afterAll(() => gateway.close());

  test('has the whole list when it fits, and nothing beyond', async () => {
    const { ids, pageInfo, totalCount } = await scroll({ first: 100 });
    expect(ids).toEqual(sorted);
    expect(totalCount).toBe(45);
    expect(pageInfo).toEqual({
      startCursor: cursors[0],
      endCursor: cursors[44],
      hasNextPage: false,
      hasPreviousPage: false,
    });
  });

  test('without first and last gives a page from the start', async () => {
    expect((await scroll({})).ids).toEqual(sorted.slice(0, 20));
    expect((await scroll({ after: cursors[9] ?? '' })).ids).toEqual(sorted.slice(10, 30));
  });

  test('newest first is the default ordering', async () => {
    const { outfitConnection } = await gateway.query(ScrollOutfitsDocument, { first: 100 });
    const expected = rows.toSorted((a, b) => Number(b.created - a.created) || b.id - a.id);
    expect(outfitConnection?.edges.map(({ node }) => node.id)).toEqual(
      expected.map(({ id }) => id),
    );
  });

  test.each([
    { range: { first: 45 }, from: 0, to: 45, next: false, previous: false },
    { range: { first: 44 }, from: 0, to: 44, next: true, previous: false },
    { range: { last: 45 }, from: 0, to: 45, next: false, previous: false },
    { range: { last: 44 }, from: 1, to: 45, next: false, previous: true },
    { range: { first: 3, after: 9 }, from: 10, to: 13, next: true, previous: true },
    { range: { first: 3, after: 41 }, from: 42, to: 45, next: false, previous: true },
    { range: { first: 3, after: 44 }, from: 45, to: 45, next: false, previous: true },
    { range: { last: 3, before: 9 }, from: 6, to: 9, next: true, previous: true },
    { range: { last: 3, before: 3 }, from: 0, to: 3, next: true, previous: false },
    { range: { last: 3, before: 0 }, from: 0, to: 0, next: true, previous: false },
    { range: { first: 5, after: 9, before: 40 }, from: 10, to: 15, next: true, previous: true },
    { range: { last: 5, after: 9, before: 40 }, from: 35, to: 40, next: true, previous: true },
    { range: { first: 9, after: 9, before: 9 }, from: 0, to: 0, next: false, previous: true },
    { range: { first: 9, after: 30, before: 9 }, from: 0, to: 0, next: false, previous: true },
    { range: { first: 5, last: 3 }, from: 2, to: 5, next: true, previous: true },
    { range: { first: 3, last: 3 }, from: 0, to: 3, next: true, previous: true },
    { range: { first: 5, last: 0 }, from: 0, to: 0, next: true, previous: true },
  ])('$range gives what Relay says', async ({ range, from, to, next, previous }) => {
    const { after, before, ...limits } = range as Record<string, number | undefined>;
    const { ids, pageInfo, edges } = await scroll({
      ...limits,
      ...(after === undefined ? {} : { after: cursors[after] ?? '' }),
      ...(before === undefined ? {} : { before: cursors[before] ?? '' }),
    });
    expect(ids).toEqual(sorted.slice(from, to));
    // Where `last` cuts the start off, Relay calls what was cut a previous page.
    expect(pageInfo.hasNextPage).toBe(next);
    if (range.first !== range.last) expect(pageInfo.hasPreviousPage).toBe(previous);
    expect(pageInfo.startCursor).toBe(edges[0]?.cursor ?? null);
    expect(pageInfo.endCursor).toBe(edges.at(-1)?.cursor ?? null);
  });

  test.each([
    { range: { first: 0 }, next: true, previous: false },
    { range: { last: 0 }, next: false, previous: true },
  ])('$range is an empty range that knows there is more', async ({ range, next, previous }) => {
    const { ids, pageInfo, totalCount } = await scroll(range);
    expect(ids).toEqual([]);
    expect(totalCount).toBe(45);
    expect(pageInfo).toEqual({
      startCursor: null,
      endCursor: null,
      hasNextPage: next,
      hasPreviousPage: previous,
    });
  });

  test('the cursor of a deleted outfit still marks its place', async () => {
    const gone = sorted.findIndex(
      (value, index) => index > 0 && value !== (sorted[index - 1] ?? 0) + 1,
    );
    const missing = (sorted[gone] ?? 0) - 1;
    expect(sorted).not.toContain(missing);
    const cursor = formatCursor('id', { value: BigInt(missing), id: missing });
    expect((await scroll({ first: 5, after: cursor })).ids).toEqual(sorted.slice(gone, gone + 5));
    expect((await scroll({ last: 5, before: cursor })).ids).toEqual(
      sorted.slice(Math.max(0, gone - 5), gone),
    );
  });

  test.each(['first', 'last'])('%s below 0 or above 100 is bad input', async (name) => {
    for (const size of [-1, 101, 2_147_483_647]) {
      expect(await failure(`${name}: ${size}`)).toEqual({
        code: 'BAD_USER_INPUT',
        message: `${name} must be from 0 to 100, but it is ${size}.`,
      });
    }
  });

  test.each(['after', 'before'])('%s must be a cursor', async (name) => {
    for (const cursor of ['', 'garbage', '12', `${cursors[3]}=`, `${cursors[3]}x`, '\\u0000']) {
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

  test('of an empty list is empty', async () => {
    const empty = await openGateway('PostgreSQL');
    onTestFinished(() => empty.close());
    for (const range of [{ first: 3 }, { last: 3 }, { first: 3, after: cursors[0] ?? '' }]) {
      const variables = { ordering: 'ID_ASC' as const, ...range };
      expect(await empty.query(ScrollOutfitsDocument, variables)).toEqual({
        outfitConnection: {
          totalCount: 0,
          edges: [],
          nodes: [],
          pageInfo: {
            startCursor: null,
            endCursor: null,
            hasNextPage: false,
            hasPreviousPage: false,
          },
        },
      });
    }
  });
});

describe.each([100, 101, 200, 1000])('with PAGE_SIZE=%i', (pageSize) => {
  const rows = [...generateOutfits({ outfits: 450, users: 20 })].map((row) => ({
    ...row,
    private: row.id % 3 === 0,
  }));
  const newestFirst = rows
    .toSorted((a, b) => Number(b.created - a.created) || b.id - a.id)
    .map(({ id }) => id);
  let gateway: TestGateway;

  beforeAll(async () => {
    gateway = await openGateway('PostgreSQL', rows, { PAGE_SIZE: String(pageSize) });
  });
  afterAll(() => gateway.close());

  test('a walk without first meets every outfit once', async () => {
    const met: number[] = [];
    let variables: ScrollOutfitsQueryVariables = {};
    for (const length of [100, 100, 100, 100, 50]) {
      const data = await gateway.query(ScrollOutfitsDocument, variables);
      const { edges, pageInfo } = data.outfitConnection ?? expect.fail('no range');
      expect(edges).toHaveLength(length);
      expect(pageInfo.hasNextPage).toBe(length === 100);
      met.push(...edges.map(({ node }) => node.id));
      variables = { after: pageInfo.endCursor ?? '' };
    }
    expect(met).toEqual(newestFirst);
  });
});
