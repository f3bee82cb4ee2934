// LEGACY_MODE=shadow: what passes between clients and the old service passes as it is.
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { findFreePort } from '../support/http/free-port.js';
import { sendRaw } from '../support/http/raw-http.ts';
import { type LegacyService, startLegacyService } from '../support/legacy/legacy-service.ts';
import { type ScriptedService, startScriptedService } from '../support/legacy/scripted-service.ts';
import { type ListeningGateway, openBefore, records } from '../support/legacy/two-services.ts';

const get = (target: string, ...lines: string[]) =>
  `GET ${target} HTTP/1.1\r\nHost: shop.test\r\n${lines.map((line) => `${line}\r\n`).join('')}Connection: close\r\n\r\n`;

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

describe('in front of a service that answers with any bytes', () => {
  let service: ScriptedService;
  let gateway: ListeningGateway;
  beforeAll(async () => {
    service = await startScriptedService();
    gateway = await openBefore('PostgreSQL', service.base, {
      LEGACY_MODE: 'shadow',
      LEGACY_TIMEOUT: '1s',
      CORS_ORIGINS: 'https://app.test',
      RATE_LIMIT: '1/day',
    });
  });
  afterAll(async () => {
    await gateway.close();
    await service.close();
  });

  let before: number;
  beforeEach(() => {
    service.answer = ok;
    service.ends = true;
    before = service.received().length;
  });
  /** What the service was sent in this test. */
  const arrived = () => service.received().slice(before);

  /** A connection on which a client sends what it likes. */
  const open = ({ base } = gateway) => {
    const { hostname, port } = new URL(base);
    return connect({ host: hostname, port: Number(port) });
  };

  test.each([
    [
      'spelling and order of headers',
      'HTTP/1.1 200 OK\r\nvAry: a\r\nContent-Length: 2\r\nX-B: \xe9\r\nvary: b\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n\r\nok',
    ],
    ['a status with its words', 'HTTP/1.1 418 I am a Teapot\r\nContent-Length: 2\r\n\r\nok'],
    ['no words', 'HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n'],
    [
      'a redirect',
      'HTTP/1.1 302 Found\r\nLocation: ../elsewhere/?a=b c\r\nContent-Length: 0\r\n\r\n',
    ],
    ['204', 'HTTP/1.1 204 No Content\r\nAllow: GET\r\n\r\n'],
    ['304', 'HTTP/1.1 304 Not Modified\r\nETag: W/"x"\r\nDate: then\r\n\r\n'],
    [
      'a page of errors',
      'HTTP/1.1 500 Internal Server Error\r\nContent-Type: text/html\r\nContent-Length: 7\r\n\r\n<h1>no!',
    ],
    [
      'compressed bytes',
      'HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x00\xff',
    ],
  ])('passes on %s, and adds only x-served-by', async (_what, answer) => {
    service.answer = answer;
    const received = await sendRaw(gateway.app, get('/api/outfits/'));
    const [head = '', body] = received.split('\r\n\r\n');
    const [theirs = '', theirBody = ''] = Buffer.from(answer, 'latin1')
      .toString()
      .split('\r\n\r\n');
    expect(head).toBe(`${theirs}\r\nx-served-by: legacy\r\nConnection: close`);
    expect(body).toBe(theirBody);
  });

  test('passes on the answer to HEAD, without waiting for a body', async () => {
    service.answer = 'HTTP/1.1 404 Not Found\r\nAllow: GET\r\nContent-Length: 7\r\n\r\n';
    const received = await sendRaw(gateway.app, get('/api/x/').replace('GET', 'HEAD'));
    const added = 'x-served-by: legacy\r\nConnection: close\r\n\r\n';
    expect(received).toBe(service.answer.replace(/\r\n$/, added));
  });

  test('answers of unknown length come whole, with their trailers', async () => {
    service.answer = 'HTTP/1.1 200 OK\r\nX-Kind: old\r\n\r\nuntil the end';
    const whole = await sendRaw(gateway.app, get('/api/outfits/'));
    expect(whole).toMatch(/\r\n\r\nd\r\nuntil the end\r\n0\r\n\r\n$/);
    service.answer =
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n';
    const trailed = await sendRaw(gateway.app, get('/api/outfits/'));
    expect(trailed).toMatch(/\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n$/);
    for (const asked of [get('/api/x/', 'Trailer: X-Sum'), get('/api/x/').replace('1.1', '1.0')]) {
      const answer = await sendRaw(gateway.app, asked);
      expect(answer).toMatch(/^HTTP\/1.1 200 OK\r\n[\s\S]*\r\n\r\n[\s\S]*ok/);
    }
  });

  test('a target in absolute form arrives in origin form, with its authority as Host', async () => {
    await sendRaw(gateway.app, get('http://other.example/api/x/?a=1'));
    expect(arrived()).toMatch(/^GET \/api\/x\/\?a=1 HTTP\/1\.1\r\nHost: other\.example\r\n/);
    expect(arrived()).toContain('\r\nX-Forwarded-Host: other.example\r\n');
    expect(arrived()).not.toContain('shop.test');
  });

  test('the request arrives as it was sent, with where it comes from', async () => {
    const kept = [
      ...['X-One: 1', 'x-One: 2', 'Cookie: a=b', 'Origin: https://app.test'],
      ...['Authorization: Token t', 'Accept-Encoding: gzip', 'If-None-Match: "x"'],
    ];
    const ofTheConnection = ['Keep-Alive: 5', 'X-Hop: 1', 'Connection: X-Hop', 'TE: trailers'];
    const forwarded = ['X-Forwarded-For: 9.9.9.9', 'X-Forwarded-Proto: https'];
    const target = "/api/x/?q='%zz&a=%2B+";
    await sendRaw(gateway.app, get(target, ...kept, ...ofTheConnection, ...forwarded));
    expect(arrived().split('\r\n')).toEqual([
      `GET ${target} HTTP/1.1`,
      'Host: shop.test',
      ...kept,
      'X-Forwarded-Proto: https',
      'X-Forwarded-For: 9.9.9.9, 127.0.0.1',
      'X-Forwarded-Host: shop.test',
      expect.stringMatching(/^X-Forwarded-By: outfit-gateway-[0-9a-f]{12}$/),
      'Connection: keep-alive',
      '',
      '',
    ]);
  });

  test.each([
    '/api/%zz/',
    '/api/outfits',
    '/%61pi/outfits/',
    `/api/${'x'.repeat(300)}`,
    '/api/x/;v=1/',
    '/api/x;a..b/',
    '/api/x/../outfits/',
    '/api/a..b/',
    '/api/x?..=/../../',
    '/api/%25/%2e/',
  ])('whatever stays below /api/ is its own, as it is: %s', async (target) => {
    expect(await sendRaw(gateway.app, get(target))).toContain('x-served-by: legacy');
    expect(arrived()).toContain(`GET ${target} HTTP/1.1`);
  });

  test.each([
    '/api/../admin/',
    '/api/%2e%2e/admin/',
    '/api/%2E./admin/',
    '/api/x/..%2f../admin/',
    '/api//../admin/',
    '/api/./../admin/',
    '/api/..\\admin/',
    '/api/..%5cadmin/',
    '/api/%252e%252e/admin/',
    '/api/%25252e%25252e%25252fadmin/',
    '/api/..;/admin/',
    '/api/;/../admin',
    '/api/;a=b/..;c/admin',
    '/api/x;/../../admin',
    '/api/.;/../admin',
    '/api/%3b/../admin',
    '/api/%253bx/%2e%2e/admin',
    '/api/;\\..\\admin',
    '/api/a;%2fx/../../admin',
    '/api/%zz/../../admin/',
    '/api/..',
    'http://shop.test/api/../admin/',
  ])('nothing outside of /api/ can be reached: %s', async (target) => {
    for (const method of ['GET', 'POST']) {
      const answer = await sendRaw(gateway.app, get(target).replace('GET', method));
      expect(answer).toMatch(/^HTTP\/1.1 404 Not Found\r\n/);
      expect(answer).toContain('x-served-by: gateway\r\n');
    }
    expect(arrived()).toBe('');
  });

  test.each(['PUT', 'DELETE', 'PATCH', 'POST', 'OPTIONS', 'PROPFIND'])(
    '%s without a body arrives without one',
    async (method) => {
      for (const lines of [[], ['Content-Length: 0']]) {
        before = service.received().length;
        await sendRaw(gateway.app, get('/api/outfits/', ...lines).replace('GET', method));
        expect(arrived()).toMatch(new RegExp(`^${method} /api/outfits/ HTTP/1.1\r\n`));
        expect(arrived()).not.toMatch(/chunked|content-length: [1-9]|length:[\s\S]*length:/i);
      }
    },
  );

  test('a body arrives while it is sent, chunked as it is', async () => {
    service.answer = '';
    const client = open();
    client.write(
      'POST /api/x/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n',
    );
    const [said] = await once(client, 'data');
    expect(String(said)).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    client.write('5\r\nfirst\r\n');
    await expect.poll(() => arrived()).toContain('5\r\nfirst\r\n');
    // It answers before all has come: then that is the answer.
    service.answer = 'HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno';
    client.write('6\r\n\r\n\r\n..\r\n');
    const [answer] = await once(client, 'data');
    expect(String(answer)).toMatch(/^HTTP\/1.1 413 Too Large\r\n/);
    client.destroy();
  });

  test('a body may pause for longer than the old service may be silent', async () => {
    service.answer = '';
    const client = open();
    client.write('POST /api/x/ HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nfi');
    await expect.poll(() => arrived()).toMatch(/fi$/);
    // The pause itself is what is tested: LEGACY_TIMEOUT is a second.
    await new Promise((settle) => setTimeout(settle, 1_500));
    service.answer = ok;
    client.write('\r\n\r\n');
    const [answer] = await once(client, 'data');
    expect(String(answer)).toMatch(/^HTTP\/1.1 200 OK\r\n/);
    client.destroy();
  });

  test('bodies that pause give way to a request that waits for a connection', async () => {
    service.answer = '';
    const start = 'POST /api/x/ HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n';
    let said = '';
    const clients = Array.from({ length: 256 }, () =>
      open()
        .on('error', () => {})
        .on('data', (chunk) => {
          said += chunk;
        }),
    );
    onTestFinished(() => {
      for (const client of clients) client.destroy();
    });
    for (const client of clients) client.write(`${start}\r\nfi`);
    await expect.poll(() => arrived().split('\r\n\r\nfi').length).toBe(257);
    service.answer = ok;
    const answered = sendRaw(gateway.app, `${start}Connection: close\r\n\r\nfive`);
    // Sooner than a client that is silent is left.
    await expect.poll(() => said, { timeout: 45_000 }).toMatch(/^HTTP\/1.1 504 /);
    await answered;
  });

  test('pages of listed origins can read why a request failed', async () => {
    service.answer = 'no HTTP';
    const allowed = await sendRaw(gateway.app, get('/api/outfits/', 'Origin: https://app.test'));
    expect(allowed).toMatch(/^HTTP\/1.1 502 /);
    expect(allowed).toMatch(/^access-control-allow-origin: https:\/\/app\.test\r$/m);
    expect(allowed).toMatch(
      /^access-control-expose-headers: Deprecation, ETag, Link, RateLimit, /m,
    );
    for (const line of [[], ['Origin: https://other.test']]) {
      const other = await sendRaw(gateway.app, get('/api/outfits/', ...line));
      expect(other).toMatch(/^HTTP\/1.1 502 /);
      expect(other).not.toContain('access-control');
    }
  });

  test('an answer that stops half way is broken off', async () => {
    service.answer = 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf';
    for (const ends of [true, false]) {
      service.ends = ends;
      const answer = await sendRaw(gateway.app, get('/api/outfits/'));
      expect(answer).toMatch(/Content-Length: 10\r\n[\s\S]*\r\n\r\nhalf$/);
    }
  });

  test.each([
    ['nonsense', 502, 'The old service cannot be reached.'],
    ['HTTP/1.1 2000 no\r\n\r\n', 502, 'The old service cannot be reached.'],
    [
      'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n',
      502,
      'The old service cannot be reached.',
    ],
    ['', 504, 'The old service did not answer in time.'],
  ])('an unreadable answer (%s) is a %i', async (answer, status, detail) => {
    service.answer = answer;
    service.ends = answer !== '';
    const response = await fetch(`${gateway.base}/api/outfits/`);
    expect(response.status).toBe(status);
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(response.headers.get('x-served-by')).toBe('legacy');
    expect(await response.json()).toEqual({ detail });
  });

  test('a client that leaves takes its request to the old service with it', async () => {
    service.answer = '';
    const longTimeout = { LEGACY_MODE: 'shadow', LEGACY_TIMEOUT: '80s' };
    const own = await openBefore('PostgreSQL', service.base, longTimeout);
    onTestFinished(() => own.close());
    const client = open(own);
    client.write(get('/api/outfits/'));
    await expect.poll(() => arrived()).toContain('\r\n\r\n');
    const connections = service.connections();
    client.destroy();
    // Sooner than LEGACY_TIMEOUT would end it.
    await expect.poll(() => service.connections()).toBe(connections - 1);
  });

  test('a kept connection that is closed at once does not count as a failure', async () => {
    service.answer = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nKeep-Alive: timeout=60\r\n\r\nok';
    for (let time = 0; time < 20; time += 1) {
      for (const method of ['GET', 'POST']) {
        const response = await fetch(`${gateway.base}/api/outfits/`, { method });
        expect([response.status, await response.text()]).toEqual([200, 'ok']);
      }
    }
  });
});

describe('in front of Django REST Framework', () => {
  let legacy: LegacyService;
  let gateway: ListeningGateway;
  beforeAll(async () => {
    legacy = await startLegacyService(records());
    gateway = await openBefore('PostgreSQL', legacy.base, {
      LEGACY_MODE: 'shadow',
      LEGACY_TIMEOUT: '1s',
      MAX_CONCURRENT_REQUESTS: '1',
    });
  });
  beforeEach(() => {
    legacy.fault = undefined;
    legacy.requests.length = 0;
  });
  afterAll(async () => {
    await gateway.close();
    await legacy.close();
  });

  test('a body of any type and size passes, beyond what the gateway itself takes', async () => {
    const body = Buffer.alloc(3_000_000, 'x\u00e9');
    const response = await fetch(`${gateway.base}/api/echo/`, {
      method: 'POST',
      headers: { 'content-type': 'image/jpeg' },
      body,
    });
    expect(response.headers.get('content-type')).toBe('image/jpeg');
    expect(Buffer.from(await response.arrayBuffer()).equals(body)).toBe(true);
  });

  test.each(['closing early', 'hanging'] as const)(
    'a write is sent once, also to a service that is %s',
    async (fault) => {
      // So that there is a connection that could be used again.
      await fetch(`${gateway.base}/api/outfits/`);
      legacy.fault = fault;
      const count = legacy.requests.length;
      const response = await fetch(`${gateway.base}/api/outfits/`, { method: 'POST', body: '{}' });
      expect(response.status).toBe(fault === 'hanging' ? 504 : 502);
      expect(legacy.requests.length).toBe(count + 1);
    },
  );

  test.each(['/api/nothing/', '/api/%zz/'])(
    'the answer to a write may take a while after all of it has come: %s',
    async (target) => {
      legacy.fault = 'slow';
      const answer = await sendRaw(
        gateway.app,
        get(target, 'Content-Length: 4').replace('GET', 'POST'),
        'body',
      );
      expect(answer).toMatch(/^HTTP\/1.1 404 Not Found\r\n/);
      expect(answer).toContain('x-served-by: legacy\r\n');
      expect(legacy.requests.at(-1)).toMatchObject({ target, body: Buffer.from('body') });
    },
  );

  test('requests that come together are answered in their order', async () => {
    const one = (page: number, last = '') =>
      `GET /api/outfits/?page=${page} HTTP/1.1\r\nHost: shop.test\r\n${last}\r\n`;
    const answers = await sendRaw(
      gateway.app,
      `${one(3)}${one(1)}${one(9)}${one(2, 'Connection: close\r\n')}`,
    );
    const statuses = [...answers.matchAll(/HTTP\/1.1 (\d+)/g)].map(([, status]) => status);
    expect(statuses).toEqual(['200', '200', '404', '200']);
    const links = [...answers.matchAll(/"next":(null|".*?")/g)].map(([, link]) => link);
    expect(links).toEqual([
      'null',
      '"http://shop.test/api/outfits/?page=2"',
      '"http://shop.test/api/outfits/?page=3"',
    ]);
  });

  test('a client of HTTP/1.0 without a host is served too', async () => {
    const answer = await sendRaw(gateway.app, 'GET /api/outfits/?page=9 HTTP/1.0\r\n\r\n');
    expect(answer).toMatch(
      /^HTTP\/1.1 404 Not Found\r\n[\s\S]*\r\n\r\n{"detail":"Invalid page."}$/,
    );
    const { headers } = legacy.requests.at(-1) ?? {};
    expect(headers?.host).toBe(new URL(legacy.base).host);
    expect(headers).not.toHaveProperty('x-forwarded-host');
  });

  test('is found out when it is the gateway itself', async () => {
    const port = await findFreePort();
    const settings = { LEGACY_MODE: 'shadow' };
    const base = `http://127.0.0.1:${port}`;
    const looped = await openBefore('PostgreSQL', base, settings, {}, port);
    const there = await openBefore('PostgreSQL', looped.base, settings);
    const first = await fetch(`${looped.base}/api/outfits/`);
    expect(first.status).toBe(508);
    expect(await first.json()).toEqual({ detail: expect.stringContaining('LEGACY_URL') });
    expect(await sendRaw(looped.app, get('/api/%zz'))).toMatch(/^HTTP\/1.1 508 /);
    // By way of another one too.
    expect((await fetch(`${there.base}/api/outfits/`)).status).toBe(508);
    await there.close();
    await looped.close();
  });
});
