// A client whose types openapi-typescript has made of the document, with openapi-fetch, against a gateway
// that listens. What may not be written is checked by the compiler: npm run check.
import type { AddressInfo } from 'node:net';
import createClient, { type Client } from 'openapi-fetch';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { generateOutfits } from '../bench/outfits/generate.ts';
import { openGateway, type TestGateway } from './gateway.ts';
import type { components, paths } from './golden/openapi.ts';
import { secret, signIn } from './tokens.ts';

type Outfit = components['schemas']['OutfitRecord'];

const rows = [...generateOutfits({ outfits: 45, users: 9 })];
let gateway: TestGateway;
let client: Client<paths>;
beforeAll(async () => {
  gateway = await openGateway('PostgreSQL', rows, { AUTH_JWT_SECRET: secret });
  await gateway.app.listen({ port: 0, host: '127.0.0.1' });
  const { port } = gateway.app.server.address() as AddressInfo;
  client = createClient<paths>({ baseUrl: `http://127.0.0.1:${port}` });
});
afterAll(() => gateway.close());

test('reads the whole list, page by page, as the links say', async () => {
  const readFrom = async (page: number): Promise<Outfit[]> => {
    const query = { ordering: 'like_count', page } as const;
    const { data } = await client.GET('/api/outfits/', { params: { query } });
    const next = data?.next && Number(new URL(data.next).searchParams.get('page'));
    return [...(data?.results ?? []), ...(next ? await readFrom(next) : [])];
  };
  const outfits = await readFrom(1);
  const expected = rows.toSorted((a, b) => a.likes - b.likes || a.id - b.id);
  expect(outfits.map(({ id }) => id)).toEqual(expected.map(({ id }) => id));
  expect(outfits.map(({ user }) => user.username)).not.toContain('');
});

test('reads the last page', async () => {
  const { data } = await client.GET('/api/outfits/', { params: { query: { page: 'last' } } });
  expect(data?.results).toHaveLength(5);
});

test('creates an outfit with a token, from JSON and from a form', async () => {
  const headers = await signIn(rows[0]?.userId);
  const body = { image_key: `outfits/${crypto.randomUUID()}.png`, title: 'Made by a client' };
  const { data } = await client.POST('/api/outfits/', {
    body: { ...body, private: true, creation_device: 'ios', video: null },
    headers,
  });
  expect(data).toMatchObject({ title: body.title, private: true, creation_device: 'ios' });
  const { response } = await client.POST('/api/outfits/', {
    body,
    headers: { ...headers, 'Content-Type': 'application/x-www-form-urlencoded' },
    bodySerializer: ({ image_key, title = '' }) => new URLSearchParams({ image_key, title }),
  });
  expect(response.status).toBe(201);
});

test('is told what is wrong, by types', async () => {
  const body = { image_key: 'nowhere' };
  const nobody = await client.POST('/api/outfits/', { body });
  expect(nobody.error && 'detail' in nobody.error && nobody.error.detail).toBe(
    'Authentication credentials were not provided.',
  );
  const headers = await signIn(rows[0]?.userId);
  const { error } = await client.POST('/api/outfits/', { body, headers });
  const messages: unknown = error && 'image_key' in error ? error['image_key'] : undefined;
  expect(messages).toEqual(['Enter a valid URL.']);
});

test('does not compile where the gateway would refuse', async () => {
  const settled = await Promise.all([
    // @ts-expect-error: there is no such ordering
    client.GET('/api/outfits/', { params: { query: { ordering: 'title' } } }),
    // @ts-expect-error: a page is a number, or the last one
    client.GET('/api/outfits/', { params: { query: { page: 'first' } } }),
    // @ts-expect-error: the image is required
    client.POST('/api/outfits/', { body: { title: 'No image' } }),
    // @ts-expect-error: there is no such method
    client.DELETE('/api/outfits/'),
  ]);
  expect(settled.map(({ response }) => response.status)).toEqual([400, 404, 401, 405]);
});
