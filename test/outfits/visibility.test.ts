// Who sees which private outfits: a matrix of viewers, settings and ways to read, and a plain model.

import fc from 'fast-check';
import type { FastifyInstance, LightMyRequestResponse } from 'fastify';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { buildApp } from '../../src/app.ts';
import type { OutfitRow } from '../../src/outfits/row.ts';
import { saveOutfits } from '../../src/outfits/writes/bulk.ts';
import { openGateway, outfitId, type TestGateway } from '../support/gateway.ts';
import { secret, signIn } from '../support/http/tokens.ts';
import { amount, laneKinds } from '../support/lane.ts';
import { compare, type Ordering, orderings } from '../support/models/orderings.ts';

const pageSize = 7;
const modes = ['listed', 'owner'] as const;
type Mode = (typeof modes)[number];

/** Viewers: none (anonymous), the owner of outfits, of other ones, and of none. */
const viewers = { nobody: undefined, owner: 1, other: 2, stranger: 77 } as const;
type Viewer = keyof typeof viewers;
const viewerNames = Object.keys(viewers) as Viewer[];

/** The rule itself, as a person would say it. */
function isVisible(row: OutfitRow, mode: Mode, userId: number | undefined): boolean {
  return mode === 'listed' || !row.private || row.userId === userId;
}

function sortRows(rows: readonly OutfitRow[], ordering: Ordering): OutfitRow[] {
  return rows.toSorted((a, b) => compare(a, b, ordering));
}

const idsOf = (rows: readonly { id: number }[]) => rows.map(({ id }) => id);

/** Asks as one viewer. */
interface Ask {
  get(url: string, headers?: Record<string, string>): Promise<LightMyRequestResponse>;
  query<Data>(query: string, variables?: object): Promise<Answer<Data>>;
}

interface Answer<Data> {
  readonly data: Data;
  readonly errors?: readonly { readonly extensions: { readonly code: string } }[];
}

interface Page {
  readonly count: number;
  readonly pageCount: number;
  readonly nextPage: number | null;
  readonly results: readonly { id: number }[];
}

interface UserPages {
  readonly user: { readonly outfits: Page; readonly last: Page };
}

interface Connection {
  readonly outfitConnection: {
    readonly totalCount: number;
    readonly edges: readonly { readonly node: { id: number } }[];
    readonly pageInfo: {
      readonly startCursor: string | null;
      readonly endCursor: string | null;
      readonly hasNextPage: boolean;
      readonly hasPreviousPage: boolean;
    };
  };
}

async function askAs(app: FastifyInstance, userId: number | undefined): Promise<Ask> {
  const who = { host: 'shop.test', ...(await signIn(userId)) };
  return {
    get: (url, headers = {}) => app.inject({ method: 'GET', url, headers: { ...who, ...headers } }),
    async query(query, variables = {}) {
      const payload = { query, variables };
      const response = await app.inject({
        method: 'POST',
        url: '/graphql',
        headers: who,
        payload,
      });
      return response.json();
    },
  };
}

/** What one way to read says that the list is: its ids in order, and every count in the answers. */
interface Reading {
  readonly ids: number[];
  readonly counts: number[];
}

async function walkRest(ask: Ask, ordering: Ordering, link: 'next' | 'previous'): Promise<Reading> {
  const pages: number[][] = [];
  const counts: number[] = [];
  const list = `/api/outfits/?ordering=${ordering.rest}&page=`;
  for (let url = `${list}${link === 'next' ? 1 : 'last'}`; url; ) {
    const response = await ask.get(url);
    expect(response.statusCode).toBe(200);
    const body = response.json();
    pages.push(idsOf(body.results));
    counts.push(body.count);
    expect(pages.length).toBeLessThan(100);
    url = body[link]?.replace('http://shop.test', '') ?? '';
  }
  const beyond = await ask.get(`${list}${pages.length + 1}`);
  expect(beyond.statusCode).toBe(404);
  expect(beyond.json()).toEqual({ detail: 'Invalid page.' });
  return { ids: (link === 'next' ? pages : pages.reverse()).flat(), counts };
}

async function walkPages(ask: Ask, ordering: Ordering): Promise<Reading> {
  const document = `query ($page: Int) {
    outfits(ordering: ${ordering.enum}, page: $page) {
    count page pageCount nextPage results { id: databaseId }
  } }`;
  const ids: number[] = [];
  const counts: number[] = [];
  let page: number | null = 1;
  let last = 1;
  while (page !== null) {
    const answer: Answer<{ outfits: Page }> = await ask.query(document, { page });
    const { outfits }: { outfits: Page } = answer.data;
    ids.push(...idsOf(outfits.results));
    counts.push(outfits.count);
    last = outfits.pageCount;
    page = outfits.nextPage;
  }
  const { errors } = await ask.query(document, { page: last + 1 });
  expect(errors).toMatchObject([{ extensions: { code: 'PAGE_NOT_FOUND' } }]);
  return { ids, counts };
}

async function walkConnection(
  ask: Ask,
  ordering: Ordering,
  direction: 'forward' | 'backward',
  size: number,
): Promise<Reading> {
  const forward = direction === 'forward';
  const range = forward ? 'first: $size, after: $cursor' : 'last: $size, before: $cursor';
  const document = `query ($size: Int, $cursor: String) {
    outfitConnection(ordering: ${ordering.enum}, ${range}) {
      totalCount edges { node { id: databaseId } }
      pageInfo { startCursor endCursor hasNextPage hasPreviousPage }
    }
  }`;
  const slices: number[][] = [];
  const counts: number[] = [];
  let cursor: string | null = null;
  for (let more = true; more; ) {
    const answer: Answer<Connection> = await ask.query(document, { size, cursor });
    const { totalCount, edges, pageInfo }: Connection['outfitConnection'] =
      answer.data.outfitConnection;
    slices.push(edges.map(({ node }) => node.id));
    counts.push(totalCount);
    expect(slices.length).toBeLessThan(100);
    const behind = forward ? pageInfo.hasPreviousPage : pageInfo.hasNextPage;
    expect(behind).toBe(cursor !== null);
    more = forward ? pageInfo.hasNextPage : pageInfo.hasPreviousPage;
    cursor = forward ? pageInfo.endCursor : pageInfo.startCursor;
  }
  return { ids: (forward ? slices : slices.reverse()).flat(), counts };
}

/** The pages of one user's outfits. */
async function walkUser(ask: Ask, ordering: Ordering, userId: number): Promise<Reading> {
  const document = `query ($id: Int, $page: Int) { user(databaseId: $id) {
    outfits(ordering: ${ordering.enum}, page: $page) { count pageCount nextPage results { id: databaseId } }
    last: outfits(ordering: ${ordering.enum}, last: true) { count pageCount nextPage results { id: databaseId } }
  } }`;
  const ids: number[] = [];
  const counts: number[] = [];
  for (let page: number | null = 1; page !== null; ) {
    const answer: Answer<UserPages> = await ask.query(document, { id: userId, page });
    const { user }: UserPages = answer.data;
    ids.push(...idsOf(user.outfits.results));
    counts.push(user.outfits.count, user.last.count);
    page = user.outfits.nextPage;
    if (page === null) expect(user.last.results).toEqual(user.outfits.results);
  }
  return { ids, counts };
}

/** A list as the model has it, in the form of a reading with as many counts as that has. */
function expectReading({ ids, counts }: Reading, expected: readonly OutfitRow[]): void {
  expect(ids).toEqual(idsOf(expected));
  for (const count of counts) expect(count).toBe(expected.length);
}

// Few users, so that viewers own many; few values, so that most neighbours tie; and private ones of
// each user, at both ends of every list.
const users = [1, 2, 3, 4];
const total = 46;
const rows: readonly OutfitRow[] = [...generateOutfits({ outfits: total, users: 4 })].map(
  (row, index) => ({
    ...row,
    likes: index % 3 === 0 ? 0 : (index * 7) % 11,
    modified: 1_700_000_000_000_000n + BigInt((index * 13) % 5),
    private: index < 6 || index > total - 6 || index % 4 === 0,
  }),
);

describe.each(laneKinds)('on %s', (kind) => {
  describe.each(modes)('with PRIVATE_OUTFITS=%s', (mode) => {
    let gateway: TestGateway;
    const asks = new Map<Viewer, Ask>();
    const askOf = (viewer: Viewer) => asks.get(viewer) as Ask;
    const visibleTo = (viewer: Viewer) =>
      rows.filter((row) => isVisible(row, mode, viewers[viewer]));

    beforeAll(async () => {
      gateway = await openGateway(kind, rows, {
        PRIVATE_OUTFITS: mode,
        AUTH_JWT_SECRET: secret,
        PAGE_SIZE: String(pageSize),
      });
      for (const viewer of viewerNames) {
        asks.set(viewer, await askAs(gateway.app, viewers[viewer]));
      }
    });
    afterAll(() => gateway.close());

    test.each(viewerNames)('%s finds a visible outfit by its id, and no other', async (viewer) => {
      const found: unknown[] = [];
      for (const { id } of rows) {
        const { data } = await askOf(viewer).query<{ outfit: unknown }>(
          'query ($id: Int!) { outfit(databaseId: $id) { id: databaseId } }',
          { id },
        );
        if (data.outfit) found.push(data.outfit);
      }
      expect(found).toEqual(idsOf(visibleTo(viewer)).map((id) => ({ id })));
    });

    test.each(viewerNames)(
      '%s learns nothing of hidden outfits from what writes answer',
      async (viewer) => {
        const userId = viewers[viewer];
        const visible = visibleTo(viewer);
        const target = rows.find((row) => row.private && row.userId === 1) as OutfitRow;
        const isSeen = visible.includes(target);
        const codeOf = async (field: string) => {
          const { errors } = await askOf(viewer).query(`mutation { ${field} { __typename } }`);
          return errors?.[0]?.extensions.code;
        };
        const changes = [
          `updateOutfit(id: "${outfitId(target.id)}", input: {})`,
          `deleteOutfit(id: "${outfitId(target.id)}")`,
        ];
        if (userId === undefined) {
          for (const field of [...changes, `likeOutfit(id: "${outfitId(target.id)}")`]) {
            expect(await codeOf(field)).toBe('UNAUTHENTICATED');
          }
          return;
        }
        if (userId !== target.userId) {
          for (const field of changes)
            expect(await codeOf(field)).toBe(isSeen ? 'FORBIDDEN' : 'NOT_FOUND');
        }
        // The stranger is no user at all, so its token does not hold for writing.
        if (viewer === 'stranger') {
          expect(await codeOf(`likeOutfit(id: "${outfitId(target.id)}")`)).toBe(
            isSeen ? 'UNAUTHENTICATED' : 'NOT_FOUND',
          );
          return;
        }
        for (const field of ['likeOutfit', 'unlikeOutfit']) {
          const { data, errors } = await askOf(viewer).query<Record<string, unknown>>(
            `mutation { ${field}(id: "${outfitId(target.id)}") { outfit { id: databaseId user { outfits { count } } } } }`,
          );
          const theirs = visible.filter((row) => row.userId === target.userId);
          if (isSeen) {
            expect(data).toEqual({
              [field]: { outfit: { id: target.id, user: { outfits: { count: theirs.length } } } },
            });
          } else {
            expect(errors).toMatchObject([
              {
                message: `There is no outfit with the id ${target.id}.`,
                extensions: { code: 'NOT_FOUND' },
              },
            ]);
          }
        }
      },
    );

    const path = (query: string) => `/graphql?${new URLSearchParams({ query })}`;
    const url = path('{ outfits(ordering: ID_ASC) { count results { id: databaseId } } }');
    const single = rows.find((row) => row.private && row.userId === 1) as OutfitRow;
    const answers: [string, (ask: Ask) => Promise<unknown>, (visible: OutfitRow[]) => unknown][] = [
      [
        'REST',
        async (ask) => {
          const { count, results } = (await ask.get('/api/outfits/?ordering=id')).json();
          return { count, ids: idsOf(results) };
        },
        (visible) => ({ count: visible.length, ids: idsOf(visible).slice(0, pageSize) }),
      ],
      [
        'GraphQL, by GET',
        async (ask) => {
          const { count, results } = (await ask.get(url)).json().data.outfits;
          return { count, ids: idsOf(results) };
        },
        (visible) => ({ count: visible.length, ids: idsOf(visible).slice(0, pageSize) }),
      ],
      [
        'GraphQL, by POST',
        async (ask) =>
          (await ask.query<Connection>('{ outfitConnection { totalCount } }')).data.outfitConnection
            .totalCount,
        (visible) => visible.length,
      ],
      [
        'GraphQL, one outfit',
        async (ask) =>
          (
            await ask.query<{ outfit: unknown }>(
              `{ outfit(databaseId: ${single.id}) { id: databaseId } }`,
            )
          ).data.outfit,
        (visible) => (visible.some(({ id }) => id === single.id) ? { id: single.id } : null),
      ],
    ];
    describe.each([
      ['in one order', viewerNames],
      ['in the other order', viewerNames.toReversed()],
    ])('asked again and again %s', (_order, order) => {
      test.each(answers)('over %s, each gets the own answer', async (_way, ask, expected) => {
        // Anything may have changed, so that nothing is kept from the test before.
        await gateway.database.pool.query(
          'INSERT INTO outfit_changes (xid) VALUES (pg_current_xact_id())',
        );
        for (let round = 0; round < 6; round++) {
          for (const viewer of order) {
            const visible = visibleTo(viewer).toSorted((a, b) => a.id - b.id);
            // Twice in a row, and all at once: what is under way is shared too.
            const given = await Promise.all([ask(askOf(viewer)), ask(askOf(viewer))]);
            expect(given).toEqual([expected(visible), expected(visible)]);
          }
          const together = await Promise.all(order.map((viewer) => ask(askOf(viewer))));
          expect(together).toEqual(
            order.map((viewer) => expected(visibleTo(viewer).toSorted((a, b) => a.id - b.id))),
          );
        }
      });
    });

    test.each([
      ['REST', '/api/outfits/?ordering=id'],
      ['REST, a page that all see alike', '/api/outfits/?ordering=id&page=2'],
      ['GraphQL', url],
    ])('over %s, the tag of another gives 304 for the same content only', async (_way, target) => {
      for (let round = 0; round < 4; round++) {
        const full = new Map<Viewer, LightMyRequestResponse>();
        for (const viewer of viewerNames) full.set(viewer, await askOf(viewer).get(target));
        for (const [viewer, own] of full) {
          expect(own.statusCode).toBe(200);
          for (const other of full.values()) {
            const tag = String(other.headers.etag);
            const response = await askOf(viewer).get(target, { 'if-none-match': tag });
            expect(response.statusCode).toBe(other.body === own.body ? 304 : 200);
            if (response.statusCode === 200) expect(response.body).toBe(own.body);
          }
        }
        const bodies = new Set([...full.values()].map(({ body }) => body));
        expect(bodies.size).toBe(mode === 'owner' ? 3 : 1);
      }
    });

    test.each(viewerNames)('an answer to %s says who may keep it', async (viewer) => {
      const isOwn = mode === 'owner' && viewer !== 'nobody';
      for (const target of ['/api/outfits/', url]) {
        for (let round = 0; round < 5; round++) {
          const first = await askOf(viewer).get(target);
          const again = await askOf(viewer).get(target, {
            'if-none-match': String(first.headers.etag),
          });
          expect(again.statusCode).toBe(304);
          for (const { headers } of [first, again]) {
            expect(headers['cache-control']).toBe(isOwn ? 'private, no-cache' : 'no-cache');
          }
        }
      }
    });
  });

  describe('any list of any viewer', () => {
    const sizes = [1, 2, 3, 5, 13];
    let gateway: TestGateway;
    const apps = new Map<string, FastifyInstance>();
    beforeAll(async () => {
      gateway = await openGateway(kind, [], { AUTH_JWT_SECRET: secret });
      for (const privateOutfits of modes) {
        for (const pageSize of sizes) {
          const config = { ...gateway.config, privateOutfits, pageSize };
          apps.set(`${privateOutfits} ${pageSize}`, await buildApp(config, gateway.database));
        }
      }
    });
    afterAll(async () => {
      for (const app of apps.values()) await app.close();
      await gateway.close();
    });

    const template = rows[0] as OutfitRow;
    const value = fc.integer({ min: 0, max: 3 });
    const anyRow = fc
      .record({
        id: fc.integer({ min: 1, max: 60 }),
        userId: fc.constantFrom(...users),
        // Mostly private, so that walks meet long runs of them.
        private: fc.constantFrom(true, true, false),
        likes: value,
        created: value.map(BigInt),
        modified: value.map(BigInt),
      })
      .map((values) => ({ ...template, ...values, user: { ...template.user, id: values.userId } }));
    const anyRows = fc.uniqueArray(anyRow, { selector: ({ id }) => id, maxLength: 40 });
    test('has the pages, ranges and counts of the model: filter, sort, slice', async () => {
      await fc.assert(
        fc.asyncProperty(
          anyRows,
          fc.constantFrom<Mode>('owner', 'owner', 'listed'),
          fc.constantFrom(undefined, 1, 1, 2, 99),
          fc.constantFrom(...orderings),
          fc.constantFrom(...sizes),
          async (list, mode, userId, ordering, size) => {
            await saveOutfits(gateway.database.pool, list, { replace: true });
            const ask = await askAs(apps.get(`${mode} ${size}`) as FastifyInstance, userId);
            const visible = list.filter((row) => isVisible(row, mode, userId));
            const expected = sortRows(visible, ordering);

            expectReading(await walkRest(ask, ordering, 'next'), expected);
            expectReading(await walkRest(ask, ordering, 'previous'), expected);
            expectReading(await walkPages(ask, ordering), expected);
            for (const direction of ['forward', 'backward'] as const) {
              const reading = await walkConnection(ask, ordering, direction, size);
              expectReading(reading, expected);
            }
            for (const id of new Set(list.map((row) => row.userId))) {
              const theirs = expected.filter((row) => row.userId === id);
              expectReading(await walkUser(ask, ordering, id), theirs);
            }
          },
        ),
        { numRuns: amount(30, 50) },
      );
    });
  });
});
