// Filters of lists: every list, ordering and viewer against plain JavaScript on the same rows.
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { compareKeys, formatCursor, sortKeyOf } from '../../src/outfits/ordering.ts';
import type { OutfitRow } from '../../src/outfits/row.ts';
import { outfitId, useGateway } from '../support/gateway.ts';
import { secret, signIn } from '../support/http/tokens.ts';
import { anyFilterOf, matches, texts } from '../support/models/filter-model.ts';
import { orderings, sortIds } from '../support/models/orderings.ts';
import { walk, ways } from '../support/models/walk.ts';

const start = 1_700_000_000_000_000n;
const users = [1, 2, 3, 4];
const viewers = [undefined, 1, 2];

// Few values, so that most neighbours tie; moments in the same bucket and far apart.
const rows: readonly OutfitRow[] = [...generateOutfits({ outfits: 90, users: 4 })].map(
  (row, index) => ({
    ...row,
    likes: [0, 0, 1, 2, 7, 63, 64, 65, 4095, 4096, 70_000][(index * 7) % 11] ?? 0,
    created: start + BigInt((index * 13) % 9) * (index % 2 ? 1_000_000n : 2_000_000_000_000n),
    modified: start + BigInt((index * 5) % 7),
    private: index % 4 === 0,
    quality: 2 + (index % 4),
    videoKey: index % 5 === 0 ? `outfits_videos/${index}.mp4` : null,
    creationDevice: ['ios', 'android', 'web'][index % 3] ?? '',
  }),
);
const accented = ['Café in Łódź', 'CAFE\u0301', 'Straße, Søster, Đà Nẵng', '#Été', 'Ёлка, ήλιος'];
rows.slice(0, accented.length).forEach((row, index) => {
  Object.assign(row, { title: accented[index], description: '', private: false });
});
rows.slice(accented.length).forEach((row, index) => {
  const [title, description] = texts[index % 15] ?? [];
  if (title !== undefined) Object.assign(row, { title, description });
});
const likedByOne = rows.filter((_row, index) => index % 3 === 0).map(({ id }) => id);

const anyFilter = anyFilterOf({
  ids: [...rows.slice(0, 20).map(({ id }) => id), 999_999],
  userIds: [...users, 99],
  moments: rows.map((row) => row.created),
  likes: [0, 1, 2, 8, 63, 64, 65, 66, 4096, 4097, 70_000, 2 ** 31 - 1],
});

interface Answer {
  // biome-ignore lint/suspicious/noExplicitAny: the documents of this file give many shapes
  readonly data: any;
  readonly errors?: { message: string; extensions?: { code?: string } }[];
}

describe.each(['listed', 'owner'])('on PostgreSQL with PRIVATE_OUTFITS=%s', (mode) => {
  const settings = { PRIVATE_OUTFITS: mode, AUTH_JWT_SECRET: secret };
  const gateway = useGateway('PostgreSQL', rows, settings);
  const headers = new Map<number | undefined, Record<string, string>>();
  beforeAll(async () => {
    for (const viewer of viewers) headers.set(viewer, await signIn(viewer));
    await gateway.database.pool.query(
      'INSERT INTO outfit_likes (outfit_id, user_id) SELECT id, 1 FROM unnest($1::int[]) id',
      [likedByOne],
    );
  });

  const ask = (query: string, variables: object = {}, viewer?: number) =>
    gateway.post(query, variables, headers.get(viewer)) as Promise<Answer>;

  const titlesOf = async (filter: object) => {
    const only = { ...filter, ids: rows.slice(0, accented.length).map(({ id }) => outfitId(id)) };
    const { data } = await ask(
      `query ($only: OutfitFilter) { outfits(ordering: ID_ASC, filter: $only) { results { title } } }`,
      { only },
    );
    return data.outfits.results.map(({ title }: { title: string }) => title);
  };

  const visibleTo = (viewer: number | undefined) =>
    rows.filter((row) => mode === 'listed' || !row.private || row.userId === viewer);

  test('every list has what the model has: filter, sort, slice', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.option(anyFilter, { nil: null, freq: 2 }),
        fc.constantFrom(...orderings),
        fc.constantFrom(...ways),
        fc.constantFrom(...viewers),
        fc.constantFrom(...users),
        async (filter, ordering, way, viewer, owner) => {
          const found = visibleTo(viewer).filter((row) => matches(row, filter ?? {}));
          const expectList = async (parent: string, list: readonly OutfitRow[]) => {
            const ofViewer = (query: string, variables: object) => ask(query, variables, viewer);
            const met = await walk(ofViewer, { way, ordering, size: 7, filter, parent });
            expect(met).toEqual({
              ids: sortIds(list, ordering),
              counts: new Set([list.length]),
            });
          };
          await expectList('', found);
          const theirs = found.filter((row) => row.userId === owner);
          await expectList(`user(databaseId: ${owner})`, theirs);
          if (way === 'page' || viewer === undefined) return;
          // The other viewer likes nothing, and sees none of the first one's likes.
          const isLiked = ({ id }: OutfitRow) => viewer === 1 && likedByOne.includes(id);
          await expectList('viewer', found.filter(isLiked));
        },
      ),
      { numRuns: 50 },
    );
  }, 120_000);

  test.each([
    ['cafe', ['Café in Łódź', 'CAFE\u0301']],
    ['CAFÉ', ['Café in Łódź', 'CAFE\u0301']],
    ['lodz', ['Café in Łódź']],
    ['strasse', ['Straße, Søster, Đà Nẵng']],
    ['soster nang', ['Straße, Søster, Đà Nẵng']],
    ['#ete', ['#Été']],
    ['елка', []],
    ['ёлка', ['Ёлка, ήλιος']],
    ['ηλιος', []],
    ['ήλιοσ', ['Ёлка, ήλιος']],
  ])(
    'a search for %s finds words with and without accents of Latin letters',
    async (search, titles) => {
      expect(await titlesOf({ search })).toEqual(titles);
    },
  );

  test.each([
    ['été', ['#Été']],
    ['ete', []],
  ])('the hashtag %s is compared with its accents', async (hashtag, titles) => {
    expect(await titlesOf({ hashtags: [hashtag] })).toEqual(titles);
  });

  const highest = 2n ** 63n - 1n;
  const places = fc.oneof(
    { weight: 5, arbitrary: fc.constantFrom(...rows) },
    {
      weight: 1,
      arbitrary: fc.record({
        value: fc.constantFrom(-highest - 1n, 0n, 64n, highest),
        id: fc.constantFrom(-(2 ** 31), 0, 2 ** 31 - 1),
      }),
    },
  );
  test('a cursor is a place in the order, whatever the filter', async () => {
    await fc.assert(
      fc.asyncProperty(
        anyFilter,
        fc.constantFrom(...orderings),
        places,
        fc.constantFrom(...viewers),
        fc.constantFrom('', `user(databaseId: ${users[0]})`),
        async (filter, ordering, at, viewer, parent) => {
          const { field, sign, enum: name } = ordering;
          const keyAt =
            'value' in at
              ? { value: field === 'id' ? BigInt(at.id) : at.value, id: at.id }
              : sortKeyOf(at, field);
          const side = (row: OutfitRow) => sign * compareKeys(sortKeyOf(row, field), keyAt);
          const found = visibleTo(viewer)
            .filter((row) => matches(row, filter) && (parent === '' || row.userId === users[0]))
            .toSorted((a, b) => sign * compareKeys(sortKeyOf(a, field), sortKeyOf(b, field)));
          const before = found.filter((row) => side(row) < 0).map(({ id }) => id);
          const after = found.filter((row) => side(row) > 0).map(({ id }) => id);
          const isThere = before.length + after.length < found.length;

          const part = (alias: string, range: string) =>
            `${alias}: outfitConnection(ordering: ${name}, filter: $filter, ${range}: $cursor) {
              edges { node { databaseId } } pageInfo { hasNextPage hasPreviousPage } }`;
          const lists = `${part('next', 'first: 4, after')} ${part('previous', 'last: 4, before')}`;
          const { data, errors } = await ask(
            `query ($filter: OutfitFilter, $cursor: String) {
              ${parent ? `parent: ${parent} { ${lists} }` : lists} }`,
            { filter, cursor: formatCursor(field, keyAt) },
            viewer,
          );
          expect(errors).toBeUndefined();
          const given = (ids: readonly number[]) => ids.map((id) => ({ node: { databaseId: id } }));
          expect(data.parent ?? data).toEqual({
            next: {
              edges: given(after.slice(0, 4)),
              pageInfo: {
                hasNextPage: after.length > 4,
                hasPreviousPage: before.length > 0 || isThere,
              },
            },
            previous: {
              edges: given(before.slice(Math.max(0, before.length - 4))),
              pageInfo: {
                hasNextPage: after.length > 0 || isThere,
                hasPreviousPage: before.length > 4,
              },
            },
          });
        },
      ),
      { numRuns: 50 },
    );
  }, 120_000);
});
