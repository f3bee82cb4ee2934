// GraphiQL: its page and files, the schema as text, the cost of a question, and the examples.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import type { LightMyRequestResponse } from 'fastify';
import { describe, expect, onTestFinished, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { examples } from '../../src/pages/graphiql/examples.ts';
import { openGateway, useGateway } from '../support/gateway.ts';
import { elementsOf, textsOf } from '../support/http/html.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const sdlPath = '/graphql/schema.graphql';
const json = { 'content-type': 'application/json' };
const rows = [...generateOutfits({ outfits: 45, users: 9 })];
const gateway = useGateway('PostgreSQL', rows, { AUTH_JWT_SECRET: secret });

/** Another one, for one test. */
async function open(environment: Record<string, string>) {
  const other = await openGateway('PostgreSQL', [], environment);
  onTestFinished(() => other.close());
  return other;
}

describe('the schema as text', () => {
  test('is schema.graphql, byte for byte, for everyone', async () => {
    for (const accept of ['*/*', 'text/html', 'application/json']) {
      const response = await gateway.get(sdlPath, { accept });
      expect(response.statusCode).toBe(200);
      expect(response.headers['content-type']).toBe('text/plain; charset=utf-8');
      const file = readFileSync(
        new URL('../../src/graphql/schema.graphql', import.meta.url),
        'utf8',
      );
      expect(response.body).toBe(file);
    }
  });

  test('is kept by clients, and sent again only when it has changed', async () => {
    const { headers } = await gateway.get(sdlPath);
    expect(headers['cache-control']).toBe('no-cache');
    const again = await gateway.get(sdlPath, { 'if-none-match': String(headers['etag']) });
    expect(again.statusCode).toBe(304);
    expect(again.body).toBe('');
  });

  test('is compressed for those who take that', async () => {
    const plain = await gateway.get(sdlPath);
    // As all answers, when it is asked for a second time.
    await gateway.get(sdlPath, { 'accept-encoding': 'gzip' });
    const response = await gateway.get(sdlPath, { 'accept-encoding': 'gzip' });
    expect(response.headers['vary']).toBe('Accept-Encoding');
    expect(response.headers['content-encoding']).toBe('gzip');
    expect(gunzipSync(response.rawPayload).equals(plain.rawPayload)).toBe(true);
  });

  test('is only read, by those who may come in', async () => {
    const head = await gateway.app.inject({ method: 'HEAD', url: sdlPath });
    expect(head.statusCode).toBe(200);
    expect(head.rawPayload).toHaveLength(0);
    const post = await gateway.app.inject({ method: 'POST', url: sdlPath, payload: 'x' });
    expect(post.statusCode).toBe(405);
    expect(post.headers['allow']).toBe('GET, HEAD, OPTIONS');
    expect(post.json()).toMatchObject({ errors: [{ extensions: { code: 'METHOD_NOT_ALLOWED' } }] });
    expect((await gateway.get(sdlPath, { authorization: 'Bearer x' })).statusCode).toBe(401);
  });

  test.each([{ GRAPHIQL: 'off' }, { GRAPHQL_INTROSPECTION: 'off' }])(
    'is not there with %j',
    async (environment) => {
      const response = await (await open(environment)).get(sdlPath);
      expect([response.statusCode, response.body]).toEqual([404, '{"detail":"Not found."}']);
    },
  );
});

const ask = async (headers: Record<string, string>, payload: object, on = gateway) =>
  on.app.inject({ method: 'POST', url: '/graphql', headers: { ...json, ...headers }, payload });

describe('the cost of a question', () => {
  const query =
    'query ($first: Int) { outfitConnection(first: $first) { edges { node { title } } } }';

  test('is sent to clients that ask for it, and changes nothing else of the answer', async () => {
    const payload = { query, variables: { first: 7 } };
    const plain = await ask({}, payload);
    expect(plain.headers).not.toHaveProperty('graphql-cost');
    const told = await ask({ 'graphql-cost': '1' }, payload);
    expect(told.headers['graphql-cost']).toBe('15;max=5000');
    expect(told.body).toBe(plain.body);
    const without = (headers: object) => ({
      ...headers,
      date: '',
      'x-request-id': '',
      'graphql-cost': '',
    });
    expect(without(told.headers)).toEqual(without(plain.headers));
  });

  test('is told of what is refused for it, and not where the question cannot be read', async () => {
    const costly =
      '{ outfitConnection(first: 100) { edges { node { user { outfits { results { user { outfits { results { id } } } } } } } } } }';
    const refused = await ask({ 'graphql-cost': '1' }, { query: costly });
    expect(refused.json()).toMatchObject({
      errors: [{ extensions: { code: 'QUERY_TOO_COSTLY' } }],
    });
    expect(Number(/^\d+/.exec(String(refused.headers['graphql-cost']))?.[0])).toBeGreaterThan(
      5_000,
    );
    for (const payload of [{ query: '{' }, { query, variables: { first: 'x' } }, { query: '' }]) {
      const response = await ask({ 'graphql-cost': '1' }, payload);
      expect(response.headers).not.toHaveProperty('graphql-cost');
    }
  });

  test('is not told where there is no GraphiQL', async () => {
    const closed = await open({ GRAPHIQL: 'off' });
    const payload = { query: '{ outfits { count } }' };
    const { headers } = await ask({ 'graphql-cost': '1' }, payload, closed);
    expect(headers).not.toHaveProperty('graphql-cost');
  });
});

describe('the examples', () => {
  test.each(examples.filter(({ query }) => !query.includes('subscription')))(
    'run: $query',
    async ({ query }) => {
      const headers = await signIn(1);
      const { data, errors } = (await ask(headers, { query })).json();
      expect(errors).toBeUndefined();
      expect(Object.values(data)).not.toContain(null);
    },
  );
});

describe('the page', () => {
  const accept = 'text/html,application/xhtml+xml,*/*;q=0.8';
  const getPage = (headers = {}, method: 'GET' | 'HEAD' = 'GET') =>
    gateway.app.inject({ method, url: '/graphql', headers: { accept, ...headers } });
  const own = ({ headers }: LightMyRequestResponse) => ({
    ...headers,
    date: '',
    'x-request-id': '',
  });

  test('is HTML whose policy allows the one script, that it loads from here', async () => {
    const page = await getPage();
    expect(page.statusCode).toBe(200);
    expect(page.headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-cache',
      vary: 'Accept, Accept-Encoding',
      etag: expect.stringMatching(/^"[\w-]+"$/),
    });
    const loaded = elementsOf(page.body).flatMap(({ name, attributes }) => {
      if (name === 'a') return [];
      const address = attributes['src'] ?? attributes['href'];
      return address?.startsWith('data:') ? [] : address ? [{ name, address, attributes }] : [];
    });
    expect(loaded.map(({ name }) => name)).toEqual(['link', 'script']);
    const policy = String(page.headers['content-security-policy']);
    expect(policy).not.toContain('unsafe-eval');
    for (const { name, address, attributes } of loaded) {
      expect(address).toMatch(/^graphql\/assets\/main-[A-Z\d]{8}\.(css|js)$/);
      const file = await gateway.get(`/${address}`);
      expect(file.statusCode).toBe(200);
      if (name !== 'script') continue;
      const hash = createHash('sha256').update(file.rawPayload).digest('base64');
      expect(attributes['integrity']).toBe(`sha256-${hash}`);
      expect(policy).toContain(`script-src 'sha256-${hash}';`);
    }
    // By itself, it sends requests to no other host.
    expect(policy).toMatch(/default-src 'none'.*connect-src 'self'/);
  });

  test('leads to the same data without a script', async () => {
    const linksOn = async (on: typeof gateway) => {
      const { body } = await on.get('/graphql', { accept });
      const [inside = ''] = /<noscript>.*<\/noscript>/s.exec(body) ?? [];
      const command = textsOf(inside, 'pre').join();
      const words = execFileSync('sh', ['-c', `curl() { printf '%s\\0' "$@"; }; ${command}`]);
      const [, , type = '', , payload = ''] = words.toString().split('\0');
      const headers = { 'content-type': type.replace('Content-Type: ', '') };
      const answer = await on.app.inject({ method: 'POST', url: '/graphql', headers, payload });
      expect(answer.json()).toMatchObject({ data: { outfits: { count: expect.any(Number) } } });
      return elementsOf(inside).flatMap(({ attributes: { href } }) => (href ? [href] : []));
    };
    const links = await linksOn(gateway);
    expect(links).toEqual(['outfits/', 'graphql/schema.graphql', 'api/docs']);
    for (const link of links) {
      expect((await gateway.get(`/${link}`, { accept })).statusCode).toBe(200);
    }
    const off = await open({ BROWSABLE: 'off', GRAPHQL_INTROSPECTION: 'off' });
    expect(await linksOn(off)).toEqual([]);
  });

  test('has files that browsers keep for ever, small on the wire the first time too', async () => {
    const { body } = await getPage();
    const paths = [...body.matchAll(/"(graphql\/assets\/[^"]+)"/g)].map(([, path]) => `/${path}`);
    for (const [encoding, read] of [
      ['gzip', gunzipSync] as const,
      ['br', brotliDecompressSync] as const,
    ]) {
      let bytes = 0;
      for (const path of paths) {
        const file = await gateway.get(path, { 'accept-encoding': encoding });
        expect(file.headers).toMatchObject({
          'cache-control': 'public, max-age=31536000, immutable',
          'content-encoding': encoding,
          vary: 'Accept-Encoding',
        });
        expect(read(file.rawPayload).equals((await gateway.get(path)).rawPayload)).toBe(true);
        bytes += file.rawPayload.length;
      }
      expect(bytes).toBeLessThan(1_000_000);
    }
    const wrong = await gateway.get('/graphql/assets/main-00000000.js');
    expect([wrong.statusCode, wrong.body]).toEqual([404, '{"detail":"Not found."}']);
    expect(wrong.headers['cache-control']).toBeUndefined();
  });

  test('is 304 when the browser has it, and has the same headers for HEAD', async () => {
    const page = await getPage();
    for (const value of [page.headers['etag'], `W/${page.headers['etag']}`]) {
      const again = await getPage({ 'if-none-match': value });
      expect([again.statusCode, again.body]).toEqual([304, '']);
      expect(again.headers['etag']).toBe(page.headers['etag']);
    }
    expect((await getPage({ 'if-none-match': '"other"' })).statusCode).toBe(200);
    const head = await getPage({}, 'HEAD');
    expect(own(head)).toEqual(own(page));
    expect(head.rawPayload).toHaveLength(0);
  });

  test('begins with where to start, an example, and a hint how to get a token', async () => {
    const { data } = await gateway.post('{ __schema { description } }');
    expect(data).toMatchObject({
      __schema: { description: expect.stringContaining('Start here') },
    });
    expect(examples.map(({ query }) => query).join()).toContain('npm run token -- --user 1');
  });

  test.each([
    'text/html',
    'Text/HTML; charset=utf-8',
    'application/json;q=0.4, text/html;q=0.5',
    'application/json;q=0, text/html;q=0.1',
  ])('is what Accept: %s asks for', async (value) => {
    const page = await getPage({ accept: value });
    expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
  });

  test.each([
    'application/json',
    '*/*',
    undefined,
    'application/json, text/html;q=0.1',
    'application/json, text/html;q=0',
    'text/html;q=0, */*',
    'text/html;q=0.5, application/*;q=0.5',
  ])('does not get in the way of Accept: %s', async (value) => {
    const url = '/graphql?query={outfits{count}}';
    const headers = value === undefined ? {} : { accept: value };
    const response = await gateway.app.inject({ url, headers });
    expect(response.json()).toEqual({ data: { outfits: { count: 45 } } });
  });

  test('is for those who may come in', async () => {
    expect((await getPage({ authorization: 'Bearer nonsense' })).statusCode).toBe(401);
    const limited = await open({ RATE_LIMIT: '1/day' });
    for (const status of [200, 429]) {
      expect((await limited.get('/graphql', { accept })).statusCode).toBe(status);
    }
  });
});
