// No answer of the REST paths contradicts /api/openapi.json: each status with its headers and body, by what
// is really answered; with as many settings as possible.
import type { FastifyInstance, InjectOptions } from 'fastify';
import { beforeAll, expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { crossOriginWrite, overloaded, timedOut, unavailable } from '../../src/errors.ts';
import { schema as ownSchema } from '../../src/graphql/schema.ts';
import { useGateway } from '../support/gateway.ts';
import { extend, type Resolver } from '../support/graphql/schema-extension.ts';
import { createChecker } from '../support/http/openapi-answers.ts';
import { sendRaw } from '../support/http/raw-http.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const rows = [...generateOutfits({ outfits: 45, users: 9 })];
const path = '/api/outfits/';
const bare = '/api/outfits';
const origin = 'https://app.example.com';
const image = `https://media.example.com/${rows[0]?.imageKey}`;

const json = { 'content-type': 'application/json' };
const form = { 'content-type': 'application/x-www-form-urlencoded' };
const nobody = { authorization: 'Bearer nobody' };
const encoded = { ...json, 'content-encoding': 'gzip' };
const wrongFields = [
  ...['title', 'description', 'image_key', 'image_original_url', 'private'],
  ...['background_color', 'video', 'creation_device'],
];
const allWrong = Object.fromEntries(wrongFields.map((name) => [name, []]));
const large = `"${'x'.repeat(1_100_000)}"`;

type Cases = Record<string, [status: number, request: InjectOptions]>;

const refused: Cases = { 'a host that cannot be': [400, { headers: { host: 'a b' } }] };

const notLetIn: Cases = {
  ...refused,
  'a token that does not hold': [401, { headers: nobody }],
  'another type of answer': [406, { headers: { accept: 'application/xml' } }],
};

const reads: Cases = {
  ...notLetIn,
  'a page': [200, {}],
  'the last page': [200, { url: `${path}?page=last&ordering=-like_count` }],
  'a page that has not changed': [304, { headers: { 'if-none-match': '*' } }],
  'an ordering that there is not': [400, { url: `${path}?ordering=nope` }],
  'a page past the end': [404, { url: `${path}?page=99` }],
};

const writes: Cases = {
  ...notLetIn,
  JSON: [201, { headers: json, payload: { image_key: image, title: 'A 👗', private: true } }],
  'a form': [201, { headers: form, payload: `image_key=${encodeURIComponent(image)}&video=` }],
  'no JSON': [400, { headers: json, payload: '{' }],
  'a list': [400, { headers: json, payload: '[]' }],
  'nothing right': [400, { headers: json, payload: allWrong }],
  'no image': [400, { headers: form, payload: 'title=a' }],
  'a body of another length': [400, { headers: { ...json, 'content-length': '5' }, payload: '{}' }],
  'a key that cannot be': [
    400,
    { headers: { ...json, 'idempotency-key': 'é' }, payload: { image_key: image } },
  ],
  'no token': [401, { headers: { authorization: '' } }],
  'a megabyte and more': [413, { headers: json, payload: large }],
  'another type of body': [415, { headers: { 'content-type': 'text/plain' }, payload: 'a' }],
  'an encoded body': [415, { headers: encoded, payload: 'a' }],
};

/** Every request, by the path and the method. */
const table: [path: string, method: string, cases: Cases][] = [
  [path, 'GET', reads],
  [path, 'HEAD', reads],
  [path, 'POST', writes],
  [path, 'OPTIONS', { ...notLetIn, nobody: [200, {}] }],
  [path, 'DELETE', { ...notLetIn, nobody: [405, {}] }],
  [bare, 'GET', { ...refused, nobody: [301, {}] }],
  [bare, 'HEAD', { ...refused, nobody: [301, {}] }],
  [bare, 'POST', { ...refused, nobody: [308, {}] }],
  [bare, 'OPTIONS', { ...refused, nobody: [308, {}] }],
  [bare, 'DELETE', { ...refused, nobody: [308, {}] }],
];
const cases = table.flatMap(([url, method, named]) =>
  Object.entries(named).map(([name, one]) => [method, url, name, one] as const),
);

const methods = ['GET', 'HEAD', 'POST', 'OPTIONS', 'DELETE'];

const deprecated = {
  deprecation: '@1769817600',
  sunset: 'Sun, 31 Jan 2027 00:00:00 GMT',
  link: '</graphql>; rel="successor-version"',
};
/** As the resolvers of the schema, unless `fail` has an error. */
const failing = { fail: undefined as (() => Error) | undefined };
const fallible = (type: 'Query' | 'Mutation', field: string): Resolver => {
  const parent = type === 'Query' ? ownSchema.getQueryType() : ownSchema.getMutationType();
  const resolve = parent?.getFields()[field]?.resolve;
  return (...given) => {
    if (failing.fail) throw failing.fail();
    return resolve?.(...given);
  };
};

const faults: [status: number, makeError: () => Error][] = [
  [500, () => new Error('a fault')],
  [403, crossOriginWrite],
  [503, unavailable],
  [503, overloaded],
  [503, timedOut],
];

/** Sends bytes, and reads the answer as the client of such a method does: to HEAD there is no body. */
async function askRaw(app: FastifyInstance, method: string, ...parts: string[]) {
  const [head = '', body = ''] = (await sendRaw(app, ...parts)).split('\r\n\r\n', 2);
  const [first = '', ...lines] = head.split('\r\n');
  const headers = lines
    .map((line) => line.split(/: */, 2))
    .map(([a = '', b]) => [a.toLowerCase(), b]);
  return {
    statusCode: Number(first.split(' ')[1]),
    headers: Object.fromEntries(headers),
    body: method === 'HEAD' ? '' : body,
  };
}

const schema = extend('extend type Query { unused: Int }', {
  'Query.outfits': fallible('Query', 'outfits'),
  'Mutation.createOutfit': fallible('Mutation', 'createOutfit'),
});
const settings = {
  AUTH_JWT_SECRET: secret,
  CACHE_MAX_SIZE: '0',
  COMPRESSION: 'all',
  CORS_ORIGINS: origin,
  RATE_LIMIT: '50/day',
  REST_DEPRECATED: '2026-01-31',
  REST_SUNSET: '2027-01-31',
};
const gateway = useGateway('PostgreSQL', rows, settings, { schema });
let check: ReturnType<typeof createChecker>;
let signedIn: Record<string, string>;
beforeAll(async () => {
  await gateway.app.listen({ port: 0, host: '127.0.0.1' });
  check = createChecker((await gateway.get('/api/openapi.json')).json());
  signedIn = await signIn(rows[0]?.userId);
});

let senders = 0;
/** Asks from an address of its own, and as a page of another origin does. */
const ask = async (method: string, path: string, status: number, request: InjectOptions = {}) => {
  senders += 1;
  const response = await gateway.app.inject({
    method: method as 'GET',
    url: path,
    remoteAddress: `10.0.${senders >> 8}.${senders & 255}`,
    ...request,
    headers: { ...(method === 'POST' ? signedIn : {}), origin, ...request.headers },
  });
  expect([method, path, response.statusCode]).toEqual([method, path, status]);
  check(method, path, response);
  const { deprecation, sunset, link } = response.headers;
  expect({ deprecation, sunset, link }).toEqual(status === 204 ? {} : deprecated);
  return response;
};

test.each(cases)('%s %s: %s', async (method, url, _case, [status, request]) => {
  await ask(method, url, status, request);
});

test('OPTIONS describes the fields to a viewer who may write', async () => {
  const response = await ask('OPTIONS', path, 200, { headers: signedIn });
  expect(response.json()).toHaveProperty('actions');
});

test('a key that is used twice', async () => {
  const headers = { 'idempotency-key': 'once' };
  await ask('POST', path, 201, { headers, payload: { image_key: image, title: 'a' } });
  await ask('POST', path, 422, { headers, payload: { image_key: image, title: 'b' } });
});

test.each(faults)('a fault: %s', async (status, makeError) => {
  failing.fail = makeError;
  try {
    for (const method of ['GET', 'HEAD', 'POST']) await ask(method, path, status);
  } finally {
    failing.fail = undefined;
  }
});

test('unreadable, too large and incomplete requests get a documented status', async () => {
  const { app } = gateway;
  const { headersTimeout, requestTimeout } = app.server;
  // What Node looks at every two seconds.
  Object.assign(app.server, { headersTimeout: 1_000, requestTimeout: 1_000 });
  const post = `POST ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: ${signedIn['authorization']}\r\n`;
  const requests: [method: string, url: string, status: number, bytes: string][] = [
    ['POST', path, 408, `${post}Content-Length: 5\r\n\r\n{`],
    ...table.flatMap(([url, method]): [string, string, number, string][] => [
      [method, url, 400, `${method} ${url}?x=\xe9 HTTP/1.1\r\nHost: a\r\n\r\n`],
      [method, url, 431, `${method} ${url}?x=${'x'.repeat(20_000)} HTTP/1.1\r\n\r\n`],
      [method, url, 408, `${method} ${url} HTTP/1.1\r\n`],
    ]),
  ];
  const answers = requests.map(async ([method, url, status, bytes]) => {
    const answer = await askRaw(app, method, bytes);
    expect([method, url, answer.statusCode]).toEqual([method, url, status]);
    check(method, url, answer);
  });
  await Promise.all(answers);
  Object.assign(app.server, { headersTimeout, requestTimeout });
});

test('a compressed page, for a client that accepts no other', async () => {
  const headers = { 'accept-encoding': 'br, identity;q=0' };
  for (const method of ['GET', 'HEAD']) {
    const response = await ask(method, path, 200, { headers });
    expect(response.headers['content-encoding']).toBe('br');
  }
});

test.each([[path], [bare]])('the preflight of %s', async (url) => {
  const preflight = { 'access-control-request-method': 'POST' };
  const headers = { ...preflight, 'access-control-request-headers': 'authorization' };
  await ask('OPTIONS', url, 204, { headers });
  await ask('OPTIONS', url, 204, { headers: preflight });
});

test.each(methods)('more requests than are taken: %s', async (method) => {
  const headers = { origin, ...(method === 'POST' ? await signIn(rows[1]?.userId) : {}) };
  const remoteAddress = `10.9.9.${method.length}`;
  const send = () =>
    gateway.app.inject({ method: method as 'GET', url: path, headers, remoteAddress });
  for (let sent = 0; sent < 50; sent += 1) await send();
  const response = await send();
  expect(response.statusCode).toBe(429);
  check(method, path, response);
});

test.each([
  [500, 'P0001'],
  [503, '53000'],
])('requests cannot be counted: %s, %s', async (status, code) => {
  const { pool } = gateway.database;
  await pool.query(`
    CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '${code}'; END $$;
    CREATE TRIGGER fail BEFORE INSERT ON rate_limits FOR EACH ROW EXECUTE FUNCTION fail();`);
  try {
    const sender = await signIn(rows[2]?.userId);
    for (const method of methods) {
      await ask(method, path, status, { headers: method === 'POST' ? sender : {} });
    }
  } finally {
    await pool.query('DROP FUNCTION fail CASCADE');
  }
});
