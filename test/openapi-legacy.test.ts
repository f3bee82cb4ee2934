// /api/openapi.json before the switch: what the gateway answers in place of the old service, and what is
// the old service's own.
import type { InjectOptions } from 'fastify';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Fault, type LegacyService, startLegacyService } from './legacy-service.ts';
import { type ListeningGateway, openBefore, records } from './old-side.ts';
import { askUnreadable, createChecker, type Json } from './openapi-answers.ts';
import { secret } from './tokens.ts';

const paths = ['/api/outfits/', '/api/outfits'];
const path = '/api/outfits/';
const methods = ['GET', 'HEAD', 'POST', 'OPTIONS', 'DELETE'] as const;
type Method = (typeof methods)[number];

const origin = 'https://app.test';
const environment = { LEGACY_TIMEOUT: '1', AUTH_JWT_SECRET: secret };

let legacy: LegacyService;
beforeAll(async () => {
  legacy = await startLegacyService(records());
});
afterAll(() => legacy.close());

interface Open {
  readonly gateway: ListeningGateway;
  readonly document: Json;
  readonly checker: ReturnType<typeof createChecker>;
}

/** The document as a client gets it whom the gateway answers. */
async function withMode(
  settings: Record<string, string>,
  work: (open: Open) => Promise<void>,
): Promise<void> {
  legacy.fault = undefined;
  legacy.requests.length = 0;
  const gateway = await openBefore('PostgreSQL', legacy.base, { ...environment, ...settings });
  try {
    const { remoteAddress } = await findClient(gateway, 'gateway');
    const asked = { method: 'GET', url: '/api/openapi.json', remoteAddress } as const;
    const document = (await gateway.app.inject(asked)).json();
    await work({ gateway, document, checker: createChecker(document) });
  } finally {
    await gateway.close();
  }
}

/** A client whom this side answers. */
async function findClient({ app }: ListeningGateway, side: string) {
  for (let number = 1; number < 100; number += 1) {
    const remoteAddress = `10.1.1.${number}`;
    const { headers } = await app.inject({ method: 'GET', url: path, remoteAddress });
    if (headers['x-served-by'] === side) return { remoteAddress };
  }
  throw new Error(`The ${side} answers nobody.`);
}

async function ask(
  { gateway, checker }: Open,
  request: InjectOptions & { readonly method: Method; readonly url: string },
  status: number,
  example?: string,
) {
  const response = await gateway.app.inject(request);
  expect([request.method, request.url, response.statusCode]).toEqual([
    request.method,
    request.url,
    status,
  ]);
  const seen = request.method === 'HEAD' ? undefined : example;
  return checker.check({ path: request.url, method: request.method, example: seen }, response);
}

/** Asks with the header by which a gateway knows what has been here before. */
async function askInACircle(open: Open, asked: readonly Method[]): Promise<void> {
  const passedOn = () => legacy.requests.find(({ headers }) => headers['x-forwarded-by']);
  await expect.poll(passedOn).toBeDefined();
  const headers = { 'x-forwarded-by': String(passedOn()?.headers['x-forwarded-by']), origin };
  for (const url of paths) {
    for (const method of asked) await ask(open, { method, url, headers }, 508, 'loop');
  }
}

const failures: [fault: Fault, status: number, example: string][] = [
  ['closing early', 502, 'legacyUnreachable'],
  ['hanging', 504, 'legacyTimedOut'],
];

async function seeUnreadable({ gateway, checker }: Open, asked: readonly Method[]): Promise<void> {
  await Promise.all(
    paths.flatMap((url) =>
      asked.map(async (method) => {
        const unreadable = await askUnreadable(gateway.app, method, url);
        for (const [example, answer] of Object.entries(unreadable)) {
          checker.check({ path: url, method, example }, answer);
        }
      }),
    ),
  );
}

test('what is passed on is answered by the old service, or by the gateway in its place', async () => {
  const settings = {
    LEGACY_MODE: 'canary:100',
    REST_DEPRECATED: '2026-01-31',
    CORS_ORIGINS: origin,
  };
  await withMode(settings, async (open) => {
    const passedOn = ['POST', 'OPTIONS', 'DELETE'] as const;
    const sent = await fetch(`${open.gateway.base}${path}`, { method: 'POST', body: '{}' });
    expect(sent.status).toBe(201);
    const headers = Object.fromEntries(sent.headers);
    const answer = { statusCode: sent.status, headers, body: await sent.text() };
    const described = open.checker.check({ path, method: 'POST' }, answer);
    expect(described['description']).toBe('Whatever the old service answers, as it is.');
    await ask(open, { method: 'OPTIONS', url: path }, 200);
    await ask(open, { method: 'DELETE', url: path }, 405);
    for (const method of passedOn) await ask(open, { method, url: '/api/outfits' }, 301);
    await askInACircle(open, methods);
    for (const [fault, status, example] of failures) {
      legacy.fault = fault;
      const asked = paths.flatMap((url) => passedOn.map((method) => ({ method, url })));
      const headers = { origin };
      await Promise.all(
        asked.map((request) => ask(open, { ...request, headers }, status, example)),
      );
    }
    // As many as may wait for it.
    legacy.fault = 'hanging';
    const patient = { ...environment, ...settings, LEGACY_TIMEOUT: '80' };
    const busy = await openBefore('PostgreSQL', legacy.base, patient);
    try {
      for (let waiting = 0; waiting < 2_048; waiting += 1) {
        busy.app.inject({ method: 'DELETE', url: '/api/many/' }).catch(() => {});
      }
      for (const url of paths) {
        for (const method of passedOn) {
          const request = { method, url, headers: { origin } };
          await ask({ ...open, gateway: busy }, request, 503, 'legacyBusy');
        }
      }
    } finally {
      await busy.close();
    }
    await seeUnreadable(open, passedOn);
    open.checker.expectAllSeen((_path, method) => method !== 'get' && method !== 'head');
    for (const url of paths) {
      for (const method of ['get', 'head']) {
        const responses = open.document['paths']?.[url]?.[method]?.['responses'] ?? {};
        for (const status of ['502', '504', 'default'])
          expect(responses).not.toHaveProperty(status);
      }
    }
  });
});

test('with WRITES=off no POST is passed on', async () => {
  await withMode({ LEGACY_MODE: 'canary:100', WRITES: 'off' }, async (open) => {
    await ask(open, { method: 'OPTIONS', url: path }, 200);
    await askInACircle(open, ['POST']);
    for (const url of paths) {
      for (const method of ['POST', 'DELETE'] as const) {
        await ask(open, { method, url }, 503, 'writesOff');
      }
    }
    await seeUnreadable(open, ['POST']);
    open.checker.expectAllSeen((_path, method) => method === 'post');
  });
});

test('of some clients the old service answers reading, too', async () => {
  await withMode({ LEGACY_MODE: 'canary:50' }, async (open) => {
    const ours = await findClient(open.gateway, 'gateway');
    const theirs = await findClient(open.gateway, 'legacy');
    for (const method of ['GET', 'HEAD'] as const) {
      await ask(open, { method, url: path, ...ours }, 200);
      await ask(open, { method, url: '/api/outfits', ...ours }, 301);
      for (const [fault, status, example] of failures) {
        legacy.fault = fault;
        for (const url of paths) await ask(open, { method, url, ...theirs }, status, example);
      }
      legacy.fault = undefined;
    }
    const told = open.document['paths']?.[path]?.['get']?.['responses'] ?? {};
    expect(Object.keys(told)).toEqual(expect.arrayContaining(['502', '504', 'default']));
  });
});

test('in mirror nothing is passed on, but a circle is told', async () => {
  await withMode({ LEGACY_MODE: 'mirror', LEGACY_SAMPLE: '100' }, async (open) => {
    await fetch(`${open.gateway.base}${path}`);
    await askInACircle(open, methods);
    const text = JSON.stringify(open.document['paths']);
    expect(text).not.toMatch(/"50[24]":|"default":\{/);
  });
});
