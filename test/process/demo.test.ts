// The demonstration set and its pictures: the same on every machine.
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import type { OutfitRow } from '../../src/outfits/row.ts';
import { pictureOf, servePictures } from '../../src/process/demo/media.ts';
import { readDemo } from '../../src/process/demo/seed.ts';
import { useGateway } from '../support/gateway.ts';

// A change of the set on purpose changes this too: the two belong in one commit.
const golden = 'db01b7f90d6c1c75445f0f01ecce5f92a6917cafb67123f1298b8feeaedb977f';

const rows = [...readDemo()].flat();

function digest(outfits: Iterable<OutfitRow>): string {
  const sha256 = createHash('sha256');
  for (const outfit of outfits) {
    const write = (_key: string, value: unknown) =>
      typeof value === 'bigint' ? value.toString() : value;
    sha256.update(`${JSON.stringify(outfit, write)}\n`);
  }
  return sha256.digest('hex');
}

test('the set has the same bytes on every machine: those that bench/outfits/write.ts wrote', () => {
  expect(digest(rows)).toBe(golden);
  expect(digest(generateOutfits())).toBe(golden);
});

test('the set is made like any number of outfits, one at a time, from a seed', () => {
  expect([...generateOutfits({ outfits: 0, users: 0 })]).toEqual([]);
  expect(() => [...generateOutfits({ outfits: 1, users: 0 })]).toThrow(RangeError);
  const many = { outfits: 10_000_000, users: 1_000_000 };
  const [one, same, other] = [7, 7, 8].map((seed) =>
    JSON.stringify(generateOutfits({ ...many, seed }).next().value.imageKey),
  );
  expect(one).toBe(same);
  expect(one).not.toBe(other);
});

const uuid = '3ce291e6-1580-4f85-9d5e-4957ab13619f';

const gateway = useGateway('PostgreSQL', [], {}, { servePictures });

test.each([
  `outfits/${uuid}.jpeg`,
  `outfits/${uuid.toUpperCase()}.png`,
  `outfits_videos/${uuid}.mp4`,
  `avatars/${uuid}.gif`,
])('a picture is drawn for %s, to be kept for ever and to do nothing', async (key) => {
  const response = await gateway.get(`/media/${key}`);
  expect(response.statusCode).toBe(200);
  expect(response.headers).toMatchObject({
    'content-type': 'image/svg+xml',
    'cache-control': 'public, max-age=31536000, immutable',
    'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    'x-content-type-options': 'nosniff',
    'cross-origin-resource-policy': 'cross-origin',
  });
  expect(response.body).toMatch(/^<svg xmlns="http:\/\/www.w3.org\/2000\/svg" .*<\/svg>$/);
  const head = await gateway.app.inject({ method: 'HEAD', url: `/media/${key}` });
  expect(head.headers['content-length']).toBe(response.headers['content-length']);
  expect(head.rawPayload).toHaveLength(0);
});

test('a picture is light, is made of shapes that mean something, and differs from most others', async () => {
  const drawn = new Set<string>();
  for (const { imageKey, videoKey, user } of generateOutfits({ outfits: 200 })) {
    const [image, ...others] = [imageKey, videoKey, user.avatarKey].flatMap((key) =>
      key ? pictureOf(key) : [],
    );
    for (const picture of [image, ...others]) {
      expect(picture?.length).toBeLessThan(4_096);
      expect(picture).not.toMatch(/undefined|NaN|<script|href="http|on\w+=/);
    }
    drawn.add(image ?? '');
  }
  expect(drawn.size).toBe(200);
});

test('a picture depends on its key alone, and is the same on every machine', async () => {
  const url = `/media/outfits/${uuid}.jpeg`;
  const headers = { authorization: 'Bearer nonsense', cookie: 'a=b' };
  const { body } = await gateway.get(`${url}?v=2`, headers);
  const keys = [`outfits/${uuid}.jpeg`, `outfits_videos/${uuid}.mp4`, `avatars/${uuid}.gif`];
  const pictures = [body, ...keys.slice(1).map(pictureOf)];
  const hash = createHash('sha256').update(pictures.join('\n')).digest('hex');
  expect(hash).toBe('df164be6241a29ea50b917ead4c4007ad0d9513d892a84b8fb582800b2d8df8e');
  expect((await gateway.get(`/media/outfits/${uuid}.png`)).body).not.toBe(body);
});

test.each([
  '/media/',
  '/media/outfits/',
  '/media/outfits/1.jpeg',
  `/media/outfits/${uuid}.gif`,
  `/media/outfits/${uuid}.jpeg/`,
  `/media/outfits/${uuid}.jpeg%0A`,
  `/media/outfits%2F..%2F${uuid}.jpeg`,
  `/media/../outfits/${uuid}.jpeg`,
  `/media/outfits_videos/${uuid}.jpeg`,
  `/media/outfits/${uuid}.jpeg%00`,
  '/media/%E0%A4%A',
])('a picture is not at %s', async (url) => {
  const response = await gateway.get(url);
  expect(response.statusCode).toBe(404);
  expect(response.headers['content-type']).toBe('application/json');
  expect(response.body).toBe('{"detail":"Not found."}');
});

test('a picture is only read', async () => {
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS'] as const) {
    const url = `/media/outfits/${uuid}.jpeg`;
    const response = await gateway.app.inject({ method, url, payload: 'x' });
    expect(response).toMatchObject({ statusCode: 405, headers: { allow: 'GET, HEAD' } });
    expect(response.json()).toEqual({ detail: `Method "${method}" not allowed.` });
  }
});
