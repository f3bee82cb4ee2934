// /api/openapi.json: what it says of an answer is true of the answer, for every status.
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import ajvFormats from 'ajv-formats';
import type { InjectOptions, LightMyRequestResponse } from 'fastify';
import { parse } from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { generateOutfits } from '../src/demo/generate.ts';
import { unavailable } from '../src/errors.ts';
import { routes as ownRoutes, type Route } from '../src/rest/routes.ts';
import { openGateway, type TestGateway } from './gateway.ts';
import { laneKinds } from './lane.ts';
import { startLegacyService } from './legacy-service.ts';
import { openBefore } from './old-side.ts';
import { extend } from './schema-extension.ts';
import { secret, signIn } from './tokens.ts';

type Json = { readonly [Key in string]: Json } & { readonly [index: number]: Json };

const rows = [...generateOutfits({ outfits: 45, users: 9 })];
const path = '/api/outfits/';
const image = `https://media.example.com/${rows[0]?.imageKey}`;

const documentOf = async (gateway: TestGateway, headers = {}): Promise<Json> => {
  const response = await gateway.get('/api/openapi.json', headers);
  expect(response.statusCode).toBe(200);
  return response.json();
};

/** Every object has all its fields in its schema, for the tests. */
function close(schema: unknown): unknown {
  if (typeof schema !== 'object' || schema === null) return schema;
  if (Array.isArray(schema)) return schema.map(close);
  const closed = Object.fromEntries(
    Object.entries(schema).map(([name, value]) => [
      name,
      name === 'example' ? value : close(value),
    ]),
  );
  const isOpen = 'properties' in schema && !('additionalProperties' in schema);
  return isOpen ? { ...closed, additionalProperties: false } : closed;
}

const toPointer = (key: string) => key.replaceAll('~', '~0').replaceAll('/', '~1');

/** Compares an answer with what the document says of such a one. */
function check(document: Json, place: string[], { headers, body }: LightMyRequestResponse): Json {
  const described = place.reduce<Json | undefined>((inner, key) => inner?.[key], document);
  if (!described) throw new Error(`There is no ${place.join(' ')}.`);
  const ajv = new Ajv2020({ strict: false });
  ajvFormats.default(ajv);
  ajv.addSchema(close(document) as object, 'document');
  const expectValid = (keys: string[], value: unknown) => {
    const validate = ajv.compile({ $ref: `document#/${keys.map(toPointer).join('/')}` });
    validate(value);
    expect(validate.errors).toBeNull();
  };
  for (const [name, given] of Object.entries(described['headers'] ?? {})) {
    const isShared = '$ref' in given;
    const keys = isShared ? ['components', 'headers', name] : [...place, 'headers', name];
    const header = keys.reduce<Json | undefined>((inner, key) => inner?.[key], document);
    const value = headers[name.toLowerCase()];
    if (header?.['required']) expect(headers).toHaveProperty(name.toLowerCase());
    if (value === undefined) continue;
    const isNumber = String(header?.['schema']?.['type']) === 'integer';
    expectValid([...keys, 'schema'], isNumber ? Number(value) : value);
  }
  const content = described['content'];
  if (!content) expect(body).toBe('');
  else {
    expect(headers['content-type']).toBe('application/json');
    expectValid([...place, 'content', 'application/json', 'schema'], JSON.parse(body));
  }
  return described;
}

const wrongFields = [
  ...['title', 'description', 'image_key', 'image_original_url', 'private'],
  ...['background_color', 'video', 'creation_device'],
];
const json = { 'content-type': 'application/json' };
const form = { 'content-type': 'application/x-www-form-urlencoded' };
const nobody = { authorization: 'Bearer nobody' };

const reads: Record<string, [status: number, url: string, headers: object, example?: string]> = {
  'a page': [200, path, {}],
  'the last page': [200, `${path}?page=last&ordering=-like_count`, {}],
  'a page that has not changed': [304, path, { 'if-none-match': '*' }],
  'an ordering that there is not': [400, `${path}?ordering=nope`, {}, 'ordering'],
  'a host that cannot be': [400, path, { host: 'a b' }, 'invalidHost'],
  'a token that does not hold': [401, path, nobody, 'invalidToken'],
  'a page past the end': [404, `${path}?page=99`, {}, 'invalidPage'],
  'another type': [406, path, { accept: 'application/xml' }, 'notAcceptable'],
};

const writes: Record<string, [status: number, request: InjectOptions, example?: string]> = {
  JSON: [201, { headers: json, payload: { image_key: image, title: 'A 👗', private: true } }],
  'a form': [201, { headers: form, payload: `image_key=${encodeURIComponent(image)}&video=` }],
  'no JSON': [400, { headers: json, payload: '{' }, 'invalidJson'],
  'a list': [400, { headers: json, payload: '[]' }, 'notAnObject'],
  'nothing right': [
    400,
    { headers: json, payload: Object.fromEntries(wrongFields.map((name) => [name, []])) },
    'invalidFields',
  ],
  'no image': [400, { headers: form, payload: 'title=a' }],
  'a key that cannot be': [
    400,
    { headers: { ...json, 'idempotency-key': 'é' }, payload: { image_key: image } },
    'invalidKey',
  ],
  'no token': [401, { headers: { authorization: '' } }, 'notAuthenticated'],
  'a token that does not hold': [401, { headers: nobody }, 'invalidToken'],
  'another type of answer': [406, { headers: { accept: 'application/xml' } }, 'notAcceptable'],
  'a megabyte and more': [
    413,
    { headers: json, payload: `"${'x'.repeat(1_100_000)}"` },
    'bodyTooLarge',
  ],
  'another type of body': [
    415,
    { headers: { 'content-type': 'text/plain' }, payload: 'a' },
    'unsupportedMediaType',
  ],
  'an encoded body': [
    415,
    { headers: { ...json, 'content-encoding': 'gzip' }, payload: 'a' },
    'unsupportedEncoding',
  ],
};

describe.each(laneKinds)('the document on %s', (kind) => {
  let gateway: TestGateway;
  let document: Json;
  let signedIn: Record<string, string>;
  beforeAll(async () => {
    gateway = await openGateway(kind, rows, { AUTH_JWT_SECRET: secret });
    document = await documentOf(gateway);
    signedIn = await signIn(rows[0]?.userId);
  });
  afterAll(() => gateway.close());

  const operationOf = (method: string) => ['paths', path, method];
  const expectExample = (described: Json, name: string | undefined, body: string) => {
    if (!name) return;
    const { value } = described['content']?.['application/json']?.['examples']?.[name] ?? {};
    expect(JSON.parse(body)).toEqual(value);
  };

  test('is valid OpenAPI 3.1', async () => {
    expect(await new Validator().validate(document)).toEqual({ valid: true });
    expect(document['openapi']).toBe('3.1.0');
  });

  test.each(Object.entries(reads))('says what %s is answered with', async (_name, asked) => {
    const [status, url, headers, example] = asked;
    const response = await gateway.get(url, headers as Record<string, string>);
    expect(response.statusCode).toBe(status);
    const described = check(document, [...operationOf('get'), 'responses', `${status}`], response);
    expectExample(described, example, response.body);
    const head = await gateway.app.inject({
      method: 'HEAD',
      url,
      headers: { host: 'shop.test', ...headers },
    });
    expect(head.statusCode).toBe(status);
    check(document, [...operationOf('head'), 'responses', `${status}`], head);
  });

  test.each(Object.entries(writes))(
    'says what POST of %s is answered with',
    async (_name, sent) => {
      const [status, { headers, ...request }, example] = sent;
      const response = await gateway.app.inject({
        method: 'POST',
        url: path,
        ...request,
        headers: { ...signedIn, ...headers },
      });
      expect(response.statusCode).toBe(status);
      const described = check(
        document,
        [...operationOf('post'), 'responses', `${status}`],
        response,
      );
      expectExample(described, example, response.body);
    },
  );

  test('says what a key that is used twice is answered with', async () => {
    const post = (title: string) =>
      gateway.app.inject({
        method: 'POST',
        url: path,
        headers: { ...signedIn, 'idempotency-key': 'once' },
        payload: { image_key: image, title },
      });
    await post('a');
    const response = await post('b');
    expect(response.statusCode).toBe(422);
    const described = check(document, [...operationOf('post'), 'responses', '422'], response);
    expectExample(described, 'keyReused', response.body);
  });

  test.each([
    ['nobody', 200, {}],
    ['a token that does not hold', 401, nobody],
    ['another type', 406, { accept: 'application/xml' }],
    ['a host that cannot be', 400, { host: 'a b' }],
  ])('says what OPTIONS of %s is answered with', async (_name, status, headers) => {
    const response = await gateway.app.inject({ method: 'OPTIONS', url: path, headers });
    expect(response.statusCode).toBe(status);
    check(document, [...operationOf('options'), 'responses', `${status}`], response);
  });

  test('says what OPTIONS tells of the fields to whoever may write', async () => {
    const response = await gateway.app.inject({ method: 'OPTIONS', url: path, headers: signedIn });
    expect(response.json()).toHaveProperty('actions');
    check(document, [...operationOf('options'), 'responses', '200'], response);
  });

  test('says what other methods are answered with', async () => {
    const response = await gateway.app.inject({ method: 'DELETE', url: path });
    expect(response.statusCode).toBe(405);
    const described = check(document, [...operationOf('x-other-methods'), '405'], response);
    expectExample(described, 'methodNotAllowed', response.body);
  });

  test('names no status that GET and POST have not been seen to give', () => {
    const seen = {
      get: Object.values(reads).map(([status]) => status),
      post: [...Object.values(writes).map(([status]) => status), 422],
    };
    // The last two are seen below.
    for (const [method, statuses] of Object.entries(seen)) {
      const { responses = {} } = document['paths']?.[path]?.[method] ?? {};
      expect(new Set(Object.keys(responses).map(Number))).toEqual(new Set([...statuses, 500, 503]));
    }
  });

  test('has real answers for its examples, as they are now', async () => {
    const now = await documentOf(gateway);
    const exampleOf = (method: string, status: string) =>
      now['paths']?.[path]?.[method]?.['responses']?.[status]?.['content']?.['application/json']?.[
        'example'
      ];
    const page = (await gateway.get(path)).json();
    expect(page.results.some(({ title }: { title: string }) => title === 'A 👗')).toBe(true);
    expect(exampleOf('get', '200')).toEqual(page);
    expect(exampleOf('post', '201')).toEqual(page.results[0]);
    const options = await gateway.app.inject({ method: 'OPTIONS', url: path });
    expect(exampleOf('options', '200')).toEqual(options.json());
  });

  test('has an example of a body that is taken, in both types', async () => {
    const { content = {} } = document['paths']?.[path]?.['post']?.['requestBody'] ?? {};
    expect(Object.keys(content)).toEqual(['application/json', 'application/x-www-form-urlencoded']);
    for (const [type, { example }] of Object.entries(content)) {
      const given = example as unknown as Record<string, string>;
      const payload = type.endsWith('json')
        ? JSON.stringify(given)
        : `${new URLSearchParams(given)}`;
      const headers = { ...signedIn, 'content-type': type };
      const response = await gateway.app.inject({ method: 'POST', url: path, headers, payload });
      expect(response.statusCode).toBe(201);
      expect(response.json()).toMatchObject(given);
    }
  });
});

/** A gateway for one test. */
async function withGateway(
  environment: Record<string, string>,
  work: (gateway: TestGateway) => Promise<void>,
  options = {},
): Promise<void> {
  const gateway = await openGateway('PostgreSQL', rows, environment, options);
  try {
    await work(gateway);
  } finally {
    await gateway.close();
  }
}

test.each([
  ['a fault of ours', 500, () => new Error('a fault')],
  ['a request without database', 503, unavailable],
])('says what %s is answered with, and has no examples then', async (_name, status, makeError) => {
  const fail = () => {
    throw makeError();
  };
  const schema = extend('extend type Query { unused: Int }', {
    'Query.outfits': fail,
    'Mutation.createOutfit': fail,
  });
  const work = async (gateway: TestGateway) => {
    const document = await documentOf(gateway);
    const { responses } = document['paths']?.[path]?.['get'] ?? {};
    expect(responses?.['200']?.['content']?.['application/json']).not.toHaveProperty('example');
    const headers = await signIn(rows[0]?.userId);
    for (const method of ['GET', 'HEAD', 'POST'] as const) {
      const response = await gateway.app.inject({ method, url: path, headers });
      expect(response.statusCode).toBe(status);
      check(document, ['paths', path, method.toLowerCase(), 'responses', `${status}`], response);
    }
  };
  await withGateway({ AUTH_JWT_SECRET: secret }, work, { schema });
});

test('says what too many requests are answered with, and counts as one itself', async () => {
  await withGateway({ RATE_LIMIT: '2/day' }, async (gateway) => {
    const document = await documentOf(gateway);
    expect((await gateway.get(path)).statusCode).toBe(200);
    const response = await gateway.get(path);
    expect(response.statusCode).toBe(429);
    check(document, ['paths', path, 'get', 'responses', '429'], response);
    expect((await gateway.get('/api/openapi.json')).statusCode).toBe(429);
  });
});

test('says what the settings say', async () => {
  const settings = {
    UNKNOWN_PARAMETERS: 'refuse',
    WRITES: 'off',
    COMPRESSION: 'all',
    REST_DEPRECATED: '2027-01-31',
    PUBLIC_URL: 'https://shop.example',
  };
  await withGateway(settings, async (gateway) => {
    const document = await documentOf(gateway);
    expect(document['servers']).toEqual([{ url: 'https://shop.example' }]);
    expect(document['components']).not.toHaveProperty('securitySchemes');
    const { get, post } = document['paths']?.[path] ?? {};
    expect(get).toMatchObject({ deprecated: true });
    expect(post).not.toHaveProperty('security');
    const unknown = await gateway.get(`${path}?nope=1`);
    const described = check(document, ['paths', path, 'get', 'responses', '400'], unknown);
    const examples = described['content']?.['application/json']?.['examples'];
    expect(examples?.['unknownParameter']?.['value']).toEqual(unknown.json());
    const write = await gateway.app.inject({ method: 'POST', url: path });
    expect(write.statusCode).toBe(503);
    const refused = check(document, ['paths', path, 'post', 'responses', '503'], write);
    const { writesOff } = refused['content']?.['application/json']?.['examples'] ?? {};
    expect(writesOff?.['value']).toEqual(write.json());
    const named = document['components']?.['headers'];
    const { vary, deprecation } = (await gateway.get(path)).headers;
    expect([named?.['Vary']?.['example'], named?.['Deprecation']?.['example']]).toEqual([
      vary,
      deprecation,
    ]);
  });
});

test('never shows what only its owner sees, whoever asks', async () => {
  const settings = { PRIVATE_OUTFITS: 'owner', AUTH_JWT_SECRET: secret, PAGE_SIZE: '1000' };
  await withGateway(settings, async (gateway) => {
    for (const { userId } of rows.filter((row) => row.private)) {
      const headers = await signIn(userId);
      expect((await gateway.get(path, headers)).body).toContain('"private":true');
      const document = await gateway.get('/api/openapi.json', headers);
      expect(document.body).not.toContain('"private":true');
    }
  });
});

test('is a file like others: its own base, 304, HEAD, and no other method', async () => {
  await withGateway({}, async ({ app, get }) => {
    const here = await get('/api/openapi.json', { host: 'one.test' });
    const there = await get('/api/openapi.json', { host: 'two.test:81' });
    expect(here.json().servers).toEqual([{ url: 'http://one.test' }]);
    expect(there.body).toBe(here.body.replaceAll('http://one.test', 'http://two.test:81'));
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
  });
});

test('describes paths of any documents', async () => {
  const documentOfText = (text: string) => parse(text) as never;
  const routes: readonly Route[] = [
    {
      path: '/api/told/',
      name: 'Told',
      description: 'A list.',
      list: documentOfText(
        `query ($needed: Int!, $size: Int! = 3, $flag: Boolean, $word: [String!], $moment: DateTime,
           $orderings: [OutfitOrdering!]) {
           page: told(number: $needed, size: $size, flag: $flag, words: $word, moment: $moment,
             orderings: $orderings) { count next: nextPage previous: previousPage results }
         }`,
      ),
    },
    {
      path: '/api/outfits/',
      name: 'Outfits',
      description: 'Another list.',
      list: documentOfText(
        `query List($page: Int, $flag: Boolean = true) {
           page: outfits(page: $page) {
             count next: nextPage previous: previousPage
             results { id: databaseId ... on Outfit { title @include(if: $flag) } ... on Node { key: id } __typename video }
           }
         }`,
      ),
    },
    {
      path: '/api/outfits/:id/',
      name: 'Outfit',
      description: 'One outfit.',
      record: documentOfText(
        'query ($id: Int!) { record: outfit(databaseId: $id) { id: databaseId title owner: user { id: databaseId } } }',
      ),
    },
  ];
  const schema = extend(
    `extend type Query {
       "What was told."
       told("How often." number: Int, size: Int, flag: Boolean, words: [String!], moment: DateTime,
         orderings: [OutfitOrdering!]): Told!
     }
     type Told { count: Int! nextPage: Int previousPage: Int results: [[String!]]! }`,
    { 'Query.told': () => ({ count: 1, results: [['a'], null] }) },
  );
  const work = async (gateway: TestGateway) => {
    const document = await documentOf(gateway);
    expect(await new Validator().validate(document)).toEqual({ valid: true });
    const told = document['paths']?.['/api/told/']?.['get'];
    expect(told?.['operationId']).toBe('getApiTold');
    expect(told?.['parameters']).toMatchObject([
      { name: 'needed', in: 'query', required: true, description: 'How often.' },
      { name: 'size', schema: { type: 'integer', default: 3 } },
      { name: 'flag', schema: { type: 'boolean' } },
      { name: 'word', schema: { type: 'array', items: { type: 'string' } } },
      { name: 'moment', schema: { $ref: '#/components/schemas/DateTime' } },
      { name: 'orderings', schema: { type: 'array', items: { type: 'string' } } },
      { name: 'If-None-Match', in: 'header' },
    ]);
    const one = document['paths']?.['/api/outfits/{id}/'];
    expect(one?.['get']?.['parameters']?.[0]).toMatchObject({ in: 'path', required: true });
    const first = rows[0]?.id;
    for (const [name, url, status] of [
      ['/api/told/', '/api/told/?needed=1', '200'],
      ['/api/told/', '/api/told/', '400'],
      ['/api/told/', '/api/told/?needed=1&flag=nope', '400'],
      ['/api/outfits/', '/api/outfits/', '200'],
      ['/api/outfits/', '/api/outfits/?flag=0', '200'],
      ['/api/outfits/{id}/', `/api/outfits/${first}/`, '200'],
      ['/api/outfits/{id}/', '/api/outfits/0/', '404'],
    ] as const) {
      const response = await gateway.get(url);
      expect([url, `${response.statusCode}`]).toEqual([url, status]);
      check(document, ['paths', name, 'get', 'responses', status], response);
    }
    const { id } = (await gateway.get('/api/outfits/')).json().results[0];
    expect(
      one?.['get']?.['responses']?.['200']?.['content']?.['application/json']?.['example'],
    ).toEqual((await gateway.get(`/api/outfits/${id}/`)).json());
  };
  await withGateway({}, work, { schema, routes });
});

test('tells paths apart that ask the same document, or have the same name', async () => {
  const [own] = ownRoutes;
  if (!own) throw new Error('There is no path.');
  const routes = [own, { ...own, path: '/api/looks/', description: 'The same.' }];
  await withGateway(
    {},
    async (gateway) => {
      const document = await documentOf(gateway);
      expect(await new Validator().validate(document)).toEqual({ valid: true });
      const ids = Object.values(document['paths'] ?? {}).flatMap((item) =>
        ['get', 'head', 'options', 'post'].map((method) => item[method]?.['operationId']),
      );
      expect(ids).toHaveLength(8);
      expect(new Set(ids).size).toBe(8);
      expect(ids).toContain('listOutfits');
      expect(document['tags']).toEqual([{ name: own.name, description: own.description }]);
    },
    { routes },
  );
});

test.each([
  ['shadow', 'legacy'],
  ['canary:0', 'legacy'],
  ['canary:100', 'gateway'],
  ['mirror', 'gateway'],
])('in LEGACY_MODE=%s it is given by whoever answers the listing: the %s', async (mode, server) => {
  const service = await startLegacyService([]);
  const gateway = await openBefore('PostgreSQL', service.base, { LEGACY_MODE: mode });
  try {
    for (const url of [path, '/api/openapi.json']) {
      expect((await gateway.get(url)).headers['x-served-by']).toBe(server);
    }
  } finally {
    await gateway.close();
    await service.close();
  }
});
