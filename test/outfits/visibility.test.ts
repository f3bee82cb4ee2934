// Who sees which private outfits: a matrix of viewers, settings and ways to read. Pages, ranges and counts: filters.test.ts.
import type { LightMyRequestResponse } from 'fastify';
import { beforeAll, describe, expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import type { OutfitRow } from '../../src/outfits/row.ts';
import { connectForTest, databaseUrlOf } from '../support/databases/connections.ts';
import { countBlocked } from '../support/faults/clients.ts';
import { openForTest, outfitId, useGateway } from '../support/gateway.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const pageSize = 7;

/** Viewers: none (anonymous), the owner of outfits, of other ones, and of none. */
const viewers = { nobody: undefined, owner: 1, other: 2, stranger: 77 } as const;
type Viewer = keyof typeof viewers;
const viewerNames = Object.keys(viewers) as Viewer[];

const idsOf = (rows: readonly { id: number }[]) => rows.map(({ id }) => id);

// Few users, so that viewers own many; few values, so that most neighbours tie; and private ones of
// each user, at both ends of every list.
const total = 46;
const rows = [...generateOutfits({ outfits: total, users: 4 })]
  .map((row, index) => ({
    ...row,
    likes: index % 3 === 0 ? 0 : (index * 7) % 11,
    modified: 1_700_000_000_000_000n + BigInt((index * 13) % 5),
    private: index < 6 || index > total - 6 || index % 4 === 0,
  }))
  .toSorted((a, b) => a.id - b.id);
/** An outfit that only its owner may see. */
const hidden = rows.find((row) => row.private && row.userId === 1) as OutfitRow;

describe.each(['listed', 'owner'])('with PRIVATE_OUTFITS=%s', (mode) => {
  const settings = { PRIVATE_OUTFITS: mode, AUTH_JWT_SECRET: secret };
  const gateway = useGateway('PostgreSQL', rows, { ...settings, PAGE_SIZE: String(pageSize) });
  const headers = new Map<Viewer, Record<string, string>>();
  const get = (viewer: Viewer, url: string, more: Record<string, string> = {}) =>
    gateway.get(url, { ...headers.get(viewer), ...more });
  const post = (viewer: Viewer, query: string, variables: object = {}) =>
    gateway.post(query, variables, headers.get(viewer));
  /** The rule itself, as a person would say it. */
  const visibleTo = (viewer: Viewer, all: readonly OutfitRow[] = rows) =>
    all.filter((row) => mode === 'listed' || !row.private || row.userId === viewers[viewer]);

  beforeAll(async () => {
    for (const viewer of viewerNames) headers.set(viewer, await signIn(viewers[viewer]));
  });

  test.each(viewerNames)(
    '%s learns nothing of hidden outfits from what writes answer',
    async (viewer) => {
      const isSeen = visibleTo(viewer).includes(hidden);
      const unseen = isSeen ? undefined : 'NOT_FOUND';
      const [change, like] = {
        nobody: ['UNAUTHENTICATED', 'UNAUTHENTICATED'],
        owner: [undefined, undefined],
        other: [unseen ?? 'FORBIDDEN', unseen],
        // The stranger is no user at all, so its token does not hold for writing.
        stranger: [unseen ?? 'FORBIDDEN', unseen ?? 'UNAUTHENTICATED'],
      }[viewer];
      const id = `id: "${outfitId(hidden.id)}"`;
      for (const [field, code] of [
        [`updateOutfit(${id}, input: {})`, change],
        [`likeOutfit(${id})`, like],
        [`unlikeOutfit(${id})`, like],
        ...(viewer === 'owner' ? [] : [[`deleteOutfit(${id})`, change]]),
      ]) {
        const given = code ? '__typename' : 'outfit { id: databaseId user { outfits { count } } }';
        const { data, errors } = await post(viewer, `mutation { answer: ${field} { ${given} } }`);
        if (code === undefined) {
          const theirs = visibleTo(viewer).filter((row) => row.userId === hidden.userId);
          const outfit = { id: hidden.id, user: { outfits: { count: theirs.length } } };
          expect(data).toEqual({ answer: { outfit } });
        } else {
          const message = `There is no outfit with the id ${hidden.id}.`;
          expect(errors).toMatchObject([
            { extensions: { code }, ...(code === 'NOT_FOUND' ? { message } : {}) },
          ]);
        }
      }
    },
  );

  const query = '{ outfits(ordering: ID_ASC) { count results { id: databaseId } } }';
  const url = `/graphql?${new URLSearchParams({ query })}`;
  const firstPage = (visible: readonly OutfitRow[]) => ({
    count: visible.length,
    results: idsOf(visible.slice(0, pageSize)).map((id) => ({ id })),
  });
  test.each<[string, string, (visible: readonly OutfitRow[]) => object]>([
    ['REST', '/api/outfits/?ordering=id', firstPage],
    ['GraphQL, by GET', url, (visible) => ({ data: { outfits: firstPage(visible) } })],
    [
      'GraphQL, by POST',
      '{ outfitConnection { totalCount } }',
      ({ length: totalCount }) => ({ data: { outfitConnection: { totalCount } } }),
    ],
    [
      'GraphQL, one outfit',
      `{ outfit(databaseId: ${hidden.id}) { id: databaseId } }`,
      (visible) => ({ data: { outfit: visible.includes(hidden) ? { id: hidden.id } : null } }),
    ],
    [
      'GraphQL, a user',
      '{ user(databaseId: 1) { likesReceived outfitConnection(last: 2, ordering: ID_ASC) { nodes { id: databaseId } } } }',
      (visible) => {
        const own = visible.filter(({ userId }) => userId === 1);
        const likesReceived = own.reduce((sum, { likes }) => sum + likes, 0);
        const nodes = idsOf(own.slice(-2)).map((id) => ({ id }));
        return { data: { user: { likesReceived, outfitConnection: { nodes } } } };
      },
    ],
  ])('asked again and again over %s, each gets the own answer', async (_way, question, answer) => {
    const ask = async (viewer: Viewer) =>
      question.startsWith('/') ? (await get(viewer, question)).json() : post(viewer, question);
    for (const order of [viewerNames, viewerNames.toReversed()]) {
      // Anything may have changed, so that nothing is kept of what was asked before.
      await gateway.database.pool.query(
        'INSERT INTO outfit_changes (xid) VALUES (pg_current_xact_id())',
      );
      const expected = order.map((viewer) => answer(visibleTo(viewer)));
      for (let round = 0; round < 3; round++) {
        for (const [index, viewer] of order.entries()) {
          // Twice in a row, and all at once: what is under way is shared too.
          const given = await Promise.all([ask(viewer), ask(viewer)]);
          expect(given).toMatchObject([expected[index], expected[index]]);
        }
        expect(await Promise.all(order.map(ask))).toMatchObject(expected);
      }
    }
  });

  test.each([
    ['REST', '/api/outfits/?ordering=id'],
    ['REST, the second page', '/api/outfits/?ordering=id&page=2'],
    ['GraphQL', url],
  ])(
    'over %s, an answer says who may keep it, and the tag of another gives 304 for the same content only',
    async (_way, target) => {
      for (let round = 0; round < 2; round++) {
        const full = new Map<Viewer, LightMyRequestResponse>();
        for (const viewer of viewerNames) full.set(viewer, await get(viewer, target));
        for (const [viewer, own] of full) {
          const isOwn = mode === 'owner' && viewer !== 'nobody';
          const cached = { 'cache-control': isOwn ? 'private, no-cache' : 'no-cache' };
          expect(own).toMatchObject({ statusCode: 200, headers: cached });
          for (const other of full.values()) {
            const tag = String(other.headers.etag);
            const response = await get(viewer, target, { 'if-none-match': tag });
            expect(response).toMatchObject(
              other.body === own.body
                ? { statusCode: 304, headers: cached }
                : { statusCode: 200, headers: cached, body: own.body },
            );
          }
        }
        const bodies = new Set([...full.values()].map(({ body }) => body));
        expect(bodies.size).toBe(mode === 'owner' ? 3 : 1);
      }
    },
  );
});

describe('on PostgreSQL, a like while another transaction', () => {
  test.each([
    // It is private for everyone else until the commit.
    ['publishes the outfit', true, `UPDATE outfits SET private = false, title = 'public'`],
    ['makes the outfit private', false, `UPDATE outfits SET private = true, title = 'secret'`],
    ['deletes the outfit', false, 'DELETE FROM outfits'],
  ])('%s returns NOT_FOUND and is not counted', async (_what, isPrivate, change) => {
    const row = { ...hidden, title: isPrivate ? 'secret' : 'public', private: isPrivate };
    const settings = { PRIVATE_OUTFITS: 'owner', AUTH_JWT_SECRET: secret };
    const gateway = await openForTest('PostgreSQL', [...rows.slice(6), row], settings);
    const client = await connectForTest(databaseUrlOf(gateway.database.pool));
    await client.query(`BEGIN; ${change} WHERE id = ${hidden.id}`);
    const mutation = `mutation { likeOutfit(id: "${outfitId(hidden.id)}") { outfit { title } } }`;
    const answer = gateway.post(mutation, {}, await signIn(viewers.other));
    if (!isPrivate) {
      await expect.poll(() => countBlocked(client)).toBe(1);
      await client.query('COMMIT');
    }
    expect((await answer).errors).toMatchObject([{ extensions: { code: 'NOT_FOUND' } }]);
    await client.query('COMMIT');
    const written = `SELECT (SELECT count(*)::int FROM outfit_likes) AS given,
      (SELECT max(likes) FROM outfit_like_counts WHERE id = ${hidden.id}) AS likes`;
    const likes = change.startsWith('DELETE') ? null : row.likes;
    expect((await client.query(written)).rows).toEqual([{ given: 0, likes }]);
  });
});
