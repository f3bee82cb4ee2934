// GraphiQL beyond its page: the schema as text, the cost of a question, and the examples.
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { generateOutfits } from '../bench/outfits/generate.ts';
import { examples } from '../src/graphql/graphiql-examples.ts';
import { openGateway, type TestGateway } from './gateway.ts';
import { secret, signIn } from './tokens.ts';

const sdlPath = '/graphql/schema.graphql';
const json = { 'content-type': 'application/json' };
let gateway: TestGateway;
beforeAll(async () => {
  const rows = [...generateOutfits({ outfits: 45, users: 9 })];
  gateway = await openGateway('PostgreSQL', rows, { AUTH_JWT_SECRET: secret });
});
afterAll(() => gateway.close());

describe('the schema as text', () => {
  test('is schema.graphql, byte for byte, for everyone', async () => {
    for (const accept of ['*/*', 'text/html', 'application/json']) {
      const response = await gateway.get(sdlPath, { accept });
      expect(response.statusCode).toBe(200);
      expect(response.headers['content-type']).toBe('text/plain; charset=utf-8');
      const file = readFileSync(new URL('../src/graphql/schema.graphql', import.meta.url), 'utf8');
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
    'is not there with %j, and is not linked',
    async (environment) => {
      const closed = await openGateway('PostgreSQL', [], environment);
      try {
        const response = await closed.get(sdlPath);
        expect(response.statusCode).toBe(404);
        expect(response.body).toBe('{"detail":"Not found."}');
        const page = await closed.get('/graphql', { accept: 'text/html' });
        expect(page.body).not.toContain('"hasSchema":true');
      } finally {
        await closed.close();
      }
    },
  );
});

describe('the cost of a question', () => {
  const ask = async (headers: Record<string, string>, payload: object, on = gateway) =>
    on.app.inject({ method: 'POST', url: '/graphql', headers: { ...json, ...headers }, payload });
  const query =
    'query ($first: Int) { outfitConnection(first: $first) { edges { node { title } } } }';

  test('is told to whoever asks for it, and changes nothing else of the answer', async () => {
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
    const closed = await openGateway('PostgreSQL', [], { GRAPHIQL: 'off' });
    try {
      const response = await ask(
        { 'graphql-cost': '1' },
        { query: '{ outfits { count } }' },
        closed,
      );
      expect(response.headers).not.toHaveProperty('graphql-cost');
    } finally {
      await closed.close();
    }
  });
});

describe('the examples', () => {
  test.each(examples.filter(({ query }) => !query.includes('subscription')))(
    'run: $name',
    async ({ query, variables }) => {
      const response = await gateway.app.inject({
        method: 'POST',
        url: '/graphql',
        headers: await signIn(1),
        payload: { query, variables },
      });
      const { data, errors } = response.json();
      expect(errors).toBeUndefined();
      expect(Object.values(data)).not.toContain(null);
    },
  );
});

describe('the page', () => {
  test('has history, the examples, and a hint how to get a token', async () => {
    const { body } = await gateway.get('/graphql', { accept: 'text/html' });
    const [, history] = /([\w$]+)=\{title:"History",/.exec(body) ?? [];
    expect(body).toContain(`plugins:[${history},`);
    for (const { name } of examples) expect(body).toContain(JSON.stringify(name));
    expect(body).toContain('npm run token -- --user 1');
    expect(body).toContain('"hasSchema":true');
  });
});
