// What a viewer is told of themselves: who they are, what they like, what is theirs.
import { expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { statementsOf } from '../support/databases/statements.ts';
import { outfitId, useGateway } from '../support/gateway.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const rows = [...generateOutfits({ outfits: 45, users: 6 })];
const [ann, ben] = [...new Set(rows.map((row) => row.userId))];
const list = '{ outfits { results { databaseId viewerHasLiked viewerCanUpdate } } }';

interface Shown {
  readonly databaseId: number;
  readonly viewerHasLiked: boolean;
  readonly viewerCanUpdate: boolean;
}

const gateway = useGateway('PostgreSQL', rows, { AUTH_JWT_SECRET: secret });

// biome-ignore lint/suspicious/noExplicitAny: the documents of this file give many shapes
const ask = async (query: string, userId?: number): Promise<any> =>
  gateway.post(query, {}, await signIn(userId));
const page = async (userId?: number): Promise<Shown[]> =>
  (await ask(list, userId)).data.outfits.results;

test('viewer is who the token names, and null without a token', async () => {
  const query = '{ viewer { user { databaseId } } }';
  expect((await ask(query)).data).toEqual({ viewer: null });
  expect((await ask(query, ann)).data).toEqual({ viewer: { user: { databaseId: ann } } });
  expect((await ask(query, 999_999)).data).toEqual({ viewer: { user: null } });
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

test('a page is one statement, its likes are one more for each request of a viewer, and none for others', async () => {
  for (const userId of [ben, ben, undefined]) {
    const expected = userId === undefined ? 1 : 2;
    expect(await statementsOf(gateway, () => page(userId))).toHaveLength(expected);
  }
  const shared = '{ outfits { results { databaseId likes } } }';
  await ask(shared);
  // Others who use the same PostgreSQL may make it be read again.
  const read = () => statementsOf(gateway, () => ask(shared, ann));
  await expect.poll(read).toEqual([]);
});
