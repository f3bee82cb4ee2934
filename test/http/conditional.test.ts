// Entity tags: a client that has the current answer gets a 304, and no other client does.
import { describe, expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { useGateway } from '../support/gateway.ts';

const rows = [...generateOutfits({ outfits: 45, users: 9 })];
const graphqlPath = `/graphql?${new URLSearchParams({ query: '{ outfits { results { id: databaseId likes } } }' })}`;

const gateway = useGateway('PostgreSQL', rows);

const head = (url: string, headers: Record<string, string> = {}) =>
  gateway.app.inject({ method: 'HEAD', url, headers: { host: 'shop.test', ...headers } });

describe.each([
  ['REST', '/api/outfits/?page=2', 'Accept'],
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
    ...['--gzip', '-deflate', ';br', ':gzip', '/gzip', '_zstd', '-GZIP', '-x-gzip'].map(
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
