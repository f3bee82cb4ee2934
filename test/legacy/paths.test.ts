// LEGACY_PATHS: what this gateway does not serve goes to the old service, in every mode but off.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { makeFolder } from '../support/cli/folder.ts';
import { sendRaw } from '../support/http/raw-http.ts';
import { type ScriptedService, startScriptedService } from '../support/legacy/scripted-service.ts';
import { type ListeningGateway, makeMetrics, openBefore } from '../support/legacy/two-services.ts';

let service: ScriptedService;
let before: number;
beforeAll(async () => {
  service = await startScriptedService();
});
beforeEach(() => {
  before = service.received().length;
});
afterAll(() => service.close());

/** What the old service was sent in this test. */
const received = () => service.received().slice(before);

/** A gateway for one test. */
async function open(settings: Record<string, string>, options = {}): Promise<ListeningGateway> {
  const gateway = await openBefore('PostgreSQL', service.base, settings, options);
  onTestFinished(() => gateway.close());
  return gateway;
}

const send = async ({ app }: ListeningGateway, method: string, target: string, header = '') => {
  const lines = ['Host: shop.test', 'Connection: close', ...(header ? [header] : [])];
  const body = method === 'POST' ? 'Content-Length: 2\r\n\r\n{}' : '\r\n';
  const answer = await sendRaw(
    app,
    `${method} ${target} HTTP/1.1\r\n${lines.join('\r\n')}\r\n${body}`,
  );
  const [, servedBy] = /x-served-by: (\w+)/i.exec(answer) ?? [];
  return { status: Number(answer.split(' ')[1]), servedBy, answer };
};

describe('LEGACY_MODE=fallback', () => {
  let gateway: ListeningGateway;
  beforeAll(async () => {
    gateway = await openBefore('PostgreSQL', service.base, {
      LEGACY_MODE: 'fallback',
      LEGACY_PATHS: '/api/,/accounts/',
      LEGACY_SAMPLE: '0',
    });
  });
  afterAll(() => gateway.close());

  test.each([
    ['GET', '/api/users/3/'],
    ['POST', '/api/token/'],
    ['DELETE', '/api/users/3/'],
    ['GET', '/api/outfits/71/comments/'],
    ['OPTIONS', '/api/outfits/71/comments/'],
    ['GET', '/api/outfits/popular/'],
    ['OPTIONS', '/api/outfits/7x/'],
    ['POST', '/accounts/login/?next=/'],
    ['GET', '/api/%zz'],
  ])('%s %s is forwarded, with its bytes', async (method, target) => {
    const { status, servedBy } = await send(gateway, method, target);
    expect({ status, servedBy }).toEqual({ status: 200, servedBy: 'legacy' });
    expect(received()).toContain(`${method} ${target} HTTP/1.1\r\nHost: shop.test\r\n`);
  });

  test.each([
    ['GET', '/api/outfits/', 200],
    ['HEAD', '/api/outfits/', 200],
    ['POST', '/api/outfits/', 401],
    ['DELETE', '/api/outfits/', 405],
    ['GET', '/api/outfits/71/', 404],
    ['DELETE', '/api/outfits/71/', 405],
    ['GET', '/health/live', 200],
    ['GET', '/', 200],
    ['GET', '/accounts', 404],
    ['GET', '/account/login/', 404],
    ['GET', '/admin/', 404],
    ['GET', '/accounts/../admin/', 404],
    ['GET', '//accounts/login/', 404],
    ['GET', '/api/../accounts/../admin/', 404],
  ])('%s %s is answered here', async (method, target, expected) => {
    const { status, servedBy } = await send(gateway, method, target);
    expect({ status, servedBy }).toEqual({ status: expected, servedBy: 'gateway' });
    expect(received()).toBe('');
  });

  test.each(['PUT', 'PATCH', 'DELETE', 'POST', 'TRACE'])(
    '%s below the paths that this service owns is refused with what to use',
    async (method) => {
      for (const target of [
        ...['/api/outfits/71/comments/', '/api/outfits/71/', '/api/outfits/71'],
        // Servers behind the gateway may resolve or decode these.
        ...['/api/tags/../outfits/71/', '/api/tags/%2e%2e/outfits/71/', '/api//outfits/71/'],
        ...['/api/tags/..%5coutfits%5c71', '/api/%252foutfits/71/', '/api/outfits;a=1/71/'],
        '/api/tags/%252e%252e%252foutfits',
      ]) {
        const { status, answer } = await send(gateway, method, target);
        expect(status).toBe(405);
        expect(answer).toMatch(/^allow: GET, HEAD, OPTIONS\r$/im);
        expect(answer).toContain(
          `{"detail":"Method \\"${method}\\" not allowed: this service owns /api/outfits/ now.`,
        );
      }
      expect(received()).toBe('');
    },
  );

  describe.each([
    ['fallback', '/api/,/api/outfits/*/comments/'],
    ['mirror', '/api/outfits/*/comments/'],
  ])('with LEGACY_MODE=%s and LEGACY_PATHS=%s', (LEGACY_MODE, LEGACY_PATHS) => {
    let gateway: ListeningGateway;
    beforeAll(async () => {
      gateway = await openBefore('PostgreSQL', service.base, { LEGACY_MODE, LEGACY_PATHS });
    });
    afterAll(() => gateway.close());

    test.each([
      ['GET', '/api/outfits/71/comments/'],
      ['POST', '/api/outfits/71/comments/'],
      ['POST', '/api/outfits/71/comments/?a=/../'],
      ['DELETE', '/api/outfits/71/comments/3/'],
      ['PUT', '/api/outfits/%37%31/comments/3/likes'],
      ['PATCH', '/api/outfits/a.b-c/comments/x'],
      ['TRACE', '/api/outfits/71/comments/'],
    ])('%s %s is forwarded', async (method, target) => {
      const { status, servedBy } = await send(gateway, method, target);
      expect({ status, servedBy }).toEqual({ status: 200, servedBy: 'legacy' });
      expect(received()).toContain(`${method} ${target} HTTP/1.1\r\n`);
    });

    test.each([
      '/api/outfits/71/',
      '/api/outfits/',
      '/api/outfits/71/comment/',
      '/api/outfits/comments/',
      '/api/outfits/%2e%2e/comments/',
      '/api/outfits/.../comments/',
      '/api/outfits/7%2f8/comments/',
      '/api/outfits/7%5c8/comments/',
      '/api/outfits/7\\8/comments/',
      '/api/outfits/7/8/comments/',
      '/api/outfits/71/comments/../',
      '/api/outfits/71/comments/..',
      '/api/outfits/71/comments/%2e%2e/',
      '/api/outfits/71/comments/..%2f',
      '/api/outfits/71;a/comments/',
      '/api/outfits/71/comments/..;/',
      '/api/outfits/71/comments/;/../',
      '/api/outfits/7%252fcomments/',
      '/api/outfits/71%252fcomments/../',
      '/api/outfits/71/comments',
      '/api/outfits/%2571%252f8/comments/',
    ])('DELETE %s never reaches the old service', async (target) => {
      const { status } = await send(gateway, 'DELETE', target);
      expect([404, 405, 400]).toContain(status);
      expect(received()).toBe('');
    });
  });

  test('a WebSocket is refused with a sentence', async () => {
    const upgrade = 'Upgrade: websocket\r\nSec-WebSocket-Version: 13';
    const { status, answer } = await send(gateway, 'GET', '/api/chat/', upgrade);
    expect(status).toBe(501);
    expect(answer).toContain('WebSocket connections are not forwarded');
  });
});

test('a path of REST_DOCUMENTS outside of /api/ follows the mode, as the listing does', async () => {
  const REST_DOCUMENTS = join(makeFolder(onTestFinished), 'rest.graphql');
  const text =
    'query Looks @route(path: "/v2/looks/") { page: outfits { count results { likes } } }';
  writeFileSync(REST_DOCUMENTS, text);
  for (const [LEGACY_MODE, expected] of [
    ['shadow', 'legacy'],
    ['mirror', 'gateway'],
  ] as const) {
    const gateway = await open({ LEGACY_MODE, REST_DOCUMENTS });
    for (const target of ['/v2/looks/', '/api/outfits/']) {
      expect((await send(gateway, 'GET', target)).servedBy).toBe(expected);
    }
    expect((await send(gateway, 'DELETE', '/v2/looks/7/')).servedBy).toBe('gateway');
  }
});

test('LEGACY_HOST replaces Host, and X-Forwarded-Host keeps the one of the client', async () => {
  const host = 'old.example.com:8000';
  const gateway = await open({ LEGACY_MODE: 'fallback', LEGACY_HOST: host });
  await send(gateway, 'GET', '/api/users/');
  expect(received()).toContain(`\r\nHost: ${host}\r\n`);
  expect(received()).toContain('\r\nX-Forwarded-Host: shop.test\r\n');
  await sendRaw(gateway.app, 'GET /api/users/ HTTP/1.0\r\n\r\n');
  const hosts = received().match(/^host:.*$/gim) ?? [];
  expect(hosts.slice(1)).toEqual([`Host: ${host}`]);
});

test('answers with 60 KiB of headers pass, and beyond 64 the limit is named', async () => {
  const gateway = await open({ LEGACY_MODE: 'fallback' });
  const { answer: usual } = service;
  onTestFinished(() => {
    service.answer = usual;
  });
  const lines = Array.from({ length: 60 }, (_, index) => `X-${index}: ${'v'.repeat(1000)}`);
  service.answer = `HTTP/1.1 200 OK\r\n${lines.join('\r\n')}\r\nContent-Length: 2\r\n\r\nok`;
  const { status, answer } = await send(gateway, 'GET', '/api/users/');
  expect(status).toBe(200);
  expect(answer).toContain(lines.at(-1));
  service.answer = service.answer.replace('X-0:', `X-More: ${'v'.repeat(9_000)}\r\nX-0:`);
  const larger = await send(gateway, 'GET', '/api/users/');
  expect(larger.status).toBe(502);
  expect(larger.answer).toContain(
    '{"detail":"The answer of the old service has more than 64 KiB of headers."}',
  );
});

test('metrics name the forwarded paths, without the ids', async () => {
  const metrics = makeMetrics();
  const settings = { LEGACY_MODE: 'mirror', LEGACY_PATHS: '/api/,/graphql-before/' };
  const gateway = await open(settings, { metrics });
  for (const id of [3, 4]) {
    await send(gateway, 'GET', `/api/users/${id}/`);
    await send(gateway, 'GET', `/api/files/2026/photo_${id}.jpg`);
    await send(gateway, 'GET', `/graphql-before/${id}/`);
  }
  const { text } = await metrics.print();
  const paths = ['/api/users/:id/', '/api/files/:id/:file.jpg', '/graphql-before/:id/'];
  for (const path of paths) {
    const labels = `client="unknown",interface="legacy",path="${path}"`;
    expect(text).toContain(`gateway_client_requests_total{${labels}} 2`);
  }
});

test('metrics name at most 60 forwarded paths of a client, and its requests to REST beside them', async () => {
  const metrics = makeMetrics();
  const gateway = await open({ LEGACY_MODE: 'fallback' }, { metrics });
  const letters = [...'abcdefgh'];
  for (const path of letters.flatMap((one) => letters.map((two) => `/api/${one}/${two}/`))) {
    expect((await send(gateway, 'GET', path)).servedBy).toBe('legacy');
  }
  expect((await send(gateway, 'GET', '/api/outfits/')).status).toBe(200);
  const counted = async () =>
    [...(await metrics.print()).text.matchAll(/^gateway_client_requests_total(.+)$/gm)].map(
      ([, series]) => series,
    );
  const labels = 'client="unknown",interface=';
  await expect.poll(counted).toContain(`{${labels}"rest",path="/api/outfits/"} 1`);
  expect(await counted()).toContain(`{${labels}"legacy",path="other"} 4`);
  expect(await counted()).toHaveLength(62);
});
