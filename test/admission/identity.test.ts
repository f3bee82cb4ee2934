// Who is asking: bearer tokens by secret or by key set, over REST and GraphQL, and npm run token.
import {
  createHmac,
  createSign,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import type { FastifyInstance, InjectOptions } from 'fastify';
import { type JWTHeaderParameters, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { buildApp } from '../../src/app.ts';
import * as tokenCommand from '../../src/commands/token.ts';
import { readConfig } from '../../src/config.ts';
import { callCommand } from '../support/cli/commands.ts';
import { useGateway } from '../support/gateway.ts';
import { sendRaw } from '../support/http/raw-http.ts';

const secret = 'a secret of this test, long enough';

// Every viewer is counted, and so known by what was counted.
const owner = useGateway('PostgreSQL', [...generateOutfits({ outfits: 5, users: 2 })]);

async function open(environment: Record<string, string>): Promise<FastifyInstance> {
  await owner.database.pool.query('TRUNCATE rate_limits');
  const config = readConfig({ RATE_LIMIT: '1000000/day', ...environment });
  const app = await buildApp(config, owner.database);
  onTestFinished(() => app.close());
  return app;
}

/** Who has asked since the gateway was opened, such as `user 7` or `address 127.0.0.1`. */
async function senders(): Promise<string[]> {
  const { rows } = await owner.database.pool.query('SELECT sender FROM rate_limits ORDER BY 1');
  return rows.map(({ sender }) => sender.slice(sender.indexOf(' ') + 1));
}

const ask = (app: FastifyInstance, authorization: string, more: InjectOptions = {}) =>
  app.inject({
    method: 'GET',
    url: '/api/outfits/',
    ...more,
    headers: { authorization, ...more.headers },
  });

/** The same request over REST and GraphQL. */
const doors = [
  ['REST', {}],
  ['GraphQL', { method: 'POST', url: '/graphql', payload: { query: '{ __typename }' } }],
] as [string, InjectOptions][];

/** What a bearer token comes to at both doors: one status. */
async function statusOf(app: FastifyInstance, token: string): Promise<number> {
  const statuses: number[] = [];
  for (const [, request] of doors) {
    statuses.push((await ask(app, `Bearer ${token}`, request)).statusCode);
  }
  expect(new Set(statuses).size).toBe(1);
  return statuses[0] ?? 0;
}

const now = () => Math.floor(Date.now() / 1000);

const settings = {
  AUTH_JWT_SECRET: secret,
  AUTH_ISSUER: 'https://auth.test',
  AUTH_AUDIENCE: 'shop',
};

interface Signing {
  readonly alg?: string;
  readonly key?: KeyObject | Uint8Array;
  readonly header?: Partial<JWTHeaderParameters>;
}

function sign(claims: object, { alg = 'HS256', key = encode(secret), header }: Signing = {}) {
  return new SignJWT({ ...claims }).setProtectedHeader({ ...header, alg }).sign(key);
}

const encode = (text: string) => new TextEncoder().encode(text);
const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Signs whatever it is given, also what no library would. */
function signByHand(header: object, payload: unknown, key: string | Buffer = secret): string {
  const signed = `${base64(header)}.${base64(payload)}`;
  return `${signed}.${createHmac('sha256', key).update(signed).digest('base64url')}`;
}

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const weak = generateKeyPairSync('rsa', { modulusLength: 1024 });
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const ed = generateKeyPairSync('ed25519');

let app: FastifyInstance;
beforeAll(async () => {
  app = await buildApp(readConfig({ AUTH_JWT_SECRET: secret }), owner.database);
});
afterAll(() => app.close());

describe('with a secret', () => {
  test.each(['HS256', 'HS384', 'HS512'])('a token by %s names the viewer', async (alg) => {
    const fresh = await open({ AUTH_JWT_SECRET: secret });
    expect(await statusOf(fresh, await sign({ sub: '7' }, { alg }))).toBe(200);
    expect(await senders()).toEqual(['user 7']);
  });

  test.each([
    ['text', '2147483647', 'user 2147483647'],
    ['a number', 12, 'user 12'],
  ])('the sub may be %s', async (_name, sub, sender) => {
    const fresh = await open({ AUTH_JWT_SECRET: secret });
    const token = signByHand({ alg: 'HS256' }, { sub });
    expect(await statusOf(fresh, token)).toBe(200);
    expect(await senders()).toEqual([sender]);
  });

  test.each([
    ['user_id', { user_id: 7, sub: '8' }],
    ['user_id', { user_id: '7', token_type: 'access' }],
    ['user.id', { user: { id: 7 } }],
    ['a.b.c', { 'a.b': { c: 7 }, a: { b: {} } }],
    ['https://shop.test/claims.user.id', { 'https://shop.test/claims': { user: { id: '7' } } }],
    ['https://shop.test/user_id', { 'https://shop.test/user_id': 7 }],
  ])('AUTH_USER_CLAIM=%s names the user in %j', async (name, claims) => {
    const fresh = await open({ AUTH_JWT_SECRET: secret, AUTH_USER_CLAIM: name });
    expect(await statusOf(fresh, await sign(claims))).toBe(200);
    expect(await senders()).toEqual(['user 7']);
  });

  test.each([
    ['user_id', { sub: '7' }],
    ['user.id', { user: [7] }],
    ['user.length', { user: 'seven' }],
    ['constructor.length', {}],
    ['__proto__.id', {}],
    ['user.id', { user: { id: { id: 7 } } }],
    ['sub', { sub: '7', token_type: 'refresh' }],
    ['sub', { sub: '7', token_type: 'sliding' }],
    ['sub', { sub: '7', token_type: null }],
  ])(
    'a token without AUTH_USER_CLAIM=%s, or that is no access token, is a 401: %j',
    async (name, claims) => {
      const fresh = await open({ AUTH_JWT_SECRET: secret, AUTH_USER_CLAIM: name });
      expect(await statusOf(fresh, await sign(claims))).toBe(401);
    },
  );

  test('the scheme has no case, and ends with any white space that HTTP allows', async () => {
    const fresh = await open({ AUTH_JWT_SECRET: secret });
    const token = await sign({ sub: '7' });
    const schemes = ['Bearer', 'bearer', 'BEARER', 'bEARER'];
    for (const [index, space] of [' ', '\t', ' \t', '\t \t '].entries()) {
      const scheme = schemes[index];
      const statuses = async (sent: string) =>
        (
          await sendRaw(
            fresh,
            `GET /api/outfits/ HTTP/1.1\r\nHost: a\r\nAuthorization:${space}${scheme}${space}${sent}${space}\r\nConnection: close\r\n\r\n`,
          )
        ).slice(9, 12);
      expect(await statuses(token)).toBe('200');
      expect(await statuses('nonsense')).toBe('401');
      expect(await statuses(`${token}${space}${token}`)).toBe('401');
    }
    expect(await senders()).toContain('user 7');
  });

  test.each(['Basic dXNlcjpwYXNz', 'Token abc', 'Digest x="y"', '', 'Bearerabc', 'x Bearer'])(
    'without a bearer token the request is anonymous: %j',
    async (authorization) => {
      const fresh = await open({ AUTH_JWT_SECRET: secret });
      for (const [, request] of doors) {
        expect((await ask(fresh, authorization, request)).statusCode).toBe(200);
      }
      expect(await senders()).toEqual(['address 127.0.0.1']);
    },
  );

  test('a token holds until its time is over, from when its time begins', async () => {
    const sub = '7';
    expect(await statusOf(app, await sign({ sub, exp: now() + 60 }))).toBe(200);
    expect(await statusOf(app, await sign({ sub, nbf: now() - 60, exp: now() + 60 }))).toBe(200);
    expect(await statusOf(app, await sign({ sub, exp: now() - 1 }))).toBe(401);
    expect(await statusOf(app, await sign({ sub, exp: now() }))).toBe(401);
    expect(await statusOf(app, await sign({ sub, nbf: now() + 60 }))).toBe(401);
  });

  test('a token that has been accepted is refused once its time is over', async () => {
    const token = await sign({ sub: '7', exp: now() + 2 });
    expect(await statusOf(app, token)).toBe(200);
    expect(await statusOf(app, token)).toBe(200);
    await vi.waitFor(async () => expect(await statusOf(app, token)).toBe(401), 5_000);
  });

  test.each<[string, string | Promise<string>]>([
    ['without a signature', `${base64({ alg: 'none' })}.${base64({ sub: '7' })}.`],
    ['with "none" and a signature', signByHand({ alg: 'none' }, { sub: '7' })],
    ['with "None"', `${base64({ alg: 'None' })}.${base64({ sub: '7' })}.`],
    ['without an algorithm', signByHand({ typ: 'JWT' }, { sub: '7' })],
    ['with another secret', sign({ sub: '7' }, { key: encode(`${secret}!`) })],
    ['with a private key', sign({ sub: '7' }, { alg: 'RS256', key: rsa.privateKey })],
    ['with its signature under another name', signByHand({ alg: 'HS512' }, { sub: '7' })],
    ['with an unknown crit', signByHand({ alg: 'HS256', crit: ['x'], x: 1 }, { sub: '7' })],
    ['with an exp that is text', signByHand({ alg: 'HS256' }, { sub: '7', exp: '9999999999' })],
    ['whose payload is an array', signByHand({ alg: 'HS256' }, ['7'])],
    ['that is encrypted', `${base64({ alg: 'dir', enc: 'A256GCM' })}..${base64('iv')}.x.y`],
    ['of one part', 'token'],
    ['of two parts', 'a.b'],
    ['of a megabyte', `${base64({ alg: 'HS256' })}.${'A'.repeat(2 ** 20)}.AAAA`],
    ['of 100,000 parts', '.'.repeat(100_000)],
  ])('a token %s is refused', async (_name, token) => {
    expect(await statusOf(app, await token)).toBe(401);
  });

  test.each<[string, unknown]>([
    ['missing', undefined],
    ['null', null],
    ['empty', ''],
    ['a name', 'anna'],
    ['2^31', '2147483648'],
    ['2^31 as a number', 2_147_483_648],
    ['below -2^31', '-2147483649'],
    ['a fraction', 7.5],
    ['in exponents', '1e1'],
    ['hexadecimal', '0x7'],
    ['padded', '07'],
    ['signed', '+7'],
    ['with white space', ' 7'],
    ['of other digits', '٧'],
    ['an array', ['7']],
  ])('a sub that is %s names no user: 401', async (_name, sub) => {
    expect(await statusOf(app, signByHand({ alg: 'HS256' }, { sub }))).toBe(401);
  });

  test('a token that was changed anywhere is refused', async () => {
    const token = await sign({ sub: '7', exp: now() + 600 });
    const [header = '', , signature = ''] = token.split('.');
    const other = base64({ sub: '8', exp: now() + 600 });
    expect(await statusOf(app, `${header}.${other}.${signature}`)).toBe(401);
    // The last character of a part may hold bits that do not count.
    for (let place = 0; place < token.length; place += 7) {
      const changed = token[place] === 'A' ? 'B' : 'A';
      if (/^\.|^.(\.|$)/.test(token.slice(place))) continue;
      const forged = `${token.slice(0, place)}${changed}${token.slice(place + 1)}`;
      expect(await statusOf(app, forged), forged).toBe(401);
    }
  });

  test('no token is refused, and more than one, also if each holds', async () => {
    const token = await sign({ sub: '7' });
    const two = [`Bearer ${token} ${token}`, `Bearer ${token}, Bearer ${token}`];
    for (const sent of ['Bearer', 'bearer    ', ...two]) {
      for (const [, request] of doors) expect((await ask(app, sent, request)).statusCode).toBe(401);
    }
  });

  test('any text in the header is answered: 200 as anonymous, or 401', async () => {
    const headers = fc.oneof(fc.json(), fc.constant('{"alg":"HS256"}'), fc.string());
    const part = fc.oneof(
      headers.map((text) => Buffer.from(text).toString('base64url')),
      fc.string(),
    );
    const token = fc.array(part, { maxLength: 5 }).map((parts) => parts.join('.'));
    const signed = fc
      .tuple(fc.dictionary(fc.string(), fc.jsonValue()), fc.jsonValue())
      .map(([header, payload]) => signByHand({ ...header, alg: 'HS256' }, payload));
    await fc.assert(
      fc.asyncProperty(fc.oneof(token, signed), fc.boolean(), async (text, isBearer) => {
        const { statusCode } = await ask(app, `${isBearer ? 'Bearer ' : ''}${text}`);
        expect(isBearer ? [401] : [200, 401]).toContain(statusCode);
      }),
      { numRuns: 1000 },
    );
  });
});

test('two Authorization lines are 401, as it is not known who is meant', async () => {
  const app = await open({ AUTH_JWT_SECRET: secret });
  const token = await sign({ sub: '7' });
  for (const path of ['/api/outfits/', '/graphql?query={__typename}']) {
    const ask = (...values: string[]) => {
      const lines = values.map((value) => `authorization: ${value}\r\n`).join('');
      return sendRaw(app, `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${lines}\r\n`);
    };
    expect(await ask(`Bearer ${token}`)).toMatch(/^HTTP\/1.1 200 /);
    for (const first of [`Bearer ${token}`, 'Basic YTpi']) {
      const answer = await ask(first, `Bearer ${token}`);
      expect(answer).toMatch(/^HTTP\/1.1 401 [\s\S]*"Invalid token\."/);
      expect(answer).toMatch(/\r\nwww-authenticate: Bearer error="invalid_token"\r\n/i);
    }
  }
});

describe('a token that does not hold', () => {
  const methods = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

  test.each(methods)(
    'is a 401 to %s of the listing, before the method and the body',
    async (method) => {
      const payload = method === 'POST' || method === 'PUT' ? { payload: '{' } : {};
      const headers = { 'content-type': 'application/json' };
      const answer = await ask(app, 'Bearer nonsense', { method, headers, ...payload });
      expect(answer.statusCode).toBe(401);
      expect(answer.headers).toMatchObject({
        'www-authenticate': 'Bearer error="invalid_token"',
        'content-type': 'application/json',
      });
      if (method !== 'HEAD') expect(answer.body).toBe('{"detail":"Invalid token."}');
    },
  );

  test.each(methods)('is a 401 to %s of /graphql, in its form', async (method) => {
    const answer = await ask(app, 'Bearer nonsense', {
      method,
      url: '/graphql?query={__typename}',
      ...(method === 'POST' ? { payload: { query: '{ __typename }' } } : {}),
    });
    expect(answer.statusCode).toBe(401);
    expect(answer.headers['www-authenticate']).toBe('Bearer error="invalid_token"');
    if (method === 'HEAD') return;
    expect(answer.json()).toEqual({
      errors: [{ message: 'Invalid token.', extensions: { code: 'UNAUTHENTICATED' } }],
    });
  });

  test('comes after host, path and Accept, before the page', async () => {
    const statusWith = async (more: InjectOptions) =>
      (await ask(app, 'Bearer nonsense', more)).statusCode;
    expect(await statusWith({ headers: { host: 'b@d' } })).toBe(400);
    expect(await statusWith({ url: '/api/nothing/' })).toBe(404);
    expect(await statusWith({ url: '/nothing' })).toBe(404);
    expect(await statusWith({ headers: { accept: 'image/png' } })).toBe(406);
    expect(await statusWith({ url: '/api/outfits/?page=0' })).toBe(401);
    expect(await statusWith({ url: '/api/outfits/?ordering=nothing' })).toBe(401);
  });

  test('is refused too where an answer is known', async () => {
    await ask(app, '');
    const { headers } = await ask(app, '');
    const unchanged = { headers: { 'if-none-match': String(headers['etag']) } };
    expect((await ask(app, '', unchanged)).statusCode).toBe(304);
    expect((await ask(app, 'Bearer nonsense', unchanged)).statusCode).toBe(401);
  });

  test('is refused where there is no key for tokens', async () => {
    const closed = await open({});
    expect(await statusOf(closed, await sign({ sub: '7' }))).toBe(401);
    expect(await statusOf(closed, `${base64({ alg: 'none' })}.${base64({ sub: '7' })}.`)).toBe(401);
    expect((await ask(closed, '')).statusCode).toBe(200);
  });
});

describe('issuer and audience', () => {
  const right = { sub: '7', iss: 'https://auth.test', aud: 'shop' };

  test.each<[string, object, number]>([
    ['as they are set', {}, 200],
    ['with one more audience', { aud: ['other', 'shop'] }, 200],
    ['with another audience', { aud: 'other' }, 401],
    ['with an audience that begins like it', { aud: 'shop2' }, 401],
    ['with no audience', { aud: undefined }, 401],
    ['with an empty audience', { aud: [] }, 401],
    ['with another issuer', { iss: 'https://auth.test/' }, 401],
    ['with no issuer', { iss: undefined }, 401],
    ['with a list of issuers', { iss: ['https://auth.test'] }, 401],
  ])('%s', async (_name, claims, status) => {
    const app = await open(settings);
    expect(await statusOf(app, signByHand({ alg: 'HS256' }, { ...right, ...claims }))).toBe(status);
  });

  test('may be anything where they are not set', async () => {
    const app = await open({ AUTH_JWT_SECRET: secret });
    expect(await statusOf(app, await sign({ sub: '7', iss: 'anyone', aud: 'anything' }))).toBe(200);
  });
});

interface KeyServer {
  readonly url: string;
  /** The keys that it gives. */
  keys: object[];
  fetches: number;
  /** What it does instead of giving them. */
  instead: RequestListener | undefined;
}

async function openKeyServer(...keys: object[]): Promise<KeyServer> {
  const server = createServer((request, response) => {
    keyServer.fetches++;
    if (keyServer.instead) return keyServer.instead(request, response);
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ keys: keyServer.keys }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json`;
  const keyServer: KeyServer = { url, keys, fetches: 0, instead: undefined };
  return keyServer;
}

const publish = ({ publicKey }: { publicKey: KeyObject }, more: object = {}) => ({
  ...publicKey.export({ format: 'jwk' }),
  ...more,
});

/** Stops the clock by which keys grow old, and lets time pass on it without waiting. */
function holdDate(): (seconds: number) => void {
  let moment = Date.now();
  const clock = vi.spyOn(Date, 'now').mockImplementation(() => moment);
  onTestFinished(() => clock.mockRestore());
  return (seconds) => {
    moment += seconds * 1000;
  };
}

describe('with a key set', () => {
  const signBy = (key: KeyObject, alg: string, header = {}) =>
    sign({ sub: '7' }, { alg, key, header });

  test.each([
    ['RS256', rsa],
    ['RS512', rsa],
    ['PS256', rsa],
    ['ES256', ec],
    ['EdDSA', ed],
  ] as const)('a token by %s names the viewer', async (alg, pair) => {
    const server = await openKeyServer(publish(pair, { kid: 'one' }));
    const app = await open({ AUTH_JWKS_URL: server.url });
    expect(await statusOf(app, await signBy(pair.privateKey, alg, { kid: 'one' }))).toBe(200);
    expect(await senders()).toEqual(['user 7']);
  });

  test('the keys are fetched once, when the first token comes', async () => {
    const server = await openKeyServer(publish(rsa, { kid: 'one' }));
    const app = await open({ AUTH_JWKS_URL: server.url });
    expect((await ask(app, '')).statusCode).toBe(200);
    expect(server.fetches).toBe(0);
    const token = await signBy(rsa.privateKey, 'RS256', { kid: 'one' });
    const statuses = await Promise.all(Array.from({ length: 50 }, () => statusOf(app, token)));
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(server.fetches).toBe(1);
  });

  test('a public key is no secret', async () => {
    const server = await openKeyServer(publish(rsa, { kid: 'one' }));
    const app = await open({ AUTH_JWKS_URL: server.url });
    const { publicKey } = rsa;
    for (const key of [
      publicKey.export({ format: 'pem', type: 'spki' }),
      publicKey.export({ format: 'pem', type: 'pkcs1' }),
      publicKey.export({ format: 'der', type: 'spki' }),
      Buffer.from(JSON.stringify(publicKey.export({ format: 'jwk' }))),
      Buffer.from(publicKey.export({ format: 'jwk' }).n ?? '', 'base64url'),
    ]) {
      expect(await statusOf(app, signByHand({ alg: 'HS256', kid: 'one' }, { sub: '7' }, key))).toBe(
        401,
      );
    }
    expect(await statusOf(app, `${base64({ alg: 'none' })}.${base64({ sub: '7' })}.`)).toBe(401);
  });

  test.each<[string, object, KeyObject]>([
    ['too weak', publish(weak, { kid: 'bad' }), weak.privateKey],
    ['no point of its curve', { ...publish(ec, { kid: 'bad' }), y: 'AAAA' }, ec.privateKey],
    ['private', { ...ec.privateKey.export({ format: 'jwk' }), kid: 'bad' }, ec.privateKey],
  ])('a token by a published key that is %s is refused', async (_name, published, key) => {
    const server = await openKeyServer(published, publish(rsa, { kid: 'one' }));
    const app = await open({ AUTH_JWKS_URL: server.url });
    const alg = key === weak.privateKey ? 'RS256' : 'ES256';
    const header = { alg, kid: 'bad' };
    const signed = `${base64(header)}.${base64({ sub: '7' })}`;
    // By hand, as no library signs with a weak key.
    const signature = createSign('sha256').update(signed).sign({ key, dsaEncoding: 'ieee-p1363' });
    const token = `${signed}.${signature.toString('base64url')}`;
    expect(await statusOf(app, token)).toBe(401);
    // The key set is not taken to be away.
    expect(await statusOf(app, token)).toBe(401);
    const held = await signBy(rsa.privateKey, 'RS256', { kid: 'one' });
    expect(await statusOf(app, held)).toBe(200);
  });

  test('a secret in the key set is not taken', async () => {
    const k = randomBytes(32);
    const server = await openKeyServer({ kty: 'oct', kid: 'one', k: k.toString('base64url') });
    const app = await open({ AUTH_JWKS_URL: server.url });
    expect(await statusOf(app, signByHand({ alg: 'HS256', kid: 'one' }, { sub: '7' }, k))).toBe(
      401,
    );
  });

  test('keys and addresses that a token brings are not taken', async () => {
    const server = await openKeyServer(publish(rsa, { kid: 'one' }));
    const other = await openKeyServer(publish(ec, { kid: 'two' }));
    const app = await open({ AUTH_JWKS_URL: server.url });
    for (const header of [
      { kid: 'two', jku: other.url },
      { kid: 'two', jwk: publish(ec) },
      { jwk: publish(ec) },
      { kid: '../../etc/passwd' },
      { kid: "' OR 1=1 --" },
      { kid: '__proto__' },
    ]) {
      expect(await statusOf(app, await signBy(ec.privateKey, 'ES256', header))).toBe(401);
    }
    expect(other.fetches).toBe(0);
  });

  test('the rules of time, issuer and audience hold as with a secret', async () => {
    const server = await openKeyServer(publish(ec));
    const app = await open({ AUTH_JWKS_URL: server.url, AUTH_ISSUER: 'me', AUTH_AUDIENCE: 'shop' });
    const right = { sub: '7', iss: 'me', aud: 'shop' };
    const by = { alg: 'ES256', key: ec.privateKey };
    expect(await statusOf(app, await sign(right, by))).toBe(200);
    for (const wrong of [
      { exp: now() - 1 },
      { nbf: now() + 60 },
      { iss: 'you' },
      { aud: 'x' },
      { sub: 'x' },
    ]) {
      expect(await statusOf(app, await sign({ ...right, ...wrong }, by))).toBe(401);
    }
  });

  test('a new key is picked up, and one that is gone is refused', async () => {
    const server = await openKeyServer(publish(rsa, { kid: 'one' }));
    const app = await open({ AUTH_JWKS_URL: server.url });
    const pass = holdDate();
    const first = await signBy(rsa.privateKey, 'RS256', { kid: 'one' });
    const second = await signBy(ec.privateKey, 'ES256', { kid: 'two' });
    expect(await statusOf(app, first)).toBe(200);

    server.keys = [publish(rsa, { kid: 'one' }), publish(ec, { kid: 'two' })];
    pass(2);
    expect(await statusOf(app, second)).toBe(200);
    expect(await statusOf(app, first)).toBe(200);

    server.keys = [publish(ec, { kid: 'two' })];
    pass(11 * 60);
    expect(await statusOf(app, first)).toBe(401);
    expect(await statusOf(app, second)).toBe(200);
  });

  test('tokens with unknown keys do not send a fetch each', async () => {
    const server = await openKeyServer(publish(rsa, { kid: 'one' }));
    const app = await open({ AUTH_JWKS_URL: server.url });
    const pass = holdDate();
    for (const fetches of [1, 2, 3]) {
      for (let index = 0; index < 10; index++) {
        const token = await signBy(ec.privateKey, 'ES256', { kid: `unknown ${index}` });
        expect((await ask(app, `Bearer ${token}`)).statusCode).toBe(401);
      }
      expect(server.fetches).toBe(fetches);
      pass(2);
    }
  });

  test('a token need not say which of several keys it is signed with', async () => {
    const pairs = [1, 2, 3].map(() => generateKeyPairSync('ec', { namedCurve: 'P-256' }));
    const server = await openKeyServer(...pairs.map((pair) => publish(pair)));
    const app = await open({ AUTH_JWKS_URL: server.url });
    for (const { privateKey } of pairs) {
      expect(await statusOf(app, await signBy(privateKey, 'ES256'))).toBe(200);
      const expired = { sub: '7', exp: now() - 1 };
      expect(await statusOf(app, await sign(expired, { alg: 'ES256', key: privateKey }))).toBe(401);
    }
    expect(await statusOf(app, await signBy(ec.privateKey, 'ES256'))).toBe(401);
  });

  test.each<[string, RequestListener]>([
    ['fails', (_request, response) => response.writeHead(500).end('broken')],
    [
      'leads elsewhere',
      (_request, response) => response.writeHead(302, { location: '/other' }).end(),
    ],
    ['gives no JSON', (_request, response) => response.end('<html>')],
    ['gives other JSON', (_request, response) => response.end('{"keys":"none"}')],
    ['hangs', () => {}],
    ['hangs in the middle', (_request, response) => response.writeHead(200).write('{"keys":[')],
  ])('a server that %s is a 503 within 2 seconds, until it is back', async (_name, instead) => {
    const server = await openKeyServer(publish(rsa, { kid: 'one' }));
    server.instead = instead;
    const app = await open({ AUTH_JWKS_URL: server.url });
    const token = await signBy(rsa.privateKey, 'RS256', { kid: 'one' });
    for (const [, request] of doors) {
      const start = performance.now();
      const answer = await ask(app, `Bearer ${token}`, request);
      // Room for a busy machine, but less than the 5 s that are usual without a limit.
      expect(performance.now() - start).toBeLessThan(4_500);
      expect(answer.statusCode).toBe(503);
      expect(answer.headers['retry-after']).toBe('1');
      expect(answer.body).toContain('Service temporarily unavailable, try again later.');
      expect(answer.body).not.toMatch(/jwk|127\.0\.0\.1|fetch/i);
    }
    // No other request waits for it.
    expect((await ask(app, '')).statusCode).toBe(200);

    server.instead = undefined;
    expect(await statusOf(app, token)).toBe(200);
  });

  test('a key set without end is given up after a megabyte', async () => {
    const server = await openKeyServer(publish(rsa, { kid: 'one' }));
    let sent = 0;
    const closed = new Promise<void>((resolve) => {
      server.instead = (_request, response) => {
        const piece = Buffer.alloc(65_536, ' ');
        const send = () => {
          while (response.writable) {
            sent += piece.length;
            if (!response.write(piece)) return;
          }
        };
        response.on('drain', send).on('close', resolve);
        send();
      };
    });
    const app = await open({ AUTH_JWKS_URL: server.url });
    const token = await signBy(rsa.privateKey, 'RS256', { kid: 'one' });
    expect(await statusOf(app, token)).toBe(503);
    await closed;
    // What is on the way between them included.
    expect(sent).toBeLessThan(32 * 1_048_576);
    server.instead = undefined;
    expect(await statusOf(app, token)).toBe(200);
  });

  test.each<[string, RequestListener]>([
    ['breaks off', (request) => request.socket.destroy()],
    ['gives other JSON', (_request, response) => response.end('{"keys":"none"}')],
    ['hangs', () => {}],
  ])('known keys go on while the server %s, also when they are old', async (_name, instead) => {
    const server = await openKeyServer(publish(rsa, { kid: 'one' }));
    const app = await open({ AUTH_JWKS_URL: server.url });
    const pass = holdDate();
    const known = await signBy(rsa.privateKey, 'RS256', { kid: 'one' });
    const unknown = await signBy(ec.privateKey, 'ES256', { kid: 'two' });
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const forged = await signBy(privateKey, 'RS256', { kid: 'one' });
    expect(await statusOf(app, known)).toBe(200);

    server.instead = instead;
    for (const seconds of [0, 11 * 60, 2, 24 * 3600]) {
      pass(seconds);
      expect(await statusOf(app, known)).toBe(200);
      expect(await statusOf(app, forged)).toBe(401);
    }
    expect(await statusOf(app, unknown)).toBe(503);
    // One fetch a second, however many ask.
    const { fetches } = server;
    await Promise.all(Array.from({ length: 20 }, () => statusOf(app, unknown)));
    expect(server.fetches).toBe(fetches);
  });

  describe('when the server is back, keys that are gone are refused', () => {
    async function openAfterOutage(secondsLater: number) {
      const server = await openKeyServer(publish(rsa, { kid: 'one' }));
      const app = await open({ AUTH_JWKS_URL: server.url });
      const pass = holdDate();
      const token = await signBy(rsa.privateKey, 'RS256', { kid: 'one' });
      expect(await statusOf(app, token)).toBe(200);
      server.instead = (request) => request.socket.destroy();
      pass(11 * 60);
      expect(await statusOf(app, token)).toBe(200);
      server.instead = undefined;
      server.keys = [publish(ec, { kid: 'two' })];
      pass(secondsLater);
      return { app, token };
    }

    test('soon', async () => {
      const { app, token } = await openAfterOutage(2);
      await expect.poll(() => statusOf(app, token)).toBe(401);
      expect(await statusOf(app, token)).toBe(401);
    });

    test('at once after a pause', async () => {
      const { app, token } = await openAfterOutage(3600);
      expect(await statusOf(app, token)).toBe(401);
    });
  });

  test('a bad token is a 401 while the keys are away, if that needs no key', async () => {
    const server = await openKeyServer();
    server.instead = (request) => request.socket.destroy();
    const app = await open({ AUTH_JWKS_URL: server.url });
    for (const token of ['nonsense', 'a.b.c', await sign({ sub: '7' })]) {
      expect(await statusOf(app, token)).toBe(401);
    }
    expect(server.fetches).toBe(0);
  });
});

describe('npm run token', () => {
  const token = (env: Record<string, string>, ...options: string[]) =>
    callCommand(tokenCommand, options, env);
  async function printToken(environment: Record<string, string>, ...options: string[]) {
    const printed = await token(environment, ...options);
    expect(printed).toMatchObject({ code: 0, stderr: '' });
    expect(printed.stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/);
    return printed.stdout.trim();
  }

  test('prints a token that the gateway takes, for as long as it says', async () => {
    const app = await open(settings);
    const day = await printToken(settings, '--user', '42');
    expect(await statusOf(app, day)).toBe(200);
    expect(await senders()).toEqual(['user 42']);
    const readClaims = (text: string) =>
      JSON.parse(Buffer.from(text.split('.')[1] ?? '', 'base64url').toString());
    const { iat, exp } = readClaims(day);
    expect(exp - iat).toBe(24 * 3600);
    const short = readClaims(await printToken(settings, '--user=42', '--hours=1'));
    expect(short.exp - short.iat).toBe(3600);
  });

  test.each<[string, string[], Record<string, string>, RegExp]>([
    ['no secret', ['--user', '1'], {}, /^AUTH_JWT_SECRET is not set, so .*\.\n$/],
    ['a key set', ['--user', '1'], { AUTH_JWKS_URL: 'https://a.test/' }, /^AUTH_JWT_SECRET/],
    ['a short one', ['--user', '1'], { AUTH_JWT_SECRET: 'short-one' }, /SECRET is not valid/],
    [
      'a short secret as option',
      ['--user', '1', '--auth-jwt-secret=short-one'],
      {},
      /^--auth-jwt-secret is not valid/,
    ],
    ['no user', [], settings, /^Required option '--user <ID>' not specified: see --help\.\n$/],
    ['a user that is no number', ['--user', 'anna'], settings, /^--user is "anna", but it may be/],
    ['user 0', ['--user', '0'], settings, /^--user is "0", but/],
    ['user 2^31', ['--user', '2147483648'], settings, /^--user is "2147483648", but/],
    ['no time', ['--user', '1', '--hours', '0'], settings, /^--hours is "0", but/],
  ])('refuses %s in one line', async (_name, options, environment, sentence) => {
    const printed = await token(environment, ...options);
    expect(printed).toMatchObject({ code: 2, stdout: '' });
    expect(printed.stderr).toMatch(sentence);
    expect(printed.stderr).toMatch(/^[^\n]+\n$/);
    expect(printed.stderr).not.toContain('short-one');
  });
});
