// LEGACY_PATHS: what this gateway does not serve goes to the old service, in every mode but off.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Metrics } from '../../src/observability/metrics.ts';
import { sendRaw } from '../support/http/raw-http.ts';
import { type ScriptedService, startScriptedService } from '../support/legacy/scripted-service.ts';
import { type ListeningGateway, openBefore } from '../support/legacy/two-services.ts';

let service: ScriptedService;
beforeAll(async () => {
  service = await startScriptedService();
});
afterAll(() => service.close());

const send = async ({ app }: ListeningGateway, method: string, target: string, header = '') => {
  const lines = ['Host: shop.test', 'Connection: close', ...(header ? [header] : [])];
  const body = method === 'POST' ? 'Content-Length: 2\r\n\r\n{}' : '\r\n';
  const received = await sendRaw(
    app,
    `${method} ${target} HTTP/1.1\r\n${lines.join('\r\n')}\r\n${body}`,
  );
  const [, servedBy] = /x-served-by: (\w+)/i.exec(received) ?? [];
  return { status: Number(received.split(' ')[1]), servedBy, received };
};

describe.each(['mirror', 'fallback'])('LEGACY_MODE=%s', (mode) => {
  let gateway: ListeningGateway;
  beforeAll(async () => {
    gateway = await openBefore('PostgreSQL', service.base, {
      LEGACY_MODE: mode,
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
    expect(service.received()).toContain(`${method} ${target} HTTP/1.1\r\nHost: shop.test\r\n`);
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
    ['GET', '/accounts/x/%2e%2e/%2e%2e/admin/', 404],
    ['GET', '/accounts/%252e%252e/admin/', 404],
    ['GET', '/accounts/..%5cadmin/', 404],
    ['GET', '/accounts/..;/admin/', 404],
    ['GET', '//accounts/login/', 404],
    ['GET', '/api/../accounts/../admin/', 404],
  ])('%s %s is answered here', async (method, target, expected) => {
    const before = service.received().length;
    const { status, servedBy } = await send(gateway, method, target);
    expect({ status, servedBy }).toEqual({ status: expected, servedBy: 'gateway' });
    expect(service.received().length).toBe(before);
  });

  test.each(['PUT', 'PATCH', 'DELETE', 'POST', 'TRACE'])(
    '%s below the paths that this service owns is refused with what to use',
    async (method) => {
      const before = service.received().length;
      for (const target of [
        ...['/api/outfits/71/comments/', '/api/outfits/71/', '/api/outfits/71'],
        // Servers behind the gateway may resolve or decode these.
        ...['/api/tags/../outfits/71/', '/api/tags/%2e%2e/outfits/71/', '/api//outfits/71/'],
        ...['/api/tags/..%5coutfits%5c71', '/api/%252foutfits/71/', '/api/outfits;a=1/71/'],
        '/api/tags/%252e%252e%252foutfits',
      ]) {
        const { status, received } = await send(gateway, method, target);
        expect(status).toBe(405);
        expect(received).toMatch(/^allow: GET, HEAD, OPTIONS\r$/im);
        expect(received).toContain(
          `{"detail":"Method \\"${method}\\" not allowed: this service owns /api/outfits/ now.`,
        );
      }
      expect(service.received().length).toBe(before);
    },
  );

  test('a WebSocket is refused with a sentence', async () => {
    const upgrade = 'Upgrade: websocket\r\nSec-WebSocket-Version: 13';
    const { status, received } = await send(gateway, 'GET', '/api/chat/', upgrade);
    expect(status).toBe(501);
    expect(received).toContain('WebSocket connections are not forwarded');
  });
});

test('LEGACY_HOST replaces Host, and X-Forwarded-Host keeps the one of the client', async () => {
  const gateway = await openBefore('PostgreSQL', service.base, {
    LEGACY_MODE: 'fallback',
    LEGACY_HOST: 'old.example.com:8000',
  });
  try {
    const before = service.received().length;
    await send(gateway, 'GET', '/api/users/');
    const sent = service.received().slice(before);
    expect(sent).toContain('\r\nHost: old.example.com:8000\r\n');
    expect(sent).toContain('\r\nX-Forwarded-Host: shop.test\r\n');
  } finally {
    await gateway.close();
  }
});

test('answers with 60 KiB of headers pass, and beyond 64 the limit is named', async () => {
  const gateway = await openBefore('PostgreSQL', service.base, { LEGACY_MODE: 'fallback' });
  const answer = service.answer;
  try {
    const lines = Array.from({ length: 60 }, (_, index) => `X-${index}: ${'v'.repeat(1000)}`);
    service.answer = `HTTP/1.1 200 OK\r\n${lines.join('\r\n')}\r\nContent-Length: 2\r\n\r\nok`;
    const { status, received } = await send(gateway, 'GET', '/api/users/');
    expect(status).toBe(200);
    expect(received).toContain(lines.at(-1));
    service.answer = service.answer.replace('X-0:', `X-More: ${'v'.repeat(9_000)}\r\nX-0:`);
    const larger = await send(gateway, 'GET', '/api/users/');
    expect(larger.status).toBe(502);
    expect(larger.received).toContain(
      '{"detail":"The answer of the old service has more than 64 KiB of headers."}',
    );
  } finally {
    service.answer = answer;
    await gateway.close();
  }
});

test('metrics and usage name the forwarded paths, without the ids', async () => {
  const pool = { totalCount: 0, idleCount: 0, lanes: {}, timedOut: 0 };
  const metrics = new Metrics({ pool, snapshots: { observe: () => {} } } as never);
  const settings = { LEGACY_MODE: 'mirror' };
  const gateway = await openBefore('PostgreSQL', service.base, settings, { metrics });
  try {
    for (const id of [3, 4]) {
      await send(gateway, 'GET', `/api/users/${id}/`);
      await send(gateway, 'GET', `/api/files/2026/photo_${id}.jpg`);
    }
    const { text } = await metrics.print();
    expect(text).toContain('gateway_legacy_paths_total{path="/api/users/:id/"} 2');
    expect(text).toContain('gateway_legacy_paths_total{path="/api/files/:id/:file.jpg"} 2');
    const { usage } = await metrics.readUsage();
    expect(usage).toMatchObject([
      { route: '/api/users/:id/ (old service)', requests: 2 },
      { route: '/api/files/:id/:file.jpg (old service)', requests: 2 },
    ]);
  } finally {
    await gateway.close();
  }
});
