// /graphql as HTTP: the audits of the specification, methods and bodies.
import type { InjectOptions, LightMyRequestResponse } from 'fastify';
import { GraphQLSchema } from 'graphql';
import { serverAudits } from 'graphql-http';
import { beforeAll, describe, expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { schema } from '../../src/graphql/schema.ts';
import { openForTest, useGateway } from '../support/gateway.ts';
import { extend } from '../support/graphql/schema-extension.ts';
import { baseOfApp } from '../support/http/event-stream.ts';
import { getGraphql, postGraphql } from '../support/http/graphql.ts';

const gateway = useGateway('PostgreSQL', [...generateOutfits({ outfits: 5, users: 2 })]);
let url: string;
beforeAll(async () => {
  url = `${await baseOfApp(gateway.app)}/graphql`;
});

const send = (options: InjectOptions): Promise<LightMyRequestResponse> =>
  gateway.app.inject({ url: '/graphql', ...options });
const post = (payload: object | string, headers = {}) => postGraphql(gateway.app, payload, headers);
const json = { 'content-type': 'application/json' };
const query = '{ outfits { count } }';

/** A proper failure is JSON that says what is wrong, and nothing about the inside. */
function expectErrors(response: LightMyRequestResponse, status: number): void {
  expect(response.statusCode).toBe(status);
  expect(response.headers['content-type']).toMatch(/^application\/(graphql-response\+)?json/);
  const { errors } = response.json();
  expect(errors).toHaveLength(1);
  expect(errors[0].message).toMatch(/\w{3}/);
  expect(response.body).not.toMatch(/Unexpected error|node_modules|\.[jt]s:\d/);
}

test('every audit of graphql-http passes', async () => {
  const audits = serverAudits({ url });
  const failed: string[] = [];
  for (const audit of audits) {
    const result = await audit.fn();
    if (result.status !== 'ok') failed.push(`${result.name}: ${result.reason}`);
  }
  expect(failed).toEqual([]);
  expect(audits.length).toBeGreaterThanOrEqual(61);
});

describe('methods', () => {
  test('GET answers a query, and HEAD its status and headers without a body', async () => {
    for (const accept of ['application/json', 'application/graphql-response+json', '*/*']) {
      const get = await getGraphql(gateway.app, { query }, { accept });
      expect(get.statusCode).toBe(200);
      expect(get.json()).toEqual({ data: { outfits: { count: 5 } } });
      const target = `/graphql?${new URLSearchParams({ query })}`;
      const head = await send({ method: 'HEAD', url: target, headers: { accept } });
      const ownOfEach = { date: '', 'x-request-id': '' };
      expect({ ...head.headers, ...ownOfEach }).toEqual({ ...get.headers, ...ownOfEach });
      expect(head.statusCode).toBe(200);
      expect(head.body).toBe('');
    }
    const response = await fetch(`${url}?query=${encodeURIComponent(query)}`, { method: 'HEAD' });
    expect(response.status).toBe(200);
    expect(Number(response.headers.get('content-length'))).toBeGreaterThan(10);
  });

  test.each(['GET', 'POST', 'OPTIONS'] as const)(
    '%s of the path with a slash redirects, with the query as it was',
    async (method) => {
      const response = await send({ method, url: '/graphql/?query={a}&x=%zz' });
      expect(response.statusCode).toBe(308);
      expect(response.headers.location).toBe('/graphql?query={a}&x=%zz');
      const without = await send({ method, url: '/graphql/' });
      expect(without.headers.location).toBe('/graphql');
    },
  );

  test('OPTIONS names the methods', async () => {
    const response = await send({ method: 'OPTIONS' });
    expect(response.statusCode).toBe(204);
    expect(response.headers['allow']).toBe('GET, HEAD, POST, OPTIONS');
    expect(response.body).toBe('');
  });

  test.each(['PUT', 'DELETE', 'PATCH', 'TRACE', 'PROPFIND'])(
    '%s is 405 with Allow',
    async (name) => {
      const method = name as 'PUT';
      const response = await send({ method, headers: json, payload: '{"query":1}' });
      expectErrors(response, 405);
      expect(response.headers['allow']).toMatch(/GET.*POST/);
    },
  );
});

describe('bodies', () => {
  test.each(['"id":"x"', '"documentId":null,"doc_id":1', '"__proto__":{"operationName":1}'])(
    'bodies with %s beside the query are read without it, as query strings are',
    async (others) => {
      const response = await post(`{"query":"${query}",${others}}`);
      expect(response.json()).toEqual({ data: { outfits: { count: 5 } } });
    },
  );

  test('bodies in any encoding but identity are 415', async () => {
    for (const encoding of ['gzip', 'br', 'GZIP, identity']) {
      const response = await post({ query }, { 'content-encoding': encoding });
      expectErrors(response, 415);
      expect(response.json().errors[0].message).toContain(`Content-Encoding is "${encoding}"`);
    }
    expect((await post({ query }, { 'content-encoding': 'Identity' })).statusCode).toBe(200);
  });

  test('bodies with a wrong Content-Length are 400', async () => {
    expectErrors(await post(JSON.stringify({ query }), { 'content-length': '9' }), 400);
  });
});

describe('subscriptions', () => {
  test.each([
    ['subscription { outfits { count } }', undefined],
    ['subscription A { outfits { count } } query B { __typename }', 'A'],
  ])('subscriptions need a stream of events, which %s is told', async (text, operationName) => {
    // The last one is what Apollo Client sends.
    for (const accept of [
      'application/json',
      'application/graphql-response+json',
      'multipart/mixed;boundary=graphql;subscriptionSpec=1.0,application/graphql-response+json,application/json;q=0.9',
    ]) {
      const response = await post({ query: text, operationName }, { accept });
      expectErrors(response, 400);
      expect(response.json().errors[0]).toMatchObject({
        message: expect.stringContaining('Accept: text/event-stream'),
        extensions: { code: 'SUBSCRIPTION_NEEDS_STREAM' },
      });
    }
  });

  test('subscriptions do not keep a query of the same document from being answered', async () => {
    const text = 'subscription A { outfits { count } } query B { __typename }';
    const response = await post({ query: text, operationName: 'B' });
    expect(response.json()).toEqual({ data: { __typename: 'Query' } });
  });

  test('subscriptions are not supported by a schema that has none', async () => {
    const without = new GraphQLSchema({ ...schema.toConfig(), subscription: null });
    const other = await openForTest('PostgreSQL', [], {}, { schema: without });
    const { errors } = await other.post('subscription { outfits { count } }');
    expect(errors?.[0]?.extensions?.code).toBe('SUBSCRIPTIONS_NOT_SUPPORTED');
  });

  test('subscriptions have no HEAD', async () => {
    const url = `/graphql?query=${encodeURIComponent('subscription { outfits { count } }')}`;
    const response = await send({ method: 'HEAD', url, headers: { accept: 'text/event-stream' } });
    expect(response.statusCode).toBe(406);
  });

  test('GET of a mutation is a 405 for a stream of events too', async () => {
    const url = `/graphql?query=${encodeURIComponent('mutation { __typename }')}`;
    const response = await send({ method: 'GET', url, headers: { accept: 'text/event-stream' } });
    expectErrors(response, 405);
    expect(response.json().errors[0].extensions.code).toBe('METHOD_NOT_ALLOWED');
  });
});

describe('what is asked for', () => {
  const result = 'application/graphql-response+json';
  test.each([
    ['application/json;q=0, */*', result],
    ['*/*, application/json;q=0', result],
    ['application/json; charset=utf-8; q=0, application/*', result],
    ['application/json;q=0.5, */*', result],
    ['application/json;q=0.5, application/*;q=0.4, */*', 'application/json'],
    [`${result};q=0, */*`, 'application/json'],
    [`${result};q=0, application/*;q=0.1`, 'application/json'],
    ['application/*;q=0, */*', undefined],
    ['application/json;q=0', undefined],
    ['application/json;q=0, application/*;q=0, text/*', undefined],
    ['application/*;q=0.1, */*;q=0', 'application/json'],
    ['application/json;profile=x;q=0, application/json', 'application/json'],
    ['application/json; charset=utf-8', 'application/json'],
    [`*/*, ${result}`, 'application/json'],
    [`${result}, */*`, result],
    ['text/event-stream;q=0, */*', 'application/json'],
    ['text/event-stream, */*;q=0.9', 'text/event-stream'],
    [`${result}, application/json, text/event-stream, multipart/mixed`, result],
    ['text/event-stream;q=0.5, */*', 'application/json'],
    ['text/event-stream;q=0.5, application/*;q=0.1, */*;q=0.6', 'text/event-stream'],
    ['text/html, application/*;q=0.9, */*', 'text/html'],
    ['text/html;q=0.5, */*;q=0.9, application/*;q=0.4', 'text/html'],
    ['text/html;q=0, */*', 'application/json'],
    ['text/*, application/json;q=0.9', 'application/json'],
  ])('Accept: %s is answered with %s, by the most specific range', async (accept, type) => {
    const response = await gateway.get('/graphql?query={__typename}', { accept });
    expect(response.statusCode).toBe(type ? 200 : 406);
    if (type) expect(response.headers['content-type']).toBe(`${type}; charset=utf-8`);
  });

  test.each<[string, InjectOptions, number]>([
    ['a bad token', { method: 'GET', headers: { authorization: 'Bearer x' } }, 401],
    ['another method', { method: 'PUT' }, 405],
    ['too much', { method: 'POST', headers: json, payload: 'x'.repeat(1_048_577) }, 413],
    ['another type', { method: 'POST', payload: 'x', headers: { 'content-type': 'a/b' } }, 415],
  ])('%s is refused in the type that is preferred', async (_name, options, status) => {
    for (const [accept, type] of [
      ['application/graphql-response+json, application/json;q=0.9', 'graphql-response\\+json'],
      ['application/graphql-response+json;q=0.9, application/json', 'json'],
      ['*/*', 'json'],
    ] as const) {
      const response = await send({ ...options, headers: { ...options.headers, accept } });
      expectErrors(response, status);
      expect(response.headers['content-type']).toMatch(
        new RegExp(`^application/${type}; charset=utf-8$`),
      );
    }
  });

  test('what clients send again, or sent as a batch, is refused in JSON', async () => {
    const accept = 'application/graphql-response+json';
    const limited = await openForTest('PostgreSQL', [], { RATE_LIMIT: '1/day' });
    await limited.get('/graphql', { accept });
    for (const [response, status] of [
      [await post([{ query }], { accept }), 400],
      [await limited.get('/graphql', { accept }), 429],
    ] as const) {
      expectErrors(response, status);
      expect(response.headers['content-type']).toBe('application/json; charset=utf-8');
    }
  });

  test('what fails inside has a code in every type, interpreted, compiled and as an event', async () => {
    const schema = extend('scalar Any extend type Query { broken: Int, unwritable: Any }', {
      'Query.broken': () => {
        throw new Error('hidden');
      },
      // JSON cannot write it: the answer as a whole fails.
      'Query.unwritable': () => 1n,
    });
    const broken = await openForTest('PostgreSQL', [], {}, { schema });
    const code = { extensions: { code: 'INTERNAL_SERVER_ERROR' } };
    const error = { message: 'Internal server error.', ...code };
    const get = (accept: string, field = 'broken') =>
      broken.get(`/graphql?query={${field}}`, { accept });
    for (let time = 0; time < 6; time += 1) {
      for (const type of ['application/json', result]) {
        const { data, errors } = (await get(type)).json();
        expect(data).toEqual({ broken: null });
        expect(errors).toEqual([expect.objectContaining(error)]);
      }
      expect((await get('text/event-stream')).body).toContain(JSON.stringify(code).slice(1, -1));
    }
    for (const type of ['application/json', result]) {
      const answer = await get(type, 'unwritable');
      expect(answer.statusCode).toBe(500);
      expect(answer.headers['content-type']).toBe(`${type}; charset=utf-8`);
      expect(answer.json()).toEqual({ errors: [error] });
    }
  });
});
