// /api/openapi.json tells of every answer that the REST paths give, and of no other: each status with its
// headers, body and examples, by what is really answered; with as few settings as possible and with many.
import type { InjectOptions } from 'fastify';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { generateOutfits } from '../bench/outfits/generate.ts';
import { overloaded, timedOut, unavailable } from '../src/errors.ts';
import { schema as ownSchema } from '../src/graphql/schema.ts';
import { openGateway, type TestGateway } from './gateway.ts';
import { laneKinds } from './lane.ts';
import { askRaw, askUnreadable, createChecker } from './openapi-answers.ts';
import { extend, type Resolver } from './schema-extension.ts';
import { secret, signIn } from './tokens.ts';

const rows = [...generateOutfits({ outfits: 45, users: 9 })];
const path = '/api/outfits/';
const bare = '/api/outfits';
const origin = 'https://app.example.com';
const image = `https://media.example.com/${rows[0]?.imageKey}`;

const json = { 'content-type': 'application/json' };
const form = { 'content-type': 'application/x-www-form-urlencoded' };
const nobody = { authorization: 'Bearer nobody' };
const wrongFields = [
  ...['title', 'description', 'image_key', 'image_original_url', 'private'],
  ...['background_color', 'video', 'creation_device'],
];

type Case = [status: number, request: InjectOptions, example?: string];

/** What any path refuses that is asked for by whichever method. */
const refused: Record<string, Case> = {
  'a host that cannot be': [400, { headers: { host: 'a b' } }, 'invalidHost'],
};

/** What the path refuses, whichever the method. */
const notLetIn: Record<string, Case> = {
  ...refused,
  'a token that does not hold': [401, { headers: nobody }, 'invalidToken'],
  'another type of answer': [406, { headers: { accept: 'application/xml' } }, 'notAcceptable'],
};

const reads: Record<string, Case> = {
  ...notLetIn,
  'a page': [200, {}],
  'the last page': [200, { url: `${path}?page=last&ordering=-like_count` }],
  'a page that has not changed': [304, { headers: { 'if-none-match': '*' } }],
  'an ordering that there is not': [400, { url: `${path}?ordering=nope` }, 'ordering'],
  'a page past the end': [404, { url: `${path}?page=99` }, 'invalidPage'],
};

const writes: Record<string, Case> = {
  ...notLetIn,
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
  'a body of another length': [
    400,
    { headers: { ...json, 'content-length': '5' }, payload: '{}' },
    'unreadableBody',
  ],
  'a key that cannot be': [
    400,
    { headers: { ...json, 'idempotency-key': 'é' }, payload: { image_key: image } },
    'invalidKey',
  ],
  'no token': [401, { headers: { authorization: '' } }, 'notAuthenticated'],
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

const options: Record<string, Case> = { ...notLetIn, nobody: [200, { headers: {} }] };
const others: Record<string, Case> = { ...notLetIn, nobody: [405, {}, 'methodNotAllowed'] };
const moved = (status: number): Record<string, Case> => ({ ...refused, nobody: [status, {}] });

/** Every request, by the path and the method. */
const table: [path: string, method: InjectOptions['method'], cases: Record<string, Case>][] = [
  [path, 'GET', reads],
  [path, 'HEAD', reads],
  [path, 'POST', writes],
  [path, 'OPTIONS', options],
  [path, 'DELETE', others],
  [bare, 'GET', moved(301)],
  [bare, 'HEAD', moved(301)],
  [bare, 'POST', moved(308)],
  [bare, 'OPTIONS', moved(308)],
  [bare, 'DELETE', moved(308)],
];
const cases = table.flatMap(([url, method, named]) =>
  Object.entries(named).map(([name, one]) => [method, url, name, one] as const),
);
const places = table.map(([url, method = 'GET']) => [method, url] as const);

const many = {
  COMPRESSION: 'all',
  CORS_ORIGINS: origin,
  RATE_LIMIT: '50/day',
  REST_DEPRECATED: '2026-01-31',
  REST_SUNSET: '2027-01-31',
  UNKNOWN_PARAMETERS: 'refuse',
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

const faults: [name: string, status: number, makeError: () => Error][] = [
  ['internalError', 500, () => new Error('a fault')],
  ['unavailable', 503, unavailable],
  ['overloaded', 503, overloaded],
  ['timedOut', 503, timedOut],
];

describe.each(laneKinds)('on %s', (kind) => {
  describe.each([
    ['few settings', {}],
    ['many settings', many],
  ])('with %s', (_name, settings) => {
    const hasMany = settings === many;
    let gateway: TestGateway;
    let checker: ReturnType<typeof createChecker>;
    let signedIn: Record<string, string>;
    let senders = 0;
    beforeAll(async () => {
      const schema = extend('extend type Query { unused: Int }', {
        'Query.outfits': fallible('Query', 'outfits'),
        'Mutation.createOutfit': fallible('Mutation', 'createOutfit'),
      });
      const environment = { AUTH_JWT_SECRET: secret, CACHE_MAX_BYTES: '0', ...settings };
      gateway = await openGateway(kind, rows, environment, { schema });
      await gateway.app.listen({ port: 0, host: '127.0.0.1' });
      checker = createChecker((await gateway.get('/api/openapi.json')).json());
      signedIn = await signIn(rows[0]?.userId);
    });
    afterAll(() => gateway.close());

    /** Asks from an address of its own, and as a page of another origin does. */
    const ask = async (
      asked: readonly [string, string],
      status: number,
      request: InjectOptions,
      example?: string,
    ) => {
      const [method, url] = asked;
      senders += 1;
      const response = await gateway.app.inject({
        method: method as 'GET',
        url,
        remoteAddress: `10.0.${senders >> 8}.${senders & 255}`,
        ...request,
        headers: {
          ...(method === 'POST' ? signedIn : {}),
          ...(hasMany ? { origin } : {}),
          ...request.headers,
        },
      });
      expect(response.statusCode).toBe(status);
      // Nobody sees a body that HEAD does not have.
      const seen = method === 'HEAD' ? undefined : example;
      checker.check({ path: url, method, example: seen }, response);
      return response;
    };

    test.each(cases)('%s %s: %s', async (method, url, _case, [status, request, example]) => {
      await ask([method ?? 'GET', url], status, request, example);
    });

    test('OPTIONS tells of the fields to whoever may write', async () => {
      const response = await ask(['OPTIONS', path], 200, { headers: signedIn });
      expect(response.json()).toHaveProperty('actions');
    });

    test('a key that is used twice', async () => {
      const headers = { 'idempotency-key': 'once' };
      await ask(['POST', path], 201, { headers, payload: { image_key: image, title: 'a' } });
      const payload = { image_key: image, title: 'b' };
      await ask(['POST', path], 422, { headers, payload }, 'keyReused');
    });

    test.each(faults)('%s', async (name, status, makeError) => {
      failing.fail = makeError;
      try {
        for (const method of ['GET', 'HEAD', 'POST']) await ask([method, path], status, {}, name);
      } finally {
        failing.fail = undefined;
      }
    });

    test('what is no request, is too large, or does not arrive', async () => {
      const answers = places.map(async ([method, url]) => {
        const unreadable = await askUnreadable(gateway.app, method, url);
        for (const [example, answer] of Object.entries(unreadable)) {
          checker.check(
            { path: url, method, example: method === 'HEAD' ? undefined : example },
            answer,
          );
        }
        return Object.values(unreadable).map(({ statusCode }) => statusCode);
      });
      for (const statuses of await Promise.all(answers)) expect(statuses).toEqual([400, 431, 408]);
    });

    test('a body that does not arrive', async () => {
      const { server } = gateway.app;
      const { headersTimeout, requestTimeout } = server;
      Object.assign(server, { headersTimeout: 1_000, requestTimeout: 1_000 });
      const head = `POST ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: ${signedIn['authorization']}\r\n`;
      const answer = await askRaw(gateway.app, 'POST', `${head}Content-Length: 5\r\n\r\n{`);
      Object.assign(server, { headersTimeout, requestTimeout });
      expect(answer.statusCode).toBe(408);
      checker.check({ path, method: 'POST', example: 'arrivedTooSlowly' }, answer);
    });

    if (hasMany) {
      test('a compressed page, for whoever takes no other', async () => {
        const headers = { 'accept-encoding': 'br, identity;q=0' };
        for (const method of ['GET', 'HEAD']) {
          const response = await ask([method, path], 200, { headers });
          expect(response.headers['content-encoding']).toBe('br');
        }
      });

      test('a parameter that nothing reads', async () => {
        const url = `${path}?nope=1`;
        for (const method of ['GET', 'HEAD'] as const) {
          const response = await gateway.app.inject({ method, url });
          expect(response.statusCode).toBe(400);
          const example = method === 'HEAD' ? undefined : 'unknownParameter';
          checker.check({ path, method, example }, response);
        }
      });

      test.each([[path], [bare]])('the preflight of %s', async (url) => {
        const preflight = { 'access-control-request-method': 'POST' };
        const headers = { ...preflight, 'access-control-request-headers': 'authorization' };
        await ask(['OPTIONS', url], 204, { headers });
        await ask(['OPTIONS', url], 204, { headers: preflight });
      });

      test.each(places.filter(([, url]) => url === path))(
        'more requests than are taken: %s',
        async (method) => {
          const headers = { origin, ...(method === 'POST' ? await signIn(rows[1]?.userId) : {}) };
          const remoteAddress = `10.9.9.${method.length}`;
          const send = () =>
            gateway.app.inject({ method: method as 'GET', url: path, headers, remoteAddress });
          for (let sent = 0; sent < 50; sent += 1) await send();
          const response = await send();
          expect(response.statusCode).toBe(429);
          const example = method === 'HEAD' ? undefined : 'throttled';
          checker.check({ path, method, example }, response);
        },
      );

      test.each([
        ['internalError', 500, 'P0001'],
        ['unavailable', 503, '53000'],
        ['timedOut', 503, '57014'],
      ])('requests cannot be counted: %s', async (name, status, code) => {
        const { pool } = gateway.database;
        await pool.query(`
          CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '${code}'; END $$;
          CREATE OR REPLACE TRIGGER fail BEFORE INSERT ON rate_limits
            FOR EACH ROW EXECUTE FUNCTION fail();`);
        try {
          const sender = await signIn(rows[2]?.userId);
          for (const [method] of places.filter(([, url]) => url === path)) {
            const headers = method === 'POST' ? sender : {};
            await ask([method, path], status, { headers }, name);
          }
        } finally {
          await pool.query('DROP FUNCTION fail CASCADE');
        }
      });
    }

    test('nothing is told that was not seen here', () => checker.expectAllSeen());
  });
});
