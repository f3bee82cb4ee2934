// Compressed answers: the same answer in fewer bytes, for clients that accept it. On databases of their own,
// where no other commit invalidates cached answers.
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { openForTest, openGateway, type TestGateway, useGateway } from '../support/gateway.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const rows = [...generateOutfits({ outfits: 45, users: 9 })];
const query = '{ outfits { results { id title description likes user { username } } } }';
const graphqlPath = `/graphql?${new URLSearchParams({ query })}`;
const restPath = '/api/outfits/?page=2';

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
    const [plain = ''] = tags;
    const bySomeProxy = [`W/${plain}`, plain.replace(/"$/, '-gzip"'), plain.replace(/"$/, ';br"')];
    for (const tag of [...tags, ...tags.map((one) => `W/${one}`), ...bySomeProxy]) {
      for (const encoding of ['identity', 'br', 'gzip']) {
        const headers = { 'accept-encoding': encoding, 'if-none-match': tag };
        const response = await gateway.get(url, headers);
        expect(response.statusCode).toBe(304);
        expect(response.headers).not.toHaveProperty('content-encoding');
        expect(response.headers.vary).toBe('Accept, Accept-Encoding');
      }
    }
    const other = plain.replace(/"$/, '-gzipped"');
    expect((await gateway.get(url, { 'if-none-match': other })).statusCode).toBe(200);
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
  const gateway = useGateway('PostgreSQL', rows, { AUTH_JWT_SECRET: secret });
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
