// What a viewer is told of themselves: who they are, what they like, what is theirs.
import { describe, expect, test, vi } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { databaseKinds, outfitId, useGateway } from '../support/gateway.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const rows = [...generateOutfits({ outfits: 45, users: 6 })];
const [ann, ben] = [...new Set(rows.map((row) => row.userId))];
const list = '{ outfits { results { databaseId viewerHasLiked viewerCanUpdate } } }';

interface Shown {
  readonly databaseId: number;
  readonly viewerHasLiked: boolean;
  readonly viewerCanUpdate: boolean;
}

describe.each(databaseKinds)('on %s', (kind) => {
  const gateway = useGateway(kind, rows, { AUTH_JWT_SECRET: secret });

  const ask = async (query: string, userId?: number) => {
    const headers = userId === undefined ? {} : await signIn(userId);
    const payload = { query };
    const response = await gateway.app.inject({
      method: 'POST',
      url: '/graphql',
      headers,
      payload,
    });
    return response.json();
  };
  const page = async (userId?: number): Promise<Shown[]> =>
    (await ask(list, userId)).data.outfits.results;
  const countStatements = async (work: () => Promise<unknown>) => {
    const query = vi.spyOn(gateway.database.pool, 'query');
    await work();
    const texts = query.mock.calls.map(([statement]) => JSON.stringify(statement));
    query.mockRestore();
    // The embedded database has no other connection to ask for its state.
    return texts.filter((text) => !text.includes('pg_current_snapshot')).length;
  };

  test('viewer is who the token names, and null without a token', async () => {
    const query = '{ viewer { user { databaseId } } }';
    expect((await ask(query)).data).toEqual({ viewer: null });
    expect((await ask(query, ann)).data).toEqual({ viewer: { user: { databaseId: ann } } });
    expect((await ask(query, 999_999)).data).toEqual({ viewer: { user: null } });
    const wrong = await gateway.app.inject({
      method: 'POST',
      url: '/graphql',
      headers: { authorization: 'Bearer wrong' },
      payload: { query },
    });
    expect(wrong.statusCode).toBe(401);
  });

  test('only the viewer is told what they like and own', async () => {
    const first = (await page())[3]?.databaseId ?? 0;
    const like = `mutation { likeOutfit(id: "${outfitId(first)}") { outfit { likes viewerHasLiked viewerCanUpdate } } }`;
    const owner = rows.find((row) => row.id === first)?.userId;
    const before = rows.find((row) => row.id === first)?.likes ?? 0;
    expect((await ask(like, ann)).data.likeOutfit.outfit).toEqual({
      likes: before + 1,
      viewerHasLiked: true,
      viewerCanUpdate: owner === ann,
    });
    for (const viewer of [undefined, ann, ben, undefined, ann, ben]) {
      for (const { databaseId, viewerHasLiked, viewerCanUpdate } of await page(viewer)) {
        expect(viewerHasLiked).toBe(viewer === ann && databaseId === first);
        const { userId } = rows.find((row) => row.id === databaseId) ?? {};
        expect(viewerCanUpdate).toBe(viewer === userId);
      }
    }
    const unlike = like.replace('likeOutfit', 'unlikeOutfit');
    expect((await ask(unlike, ann)).data.unlikeOutfit.outfit).toMatchObject({
      likes: before,
      viewerHasLiked: false,
    });
    expect((await page(ann)).some((outfit) => outfit.viewerHasLiked)).toBe(false);
  });

  test('a page is one statement, its likes are one more, and an anonymous request reads none', async () => {
    expect(await countStatements(() => page(ben))).toBe(2);
    expect(await countStatements(() => page())).toBe(1);
  });

  test('by GET, only answers without anything of the viewer may be kept by others', async () => {
    for (const [query, caching] of [
      [list, /private|no-store/],
      ['{ outfits { count } }', /^(?!.*(private|no-store))/],
    ] as const) {
      const { headers } = await gateway.get(`/graphql?${new URLSearchParams({ query })}`);
      expect(headers['cache-control'] ?? '').toMatch(caching);
    }
  });

  test('answers with something of the viewer are not cached, others are as ever', async () => {
    for (const viewer of [undefined, ann]) {
      await page(viewer);
      expect(await countStatements(() => page(viewer))).toBeGreaterThan(0);
    }
    const shared = '{ outfits { results { databaseId likes } } }';
    await ask(shared);
    expect(await countStatements(() => ask(shared, ann))).toBe(0);
  });
});
