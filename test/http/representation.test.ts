// Entity tags and compression: a client that has the current answer gets a 304, and no other client does; one that takes
// a content coding gets the same answer in fewer bytes. On databases of their own, where no other commit invalidates
// cached answers.
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { openForTest, openGateway, type TestGateway, useGateway } from '../support/gateway.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const rows = [...generateOutfits({ outfits: 45, users: 9 })];
const query = '{ outfits { results { id title description likes user { username } } } }';
const graphqlPath = `/graphql?${new URLSearchParams({ query })}`;
const restPath = '/api/outfits/?page=2';

const gateway = useGateway('PostgreSQL', rows, { AUTH_JWT_SECRET: secret });

const head = (url: string, headers: Record<string, string> = {}) =>
  gateway.app.inject({ method: 'HEAD', url, headers: { host: 'shop.test', ...headers } });

describe.each([
  ['REST', restPath, 'Accept'],
  ['GraphQL', graphqlPath, 'Accept, Accept-Encoding'],
])('over %s', (_name, url, varies) => {
  test('GET and HEAD give the same strong tag, the first time and from memory', async () => {
    const tags = new Set<unknown>();
    for (let round = 0; round < 6; round++) {
      for (const response of [await gateway.get(url), await head(url)]) {
        expect(response.statusCode).toBe(200);
        expect(response.headers['cache-control']).toBe('no-cache');
        expect(response.headers.vary).toBe(varies);
        tags.add(response.headers.etag);
      }
    }
    expect([...tags]).toEqual([expect.stringMatching(/^"[\w-]{20,}"$/)]);
  });

  test.each([
    ['the tag', (tag: string) => tag],
    ['the tag, marked as weak', (tag: string) => `W/${tag}`],
    ['a list that has it', (tag: string) => `"other", W/"more" ,${tag},"last"`],
    ...['--gzip', ';br', ':deflate', '/GZIP', '_zstd', '-x-gzip'].map(
      (suffix): [string, (tag: string) => string] => [
        `the tag with ${suffix}`,
        (tag) => `W/${tag.slice(0, -1)}${suffix}"`,
      ],
    ),
    ['any', () => '*'],
    ['any, with spaces', () => ' * '],
  ])('If-None-Match with %s is 304, without a body', async (_what, write) => {
    const full = await gateway.get(url);
    const headers = { 'if-none-match': write(String(full.headers.etag)) };
    for (const response of [await gateway.get(url, headers), await head(url, headers)]) {
      expect(response.statusCode).toBe(304);
      expect(response.rawPayload).toHaveLength(0);
      const { etag } = full.headers;
      expect(response.headers).toMatchObject({ etag, vary: varies, 'cache-control': 'no-cache' });
      expect(response.headers).not.toHaveProperty('content-type');
      // Nothing, or what the full answer has: another number would be a lie.
      expect([undefined, full.headers['content-length']]).toContain(
        response.headers['content-length'],
      );
    }
  });

  test.each([
    ['another tag', (_tag: string) => '"other"'],
    ['the tag without quotes', (tag: string) => tag.slice(1, -1)],
    ['the tag with another suffix', (tag: string) => `${tag.slice(0, -1)}-min"`],
    ['a tag that begins the same', (tag: string) => `${tag.slice(0, -2)}"`],
    ['the tag in other letters', (tag: string) => tag.toUpperCase().replace(/^"/, '"x')],
    ['nothing', () => ''],
  ])('If-None-Match with %s is answered in full', async (_what, write) => {
    const full = await gateway.get(url);
    const headers = { 'if-none-match': write(String(full.headers.etag)) };
    const response = await gateway.get(url, headers);
    expect(response.statusCode).toBe(200);
    expect(response.body).toBe(full.body);
  });

  test('the tag changes with the data, and only then', async () => {
    const { pool } = gateway.database;
    const before = String((await gateway.get(url)).headers.etag);
    // A commit that changes nothing that is shown: read anew, with the same bytes.
    await pool.query(`CREATE TABLE IF NOT EXISTS unrelated (id int)`);
    expect((await gateway.get(url, { 'if-none-match': before })).statusCode).toBe(304);
    await pool.query('UPDATE outfit_like_counts SET likes = likes + 1');
    const changed = await gateway.get(url, { 'if-none-match': before });
    expect(changed.statusCode).toBe(200);
    expect(changed.headers.etag).not.toBe(before);
    await pool.query('UPDATE outfit_like_counts SET likes = likes - 1');
    expect((await gateway.get(url, { 'if-none-match': before })).statusCode).toBe(304);
  });
});

test('the tags are those of the bytes, also for answers that share records', async () => {
  const bodies = new Map<string, string>();
  for (let round = 0; round < 2; round++) {
    for (const [query, host = 'shop.test'] of [
      ...[[''], ['page=2'], ['page=2', 'other.test'], ['page=2&a=1'], ['page=2&a=2']],
      ...[['ordering=id'], ['ordering=-created&page=1']],
    ]) {
      const response = await gateway.get(`/api/outfits/?${query}`, { host });
      const tag = String(response.headers.etag);
      expect(bodies.get(tag) ?? response.body).toBe(response.body);
      bodies.set(tag, response.body);
    }
  }
  expect(bodies.size).toBe(7);
});

test('an error is an error, whatever the client says to have', async () => {
  for (const [url, status] of [
    ['/api/outfits/?page=0', 404],
    ['/api/outfits/?page=999', 404],
    ['/api/outfits/?ordering=nope', 400],
    ['/api/nope', 404],
    ['/graphql?query={', 400],
  ] as const) {
    const response = await gateway.get(url, {
      'if-none-match': '*',
      accept: 'application/graphql-response+json, */*',
    });
    expect([url, response.statusCode]).toEqual([url, status]);
    expect(response.headers).not.toHaveProperty('etag');
  }
});

const decode = { br: brotliDecompressSync, gzip: gunzipSync };

describe.each([
  ['GraphQL', graphqlPath, 'graphql'],
  ['REST, with COMPRESSION=all', restPath, 'all'],
])('%s', (_name, url, setting) => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await openGateway('PostgreSQL', rows, { COMPRESSION: setting });
    // The first time, an answer is not compressed: most are asked for once.
    const first = await gateway.get(url, { 'accept-encoding': 'br, gzip' });
    expect(first.headers).not.toHaveProperty('content-encoding');
    expect(first.headers.vary).toBe('Accept, Accept-Encoding');
  });
  afterAll(() => gateway.close());

  test.each([
    ['br', 'br'],
    ['x-gzip', 'gzip'],
    ['gzip, deflate, br, zstd', 'br'],
    ['GZIP;Q=1.0, BR;q=0.9', 'gzip'],
    ['*', 'br'],
    ['*;q=0.5, br;q=0', 'gzip'],
    ['gzip;q=0.5, identity;q=0.4', 'gzip'],
    ['gzip;q=0.5, identity;q=0.6', undefined],
    ['deflate, zstd', undefined],
    ['', undefined],
    ['gzip;q=nonsense', undefined],
  ] as const)('Accept-Encoding: %s is answered in %s', async (accepted, encoding) => {
    const plain = await gateway.get(url);
    const response = await gateway.get(url, { 'accept-encoding': accepted });
    expect(response.headers['content-encoding']).toBe(encoding);
    expect(response.headers.vary).toBe('Accept, Accept-Encoding');
    const bytes = response.rawPayload;
    expect(Number(response.headers['content-length'])).toBe(bytes.length);
    expect(encoding ? decode[encoding](bytes) : bytes).toEqual(plain.rawPayload);
    if (encoding) expect(bytes.length).toBeLessThan(plain.rawPayload.length / 2);

    const headers = { host: 'shop.test', 'accept-encoding': accepted };
    const head = await gateway.app.inject({ method: 'HEAD', url, headers });
    const own = { date: '', 'x-request-id': '' };
    expect({ ...head.headers, ...own }).toEqual({ ...response.headers, ...own });
  });

  test('each form has a tag of its own, and any of them is a 304 for any', async () => {
    const tags: string[] = [];
    for (const encoding of ['identity', 'br', 'gzip']) {
      const { headers } = await gateway.get(url, { 'accept-encoding': encoding });
      tags.push(String(headers.etag));
    }
    expect(new Set(tags).size).toBe(3);
    for (const tag of [...tags, ...tags.map((one) => `W/${one}`)]) {
      for (const encoding of ['identity', 'br', 'gzip']) {
        const headers = { 'accept-encoding': encoding, 'if-none-match': tag };
        const response = await gateway.get(url, headers);
        expect(response.statusCode).toBe(304);
        expect(response.headers).not.toHaveProperty('content-encoding');
        expect(response.headers.vary).toBe('Accept, Accept-Encoding');
      }
    }
  });

  test('a commit ends the compressed forms too', async () => {
    const read = async () => {
      const { headers, rawPayload } = await gateway.get(url, { 'accept-encoding': 'gzip' });
      const isPacked = headers['content-encoding'] === 'gzip';
      return (isPacked ? gunzipSync(rawPayload) : rawPayload).toString();
    };
    for (let round = 1; round <= 3; round++) {
      await gateway.database.pool.query('UPDATE outfits SET title = $1', [`Round ${round}`]);
      for (let time = 0; time < 3; time++) expect(await read()).toContain(`"Round ${round}"`);
    }
  });
});

describe('what is not compressed', () => {
  const takesAll = { 'accept-encoding': 'br, gzip' };

  test('REST by default, answers of one viewer, small ones, and errors', async () => {
    const path = (text: string) => `/graphql?${new URLSearchParams({ query: text })}`;
    const personal = path('{ outfits { results { id title description viewerHasLiked } } }');
    for (const [url, headers] of [
      [personal, await signIn(rows[0]?.userId)],
      [restPath, {}],
      [path('{ outfits { count } }'), {}],
      [path('{ nope }'), {}],
    ] as const) {
      for (let time = 0; time < 3; time++) {
        const response = await gateway.get(url, { ...takesAll, ...headers });
        expect(response.headers).not.toHaveProperty('content-encoding');
      }
    }
  });

  test('anything with COMPRESSION=off', async () => {
    const off = await openForTest('PostgreSQL', rows, { COMPRESSION: 'off' });
    for (const [url, accept] of [
      [graphqlPath, '*/*'],
      [restPath, '*/*'],
      ['/graphql', 'text/html'],
    ] as const) {
      for (let time = 0; time < 3; time++) {
        const { headers, statusCode } = await off.get(url, { ...takesAll, accept });
        expect([statusCode, headers.vary]).toEqual([200, 'Accept']);
        expect(headers).not.toHaveProperty('content-encoding');
      }
    }
  });

  test('POST is compressed as GET is', async () => {
    const sent = {
      method: 'POST',
      url: '/graphql',
      headers: takesAll,
      payload: { query },
    } as const;
    const post = () => gateway.app.inject(sent);
    const plain = await post();
    const compressed = await post();
    expect(compressed.headers['content-encoding']).toBe('br');
    expect(brotliDecompressSync(compressed.rawPayload)).toEqual(plain.rawPayload);
  });
});
