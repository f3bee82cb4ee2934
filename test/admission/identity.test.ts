// Who is asking: bearer tokens by secret or by key set, over REST and GraphQL, and npm run token.
import { createHmac, createSign, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { createServer, type RequestListener } from 'node:http';
import { pipeline } from 'node:stream/promises';
import fc from 'fast-check';
import type { FastifyInstance, InjectOptions } from 'fastify';
import { decodeJwt, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { buildApp } from '../../src/app.ts';
import * as tokenCommand from '../../src/commands/token.ts';
import { readConfig } from '../../src/config/config.ts';
import { callCommand } from '../support/cli/commands.ts';
import { buildForTest, useGateway } from '../support/gateway.ts';
import { closeServer, listen } from '../support/http/listen.ts';
import { sendRaw } from '../support/http/raw-http.ts';
import { stopClocks } from '../support/this-process.ts';

const secret = 'a secret of this test, long enough';

// Every viewer is counted, and so known by what was counted.
const owner = useGateway('PostgreSQL', [...generateOutfits({ outfits: 5, users: 2 })]);

async function open(environment: object): Promise<FastifyInstance> {
  await owner.database.pool.query('TRUNCATE rate_limits');
  const config = readConfig({ RATE_LIMIT: '1000000/day', ...environment });
  return buildForTest(config, owner.database);
}

/** Who has asked since the gateway was opened, such as `user 7` or `address 127.0.0.1`. */
async function senders(): Promise<string[]> {
  const { rows } = await owner.database.pool.query('SELECT sender FROM rate_limits ORDER BY 1');
  return rows.map(({ sender }) => sender.slice(sender.indexOf(' ') + 1));
}

const ask = (app: FastifyInstance, authorization: string, more: InjectOptions = {}) =>
  app.inject({ url: '/api/outfits/', ...more, headers: { authorization, ...more.headers } });

/** The same request over REST and GraphQL. */
const doors: InjectOptions[] = [
  {},
  { method: 'POST', url: '/graphql', payload: { query: '{ __typename }' } },
];

/** What a credential comes to at both doors: one status. */
async function statusWith(app: FastifyInstance, authorization: string): Promise<number> {
  const answers = await Promise.all(doors.map((door) => ask(app, authorization, door)));
  const [status = 0, ...others] = new Set(answers.map(({ statusCode }) => statusCode));
  expect(others).toEqual([]);
  return status;
}
const statusOf = (app: FastifyInstance, token: string) => statusWith(app, `Bearer ${token}`);

const now = () => Math.floor(Date.now() / 1000);

const both = { AUTH_ISSUER: 'https://auth.test', AUTH_AUDIENCE: 'shop' };
const settings = { AUTH_JWT_SECRET: secret, ...both };

type Key = KeyObject | Uint8Array;

const sign = (claims: object, alg = 'HS256', key: Key = encode(secret), header: object = {}) =>
  new SignJWT({ ...claims }).setProtectedHeader({ ...header, alg }).sign(key);

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

test('a token by HS256, HS384 or HS512 with the secret names the viewer', async () => {
  const fresh = await open({ AUTH_JWT_SECRET: secret });
  for (const [alg, sub] of [
    ['HS256', '7'],
    ['HS384', '8'],
    ['HS512', '9'],
  ] as const) {
    expect(await statusOf(fresh, await sign({ sub }, alg))).toBe(200);
  }
  expect(await senders()).toEqual(['user 7', 'user 8', 'user 9']);
});

const right = { sub: '7', iss: 'https://auth.test', aud: 'shop' };
test.each<[environment: object, accepted: [claims: object, user: number][], refused: object[]]>([
  [
    {},
    [
      [{ sub: '2147483647' }, 2147483647],
      [{ sub: 12, iss: 'anyone', aud: 'anything' }, 12],
      [{ sub: '7', token_type: 'access' }, 7],
    ],
    [
      ...[undefined, '', 'anna', '2147483648', '-2147483649', 7.5].map((sub) => ({ sub })),
      ...['1e1', '07', '+7', ' 7', '٧', ['7']].map((sub) => ({ sub })),
      ...['refresh', null].map((type) => ({ sub: '7', token_type: type })),
      { sub: '7', exp: '9999999999' },
    ],
  ],
  [{ AUTH_USER_CLAIM: 'user_id' }, [[{ user_id: 7, sub: '8' }, 7]], [{ sub: '7' }]],
  [{ AUTH_USER_CLAIM: 'a.b.c' }, [[{ 'a.b': { c: 7 }, a: { b: {} } }, 7]], [{ a: [7] }]],
  [{ AUTH_USER_CLAIM: 'https://a.test/b.c' }, [[{ 'https://a.test/b': { c: '7' } }, 7]], []],
  [{ AUTH_USER_CLAIM: 'user.length' }, [], [{ user: 'seven' }]],
  [{ AUTH_USER_CLAIM: 'constructor.length' }, [], [{}]],
  [
    both,
    [[{ ...right, aud: ['other', 'shop'] }, 7]],
    [
      ...['other', undefined].map((aud) => ({ ...right, aud })),
      ...['https://auth.test/', undefined].map((iss) => ({ ...right, iss })),
    ],
  ],
])(
  'with %j a user is named by the claims %j, and by none of %j',
  async (environment, accepted, refused) => {
    const fresh = await open({ AUTH_JWT_SECRET: secret, ...environment });
    const statusFor = (claims: object) => statusOf(fresh, signByHand({ alg: 'HS256' }, claims));
    for (const [claims] of accepted) expect(await statusFor(claims)).toBe(200);
    expect(await senders()).toEqual(accepted.map(([, user]) => `user ${user}`).toSorted());
    for (const claims of refused) {
      expect(await statusFor(claims), JSON.stringify(claims)).toBe(401);
    }
  },
);

test('the scheme has no case, and ends with any white space that HTTP allows', async () => {
  const fresh = await open({ AUTH_JWT_SECRET: secret });
  const token = await sign({ sub: '7' });
  for (const [scheme, space] of [
    ['Bearer', ' '],
    ['bearer', '\t'],
    ['bEARER', '\t \t '],
  ]) {
    const statusSending = async (sent: string) => {
      const lines = `Authorization:${space}${scheme}${space}${sent}${space}\r\nConnection: close`;
      const head = `GET /api/outfits/ HTTP/1.1\r\nHost: a\r\n${lines}\r\n\r\n`;
      return (await sendRaw(fresh, head)).slice(9, 12);
    };
    expect(await statusSending(token)).toBe('200');
    expect(await statusSending('nonsense')).toBe('401');
    expect(await statusSending(`${token}${space}${token}`)).toBe('401');
  }
  expect(await senders()).toContain('user 7');
});

test('without a bearer token the request is anonymous', async () => {
  const fresh = await open({ AUTH_JWT_SECRET: secret });
  for (const other of [
    'Basic dXNlcjpwYXNz',
    'Token abc',
    'Digest x="y"',
    '',
    'Bearerabc',
    'x Bearer',
  ]) {
    expect([other, await statusWith(fresh, other)]).toEqual([other, 200]);
  }
  expect(await senders()).toEqual(['address 127.0.0.1']);
});

test('a token holds until its time is over, from when its time begins', async () => {
  const sub = '7';
  expect(await statusOf(app, await sign({ sub, exp: now() + 60 }))).toBe(200);
  expect(await statusOf(app, await sign({ sub, nbf: now() - 60, exp: now() + 60 }))).toBe(200);
  expect(await statusOf(app, await sign({ sub, exp: now() - 1 }))).toBe(401);
  expect(await statusOf(app, await sign({ sub, exp: now() }))).toBe(401);
  expect(await statusOf(app, await sign({ sub, nbf: now() + 60 }))).toBe(401);
});

test('a token that has been accepted is refused once its time is over', async () => {
  const token = await sign({ sub: '7', exp: now() + 4 });
  for (let time = 0; time < 2; time += 1) expect(await statusOf(app, token)).toBe(200);
  await expect.poll(() => statusOf(app, token)).toBe(401);
});

test.each<[string, string | Promise<string>]>([
  ['without a signature', `${base64({ alg: 'none' })}.${base64({ sub: '7' })}.`],
  ['without an algorithm', signByHand({ typ: 'JWT' }, { sub: '7' })],
  ['with another secret', sign({ sub: '7' }, 'HS256', encode(`${secret}!`))],
  ['with a private key', sign({ sub: '7' }, 'RS256', rsa.privateKey)],
  ['with its signature under another name', signByHand({ alg: 'HS512' }, { sub: '7' })],
  ['with an unknown crit', signByHand({ alg: 'HS256', crit: ['x'], x: 1 }, { sub: '7' })],
  ['whose payload is an array', signByHand({ alg: 'HS256' }, ['7'])],
  ['that is encrypted', `${base64({ alg: 'dir', enc: 'A256GCM' })}..${base64('iv')}.x.y`],
  ['of two parts', 'a.b'],
  ['of a megabyte', `${base64({ alg: 'HS256' })}.${'A'.repeat(2 ** 20)}.AAAA`],
  ['of 100,000 parts', '.'.repeat(100_000)],
])('a token %s is refused', async (_name, token) => {
  expect(await statusOf(app, await token)).toBe(401);
});

test('no token is refused, and more than one, also if each holds', async () => {
  const token = await sign({ sub: '7' });
  for (const sent of ['Bearer', 'bearer    ', `Bearer ${token}, Bearer ${token}`]) {
    expect(await statusWith(app, sent)).toBe(401);
  }
});

test('whatever is signed is answered: 200 or 401', async () => {
  const anything = fc.dictionary(fc.string(), fc.jsonValue());
  await fc.assert(
    fc.asyncProperty(anything, fc.jsonValue(), async (header, payload) => {
      const token = signByHand({ ...header, alg: 'HS256' }, payload);
      expect([200, 401]).toContain((await ask(app, `Bearer ${token}`)).statusCode);
    }),
    { numRuns: 500 },
  );
});

const methods = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

test.each(methods)(
  'a token that does not hold is a 401 to %s, before method, parameters and body',
  async (method) => {
    const url = '?page=0&query={__typename}';
    const request = {
      method,
      headers: { 'content-type': 'application/json' },
      ...(method === 'POST' || method === 'PUT' ? { payload: '{' } : {}),
    };
    const rest = await ask(app, 'Bearer nonsense', { ...request, url: `/api/outfits/${url}` });
    const graphql = await ask(app, 'Bearer nonsense', { ...request, url: `/graphql${url}` });
    for (const { statusCode, headers } of [rest, graphql]) {
      expect(statusCode).toBe(401);
      expect(headers['www-authenticate']).toBe('Bearer error="invalid_token"');
    }
    expect(rest.headers['content-type']).toBe('application/json');
    if (method === 'HEAD') return;
    expect(rest.body).toBe('{"detail":"Invalid token."}');
    expect(graphql.json()).toEqual({
      errors: [{ message: 'Invalid token.', extensions: { code: 'UNAUTHENTICATED' } }],
    });
  },
);

test('a token that does not hold is refused too where an answer is known', async () => {
  await ask(app, '');
  const { headers } = await ask(app, '');
  const unchanged = { headers: { 'if-none-match': String(headers['etag']) } };
  expect((await ask(app, '', unchanged)).statusCode).toBe(304);
  expect((await ask(app, 'Bearer nonsense', unchanged)).statusCode).toBe(401);
});

test('a token is refused without a key for tokens', async () => {
  const closed = await open({});
  expect(await statusOf(closed, await sign({ sub: '7' }))).toBe(401);
  expect(await statusOf(closed, `${base64({ alg: 'none' })}.${base64({ sub: '7' })}.`)).toBe(401);
  expect((await ask(closed, '')).statusCode).toBe(200);
});

async function openKeyServer(...keys: object[]) {
  const state = { url: '', keys, fetches: 0, instead: undefined as RequestListener | undefined };
  const server = createServer((request, response) => {
    state.fetches++;
    if (state.instead) return state.instead(request, response);
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ keys: state.keys }));
  });
  state.url = `http://127.0.0.1:${await listen(server)}/jwks.json`;
  onTestFinished(() => closeServer(server));
  return state;
}

const publish = ({ publicKey }: { publicKey: KeyObject }, more: object = {}) => ({
  ...publicKey.export({ format: 'jwk' }),
  ...more,
});

/** Stops the clocks by which keys grow old. */
const holdDate = () => stopClocks(Date, performance);

describe('with a key set', () => {
  const openWithKeys = async (...keys: object[]) => {
    const server = await openKeyServer(...keys);
    return { server, app: await open({ AUTH_JWKS_URL: server.url }) };
  };
  const signBy = (key: KeyObject, alg: string, header = {}) => sign({ sub: '7' }, alg, key, header);
  const one = publish(rsa, { kid: 'one' });
  const byOne = () => signBy(rsa.privateKey, 'RS256', { kid: 'one' });
  const two = publish(ec, { kid: 'two' });
  const byTwo = () => signBy(ec.privateKey, 'ES256', { kid: 'two' });

  test('a token by a published key names the viewer; the keys are fetched once, when the first token comes', async () => {
    const { server, app } = await openWithKeys(
      publish(rsa, { kid: 'rsa' }),
      publish(ec, { kid: 'ec' }),
      publish(ed, { kid: 'ed' }),
    );
    expect((await ask(app, '')).statusCode).toBe(200);
    expect(server.fetches).toBe(0);
    const signed = [
      ...['RS256', 'RS512', 'PS256'].map((alg) => signBy(rsa.privateKey, alg, { kid: 'rsa' })),
      signBy(ec.privateKey, 'ES256', { kid: 'ec' }),
      signBy(ed.privateKey, 'EdDSA', { kid: 'ed' }),
    ];
    const tokens = (await Promise.all(signed)).flatMap((token) => Array<string>(10).fill(token));
    const statuses = await Promise.all(tokens.map((token) => statusOf(app, token)));
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(server.fetches).toBe(1);
    expect(await senders()).toEqual(['address 127.0.0.1', 'user 7']);
  });

  test('a public key is not taken as a secret, nor a secret from the key set', async () => {
    const { publicKey } = rsa;
    const k = Buffer.alloc(32, 'k');
    const published = { kty: 'oct', kid: 'two', k: k.toString('base64url') };
    const { app } = await openWithKeys(one, published);
    for (const [kid, key] of [
      ['one', publicKey.export({ format: 'pem', type: 'spki' })],
      ['one', publicKey.export({ format: 'der', type: 'spki' })],
      ['one', Buffer.from(JSON.stringify(publicKey.export({ format: 'jwk' })))],
      ['two', k],
    ] as const) {
      expect(await statusOf(app, signByHand({ alg: 'HS256', kid }, { sub: '7' }, key))).toBe(401);
    }
    expect(await statusOf(app, `${base64({ alg: 'none' })}.${base64({ sub: '7' })}.`)).toBe(401);
  });

  test.each<[string, object, KeyObject]>([
    ['too weak', publish(weak, { kid: 'bad' }), weak.privateKey],
    ['no point of its curve', { ...publish(ec, { kid: 'bad' }), y: 'AAAA' }, ec.privateKey],
    ['private', { ...ec.privateKey.export({ format: 'jwk' }), kid: 'bad' }, ec.privateKey],
  ])('a token by a published key that is %s is refused', async (_name, published, key) => {
    const { app } = await openWithKeys(published, one);
    const alg = key === weak.privateKey ? 'RS256' : 'ES256';
    const header = { alg, kid: 'bad' };
    const signed = `${base64(header)}.${base64({ sub: '7' })}`;
    // By hand, as no library signs with a weak key.
    const signature = createSign('sha256').update(signed).sign({ key, dsaEncoding: 'ieee-p1363' });
    const token = `${signed}.${signature.toString('base64url')}`;
    expect(await statusOf(app, token)).toBe(401);
    // The key set is not taken to be away.
    expect(await statusOf(app, await byOne())).toBe(200);
  });

  test('keys and addresses that a token brings are not taken', async () => {
    const { app } = await openWithKeys(one);
    const other = await openKeyServer(two);
    for (const header of [
      { kid: 'two', jku: other.url },
      { kid: 'two', jwk: publish(ec) },
      { jwk: publish(ec) },
      { kid: '__proto__' },
    ]) {
      expect(await statusOf(app, await signBy(ec.privateKey, 'ES256', header))).toBe(401);
    }
    expect(other.fetches).toBe(0);
  });

  test('the rules of time, issuer and audience hold as with a secret', async () => {
    const server = await openKeyServer(publish(ec));
    const app = await open({ AUTH_JWKS_URL: server.url, ...both });
    const statusFor = async (claims: object) =>
      statusOf(app, await sign({ ...right, ...claims }, 'ES256', ec.privateKey));
    expect(await statusFor({})).toBe(200);
    for (const wrong of [{ exp: now() - 1 }, { nbf: now() + 60 }, { iss: 'you' }, { aud: 'x' }]) {
      expect(await statusFor(wrong)).toBe(401);
    }
  });

  test('a new key is picked up, and one that is gone is refused', async () => {
    const { server, app } = await openWithKeys(one);
    const pass = holdDate();
    const first = await byOne();
    const second = await byTwo();
    expect(await statusOf(app, first)).toBe(200);

    server.keys = [one, two];
    pass(2);
    expect(await statusOf(app, second)).toBe(200);
    expect(await statusOf(app, first)).toBe(200);

    server.keys = [two];
    pass(11 * 60);
    expect(await statusOf(app, first)).toBe(401);
    expect(await statusOf(app, second)).toBe(200);
  });

  test('tokens with unknown keys do not send a fetch each', async () => {
    const { server, app } = await openWithKeys(one);
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
    const { app } = await openWithKeys(...pairs.map((pair) => publish(pair)));
    for (const { privateKey } of pairs) {
      expect(await statusOf(app, await signBy(privateKey, 'ES256'))).toBe(200);
      const expired = { sub: '7', exp: now() - 1 };
      expect(await statusOf(app, await sign(expired, 'ES256', privateKey))).toBe(401);
    }
    expect(await statusOf(app, await signBy(ec.privateKey, 'ES256'))).toBe(401);
  });

  test.each<[string, RequestListener]>([
    ['leads away', (_request, response) => response.writeHead(302, { location: '/a' }).end()],
    ['gives no JSON', (_request, response) => response.end('<html>')],
    ['gives other JSON', (_request, response) => response.end('{"keys":"none"}')],
    ['hangs in the middle', (_request, response) => response.writeHead(200).write('{"keys":[')],
  ])('a server that %s is a 503 within 2 seconds, until it is back', async (_name, instead) => {
    const { server, app } = await openWithKeys(one);
    server.instead = instead;
    const token = await byOne();
    for (const request of doors) {
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
    const { server, app } = await openWithKeys(one);
    const stopped: Promise<unknown>[] = [];
    let sent = 0;
    function* spaces() {
      for (;;) {
        sent += 65_536;
        yield Buffer.alloc(65_536, ' ');
      }
    }
    server.instead = (_request, response) => {
      stopped.push(expect(pipeline(spaces, response)).rejects.toThrow('Premature close'));
    };
    expect(await statusOf(app, await byOne())).toBe(503);
    await Promise.all(stopped);
    // What is on the way between them included.
    expect(sent).toBeLessThan(64 * 1_048_576);
  });

  test.each<[string, RequestListener]>([
    ['breaks off', (request) => request.socket.destroy()],
    ['hangs', () => {}],
  ])('known keys go on while the server %s, also when they are old', async (_name, instead) => {
    const { server, app } = await openWithKeys(one);
    const pass = holdDate();
    const known = await byOne();
    const unknown = await byTwo();
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

  test.each([
    ['soon', 2],
    ['at once after a pause', 3600],
  ])('when the server is back, keys that are gone are refused %s', async (_name, seconds) => {
    const { server, app } = await openWithKeys(one);
    const pass = holdDate();
    const token = await byOne();
    expect(await statusOf(app, token)).toBe(200);
    server.instead = (request) => request.socket.destroy();
    pass(11 * 60);
    expect(await statusOf(app, token)).toBe(200);
    server.instead = undefined;
    server.keys = [two];
    pass(seconds);
    if (seconds < 60) await expect.poll(() => statusOf(app, token)).toBe(401);
    expect(await statusOf(app, token)).toBe(401);
  });

  test('a bad token is a 401 while the keys are away, if that needs no key', async () => {
    const { server, app } = await openWithKeys();
    server.instead = (request) => request.socket.destroy();
    for (const token of ['nonsense', 'a.b.c', await sign({ sub: '7' })]) {
      expect(await statusOf(app, token)).toBe(401);
    }
    expect(server.fetches).toBe(0);
  });
});

test('npm run token prints a token that the gateway takes, for as long as it says', async () => {
  const app = await open(settings);
  for (const [options, hours] of [
    [['--user', '42'], 24],
    [['--user=42', '--hours=1'], 1],
  ] as const) {
    const printed = await callCommand(tokenCommand, options, settings);
    expect(printed).toEqual({ code: 0, stderr: '', stdout: expect.stringMatching(/^\S+\n$/) });
    const token = printed.stdout.trim();
    expect(await statusOf(app, token)).toBe(200);
    const { iat = 0, exp = 0 } = decodeJwt(token);
    expect(exp - iat).toBe(hours * 3600);
  }
  expect(await senders()).toEqual(['user 42']);
});

test.each<[string, string[], Record<string, string>, RegExp]>([
  ['no secret', ['--user', '1'], {}, /^AUTH_JWT_SECRET is not set, so .*\.\n$/],
  ['a short one', ['--user', '1'], { AUTH_JWT_SECRET: 'short-one' }, /SECRET is not valid/],
  ['user 0', ['--user', '0'], settings, /^--user is "0", but/],
  ['user 2^31', ['--user', '2147483648'], settings, /^--user is "2147483648", but/],
  ['no time', ['--user', '1', '--hours', '0'], settings, /^--hours is "0", but/],
])('npm run token refuses %s in one line', async (_name, options, environment, sentence) => {
  const printed = await callCommand(tokenCommand, options, environment);
  expect(printed).toMatchObject({ code: 2, stdout: '' });
  expect(printed.stderr).toMatch(sentence);
  expect(printed.stderr).toMatch(/^[^\n]+\n$/);
  expect(printed.stderr).not.toContain('short-one');
});
