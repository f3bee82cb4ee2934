// /api/openapi.json: valid, with an example of a body that is taken, for any settings and paths.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Validator } from '@seriousme/openapi-schema-validator';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { makeFolder } from '../support/cli/folder.ts';
import { openBeside, type TestGateway, useGateway } from '../support/gateway.ts';
import { createChecker, type Json } from '../support/http/openapi-answers.ts';
import { secret, signIn } from '../support/http/tokens.ts';
import { startLegacyService } from '../support/legacy/legacy-service.ts';
import { openBefore } from '../support/legacy/two-services.ts';

const rows = [...generateOutfits({ outfits: 45, users: 9 })];
const path = '/api/outfits/';

const documentOf = async (gateway: TestGateway, headers = {}): Promise<Json> => {
  const response = await gateway.get('/api/openapi.json', headers);
  expect(response.statusCode).toBe(200);
  return response.json();
};

const gateway = useGateway('PostgreSQL', rows, { AUTH_JWT_SECRET: secret });
const open = (environment: Record<string, string>) => openBeside(gateway, environment);
let document: Json;
let signedIn: Record<string, string>;
beforeAll(async () => {
  document = await documentOf(gateway);
  signedIn = await signIn(rows[0]?.userId);
});

test('the document on PostgreSQL is valid OpenAPI 3.1, and has what linters ask for', async () => {
  expect(await new Validator().validate(document)).toEqual({ valid: true });
  expect(document).toMatchObject({
    openapi: '3.1.0',
    info: { license: { identifier: 'MIT' }, contact: { name: expect.any(String) } },
    servers: [{ url: '/' }],
  });
  expect(Object.keys(document['paths'] ?? {})).toEqual([path, '/api/outfits/{id}/']);
  const { get, post } = document['paths']?.[path] ?? {};
  expect(Object.keys(document['paths']?.[path] ?? {})).toEqual(['get', 'post']);
  const tags = ['Outfit List'];
  const summary = 'The outfits that users have published, page by page.';
  expect(get).toMatchObject({ operationId: 'listOutfits', tags, summary, security: [] });
  expect(post).toMatchObject({
    operationId: 'createOutfit',
    tags,
    summary: 'Publishes an outfit of the viewer.',
    security: [{ bearer: [] }],
  });
});

test('the document on PostgreSQL says what a page, an ordering and a body may be', () => {
  const { parameters } = document['paths']?.[path]?.['get'] ?? {};
  const [ordering, page] = parameters as unknown as Json[];
  const fields = ['created', 'id', 'like_count', 'modified'];
  const choices = fields.flatMap((field) => [field, `-${field}`]);
  expect(ordering?.['schema']?.['enum']).toEqual(expect.arrayContaining(choices));
  expect(ordering?.['schema']?.['enum']).toHaveLength(choices.length);
  expect(page?.['schema']).toMatchObject({ anyOf: [{ type: 'integer' }, { const: 'last' }] });
  const body = document['components']?.['schemas']?.['CreateOutfitBody'];
  const creation_device = { enum: ['android', 'ios', 'web'] };
  expect(body).toMatchObject({ required: ['image_key'], properties: { creation_device } });
});

test('the document on PostgreSQL has an example of a body that is taken, in both types', async () => {
  const { content = {} } = document['paths']?.[path]?.['post']?.['requestBody'] ?? {};
  expect(Object.keys(content)).toEqual(['application/json', 'application/x-www-form-urlencoded']);
  const { properties = {} } = document['components']?.['schemas']?.['CreateOutfitBody'] ?? {};
  const examples = Object.entries(properties).flatMap(([name, { examples }]) =>
    examples ? [[name, examples[0]]] : [],
  );
  for (const type of Object.keys(content)) {
    const given: Record<string, string> = Object.fromEntries(examples);
    if (!type.endsWith('json')) delete given['video'];
    const payload = type.endsWith('json') ? JSON.stringify(given) : `${new URLSearchParams(given)}`;
    const headers = { ...signedIn, 'content-type': type };
    const response = await gateway.app.inject({ method: 'POST', url: path, headers, payload });
    expect(response.statusCode).toBe(201);
    const { image_key: key, ...others } = given;
    const image_key = `https://media.example.com/${key}`;
    expect(response.json()).toMatchObject({
      ...others,
      image_key,
      image_original_url: image_key,
    });
  }
});

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
const unknown = `Bearer ${part({ alg: 'RS256', kid: 'a' })}.${part({ sub: '1' })}.AA`;

test.each([
  ['nobody can sign in', {}, {}, ['POST'], 401],
  ['WRITES=off', { WRITES: 'off', AUTH_JWT_SECRET: secret }, {}, ['POST'], 503],
  [
    'keys cannot be fetched',
    { AUTH_JWKS_URL: 'http://127.0.0.1:1/jwks.json' },
    { authorization: unknown },
    ['GET', 'POST', 'OPTIONS', 'DELETE'],
    503,
  ],
])('no answer contradicts it where %s', async (_case, settings, headers, methods, status) => {
  const gateway = await open(settings);
  const check = createChecker(await documentOf(gateway));
  for (const method of methods) {
    const response = await gateway.app.inject({ method: method as 'GET', url: path, headers });
    expect(response.statusCode).toBe(status);
    check(method, path, response);
  }
});

test('says where the paths are, and that they are deprecated', async () => {
  const settings = { REST_DEPRECATED: '2027-01-31', PUBLIC_URL: 'https://shop.example' };
  const document = await documentOf(await open(settings));
  expect(document['servers']).toEqual([{ url: 'https://shop.example' }]);
  const operations = Object.values(document['paths']?.[path] ?? {});
  expect(operations.map(({ deprecated }) => deprecated)).toEqual([true, true]);
});

test.each([
  ['private', [{}, { bearer: [] }]],
  ['public', []],
])('with LIKERS=%s, a path with likers takes the credentials %j', async (LIKERS, security) => {
  const REST_DOCUMENTS = join(makeFolder(onTestFinished), 'fans.graphql');
  writeFileSync(
    REST_DOCUMENTS,
    'query Fans($id: Int!) @route(path: "/api/fans/:id/") { record: outfit(databaseId: $id) { likers { totalCount } } }',
  );
  const { paths } = await documentOf(
    await open({ LIKERS, AUTH_JWT_SECRET: secret, REST_DOCUMENTS }),
  );
  expect(paths?.['/api/fans/{id}/']?.['get']?.['security']).toEqual(security);
});

test('is a file like others: 304, HEAD, and no other method', async () => {
  const { app, get } = gateway;
  const here = await get('/api/openapi.json', { host: 'one.test' });
  expect(here.headers).toMatchObject({
    'content-type': 'application/json',
    'cache-control': 'no-cache',
  });
  const etag = String(here.headers['etag']);
  const again = await get('/api/openapi.json', { host: 'one.test', 'if-none-match': etag });
  expect(again.statusCode).toBe(304);
  const url = '/api/openapi.json';
  const head = await app.inject({ method: 'HEAD', url, headers: { host: 'one.test' } });
  expect(head.headers).toMatchObject({ etag, 'content-length': here.headers['content-length'] });
  for (const method of ['POST', 'DELETE', 'OPTIONS'] as const) {
    const response = await app.inject({ method, url });
    expect(response.statusCode).toBe(405);
    expect(response.headers['allow']).toBe('GET, HEAD');
    expect(response.json()).toEqual({ detail: `Method "${method}" not allowed.` });
  }
  expect((await get(url, { host: 'a b' })).statusCode).toBe(400);
  expect((await get(url, { authorization: 'Bearer nobody' })).statusCode).toBe(401);
  const limited = await open({ RATE_LIMIT: '1/day' });
  for (const status of [200, 429]) expect((await limited.get(url)).statusCode).toBe(status);
});

test.each([
  ['shadow', 'legacy'],
  ['canary:100', 'gateway'],
])(
  'in LEGACY_MODE=%s it comes from the service that answers the listing: the %s',
  async (mode, server) => {
    const service = await startLegacyService([]);
    onTestFinished(() => service.close());
    const gateway = await openBefore('PostgreSQL', service.base, { LEGACY_MODE: mode });
    onTestFinished(() => gateway.close());
    for (const url of [path, '/api/openapi.json']) {
      expect((await gateway.get(url)).headers['x-served-by']).toBe(server);
    }
    if (server === 'legacy') return;
    const { body } = await gateway.get('/api/openapi.json');
    expect(body).not.toMatch(/legacy|served-by|old service/i);
    service.fault = 'closing early';
    const write = await gateway.app.inject({ method: 'POST', url: path });
    const { 'x-served-by': _side, ...headers } = write.headers;
    expect(write.statusCode).toBe(502);
    const answer = { ...write, body: write.body, headers };
    createChecker(JSON.parse(body))('POST', path, answer, 'default');
  },
);
