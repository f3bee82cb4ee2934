// GraphiQL: its page and files, the schema as text, the cost of a question, and the examples.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { examples } from '../../src/pages/graphiql/examples.ts';
import { openBeside, useGateway } from '../support/gateway.ts';
import { accept, elementsOf } from '../support/http/html.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const sdlPath = '/graphql/schema.graphql';
const rows = [...generateOutfits({ outfits: 45, users: 9 })];
const gateway = useGateway('PostgreSQL', rows, { AUTH_JWT_SECRET: secret });
const open = (environment: Record<string, string>) => openBeside(gateway, environment);

const ask = async (headers: Record<string, string>, payload: object, on = gateway) =>
  on.app.inject({ method: 'POST', url: '/graphql', headers, payload });

/** Headers that do not differ from one request to the next. */
const constant = (headers: object) => ({ ...headers, date: '', 'x-request-id': '' });

test('the schema as text is schema.graphql, byte for byte, for everyone', async () => {
  const file = readFileSync(new URL('../../docs/schema.graphql', import.meta.url), 'utf8');
  for (const value of ['*/*', 'text/html', 'application/json']) {
    const { statusCode, headers, body } = await gateway.get(sdlPath, { accept: value });
    expect([statusCode, body]).toEqual([200, file]);
    expect(headers['content-type']).toBe('text/plain; charset=utf-8');
  }
});

test('the schema as text is only read, by those who may come in', async () => {
  const head = await gateway.app.inject({ method: 'HEAD', url: sdlPath });
  expect([head.statusCode, head.body]).toEqual([200, '']);
  const post = await gateway.app.inject({ method: 'POST', url: sdlPath, payload: 'x' });
  expect([post.statusCode, post.headers['allow']]).toEqual([405, 'GET, HEAD, OPTIONS']);
  expect(post.json()).toMatchObject({ errors: [{ extensions: { code: 'METHOD_NOT_ALLOWED' } }] });
  expect((await gateway.get(sdlPath, { authorization: 'Bearer x' })).statusCode).toBe(401);
});

test.each([{ GRAPHIQL: 'off' }, { GRAPHQL_INTROSPECTION: 'off' }])(
  'the schema as text is not there with %j',
  async (environment) => {
    const { statusCode, body } = await (await open(environment)).get(sdlPath);
    expect([statusCode, body]).toEqual([404, '{"detail":"Not found."}']);
  },
);

const query =
  'query ($first: Int) { outfitConnection(first: $first) { edges { node { title } } } }';
const asking = { 'graphql-cost': '1' };

test('the cost of a question is sent to clients that ask for it, and changes nothing else of the answer', async () => {
  const payload = { query, variables: { first: 7 } };
  const [plain, told] = [await ask({}, payload), await ask(asking, payload)];
  expect(told.body).toBe(plain.body);
  const expected = { ...plain.headers, 'graphql-cost': '15;max=3000' };
  expect(constant(told.headers)).toEqual(constant(expected));
});

test('the token is not named where GraphiQL is off', async () => {
  const closed = await open({ GRAPHIQL: 'off' });
  const { headers } = await ask(asking, { query: '{ outfits { count } }' }, closed);
  expect(headers).not.toHaveProperty('graphql-cost');
});

const runnable = examples.filter(({ query }) => !query.includes('subscription'));
test.each(runnable)('the examples run: $query', async ({ query }) => {
  const { data, errors } = (await ask(await signIn(1), { query })).json();
  expect(errors).toBeUndefined();
  expect(Object.values(data)).not.toContain(null);
});

const getPage = (headers = {}, method: 'GET' | 'HEAD' = 'GET') =>
  gateway.app.inject({ method, url: '/graphql', headers: { accept, ...headers } });

test('the page is HTML whose policy allows the one script, that it loads from here', async () => {
  const page = await getPage();
  expect(page.statusCode).toBe(200);
  expect(page.headers).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-cache',
    vary: 'Accept, Accept-Encoding',
    etag: expect.stringMatching(/^"[\w-]+"$/),
  });
  const loaded = elementsOf(page.body).flatMap(({ name, attributes }) => {
    const address = attributes['src'] ?? attributes['href'] ?? 'data:';
    return name === 'a' || address.startsWith('data:') ? [] : [{ name, address, attributes }];
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

test('the page leads home, to the outfits, the documentation of REST and the schema', async () => {
  const linksOn = async (on: typeof gateway) => {
    const { body } = await on.get('/graphql', { accept });
    return elementsOf(body).flatMap(({ name, attributes: { href } }) =>
      name === 'a' ? [href] : [],
    );
  };
  const links = await linksOn(gateway);
  expect(links).toEqual(['./', 'outfits/', 'api/docs', 'graphql/schema.graphql']);
  for (const link of links) {
    const { statusCode } = await gateway.get(`/${link?.replace('./', '')}`, { accept });
    expect([link, statusCode]).toEqual([link, 200]);
  }
  const off = await open({ BROWSABLE: 'off', GRAPHQL_INTROSPECTION: 'off' });
  expect(await linksOn(off)).toEqual([]);
});

test('the page has files that browsers keep for ever, small on the wire the first time too', async () => {
  const { body } = await getPage();
  const paths = [...body.matchAll(/"(graphql\/assets\/[^"]+)"/g)].map(([, path]) => `/${path}`);
  for (const [encoding, read] of [
    ['gzip', gunzipSync],
    ['br', brotliDecompressSync],
  ] as const) {
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

test('the page is 304 when the browser has it, and has the same headers for HEAD', async () => {
  const page = await getPage();
  const { etag } = page.headers;
  for (const value of [etag, `W/${etag}`]) {
    const again = await getPage({ 'if-none-match': value });
    expect([again.statusCode, again.body, again.headers['etag']]).toEqual([304, '', etag]);
  }
  expect((await getPage({ 'if-none-match': '"other"' })).statusCode).toBe(200);
  const head = await getPage({}, 'HEAD');
  expect(constant(head.headers)).toEqual(constant(page.headers));
  expect(head.body).toBe('');
});

test('the page begins with where to start, an example, and a hint how to get a token', async () => {
  const { data } = await gateway.post('{ __schema { description } }');
  const description = expect.stringContaining('Start here');
  expect(data).toMatchObject({ __schema: { description } });
  expect(examples.map(({ query }) => query).join()).toContain('outfit-gateway token --user 1');
});

test('the page is what a client prefers to an answer, and does not get in the way of others', async () => {
  for (const value of ['Text/HTML; charset=utf-8', 'application/json;q=0.4, text/html;q=0.5']) {
    const { headers } = await getPage({ accept: value });
    expect(headers['content-type']).toBe('text/html; charset=utf-8');
  }
  const url = '/graphql?query={outfits{count}}';
  for (const value of ['*/*', 'application/json, text/html;q=0.1', 'text/html;q=0, */*']) {
    const answer = await gateway.get(url, { accept: value });
    expect(answer.json()).toEqual({ data: { outfits: { count: 45 } } });
  }
});

test('the page is for those who may come in', async () => {
  expect((await getPage({ authorization: 'Bearer nonsense' })).statusCode).toBe(401);
  const limited = await open({ RATE_LIMIT: '1/day' });
  for (const status of [200, 429]) {
    expect((await limited.get('/graphql', { accept })).statusCode).toBe(status);
  }
});
