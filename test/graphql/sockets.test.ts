// graphql-transport-ws, by what a client sees: messages, close codes, and refused handshakes.
import { once } from 'node:events';
import { connect } from 'node:net';
import { createClient } from 'graphql-ws';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { openGateway, type TestGateway } from '../support/gateway.ts';
import { baseOfApp } from '../support/http/event-stream.ts';
import { openAcknowledged, openSocket } from '../support/http/socket.ts';
import { secret, signIn } from '../support/http/tokens.ts';
import { startWebhook } from '../support/http/webhook.ts';

const rows = [...generateOutfits({ outfits: 5, users: 2 })];
const id = rows[0]?.id ?? 0;
const oneOutfit = `subscription { outfit(databaseId: ${id}) { title } }`;

interface Open extends TestGateway {
  readonly base: string;
}

async function open(environment: Record<string, string> = {}): Promise<Open> {
  const gateway = await openGateway('PostgreSQL', rows, {
    AUTH_JWT_SECRET: secret,
    ...environment,
  });
  return { ...gateway, base: await baseOfApp(gateway.app) };
}

let gateway: Open;
beforeAll(async () => {
  gateway = await open({ CORS_ORIGINS: 'https://app.test' });
});
afterAll(() => gateway.close());

const retitle = (title: string) =>
  gateway.database.pool.query('UPDATE outfits SET title = $1 WHERE id = $2', [title, id]);
const next = (operation: string, title: string) => ({
  id: operation,
  type: 'next',
  payload: { data: { outfit: { title } } },
});

test('many operations over one connection: each is answered, and live ones again after a commit', async () => {
  await retitle('One');
  const { subscribe, next: take, send, messages } = await openAcknowledged(gateway.base);
  subscribe('live', oneOutfit);
  expect(await take()).toEqual(next('live', 'One'));
  subscribe('query', `{ outfit(databaseId: ${id}) { title } }`);
  expect(await take()).toEqual(next('query', 'One'));
  expect(await take()).toEqual({ id: 'query', type: 'complete' });
  subscribe('live 2', oneOutfit);
  expect(await take()).toEqual(next('live 2', 'One'));
  await retitle('Two');
  const both = [await take(), await take()];
  expect(both).toContainEqual(next('live', 'Two'));
  expect(both).toContainEqual(next('live 2', 'Two'));
  send({ id: 'live', type: 'complete' });
  send({ type: 'ping', payload: { any: 1 } });
  expect(await take()).toEqual({ type: 'pong' });
  await retitle('Three');
  expect(await take()).toEqual(next('live 2', 'Three'));
  // Its id may be used again.
  subscribe('live', oneOutfit);
  expect(await take()).toEqual(next('live', 'Three'));
  expect(messages).toHaveLength(10);
});

test('what is wrong with a document or its variables is an error of the operation alone', async () => {
  const { subscribe, next: take } = await openAcknowledged(gateway.base);
  for (const query of [
    '{',
    'subscription { nothing }',
    'subscription($id: Int!) { outfit(databaseId: $id) { id } }',
  ]) {
    subscribe('wrong', query);
    const { id: of, type, payload } = await take();
    expect([of, type, typeof payload[0].message]).toEqual(['wrong', 'error', 'string']);
  }
  subscribe('unknown', '', { extensions: { persistedQuery: { version: 1, sha256Hash: 'a' } } });
  expect(await take()).toMatchObject({
    type: 'error',
    payload: [{ message: 'PersistedQueryNotFound' }],
  });
  subscribe('page', 'subscription { outfits(page: 99) { count } }');
  expect(await take()).toMatchObject({ id: 'page', type: 'next', payload: { errors: [{}] } });
});

describe('the token', () => {
  const whoAmI = '{ viewer { user { id } } }';
  const idOf = async (payload: object) => {
    const { subscribe, next: take } = await openAcknowledged(gateway.base, {}, payload);
    subscribe('1', '{ viewer { __typename } }');
    const { payload: answer } = await take();
    return answer.data.viewer;
  };

  test('of connection_init counts, by each name that apps give it, and none is anonymous', async () => {
    const { authorization } = await signIn(1);
    for (const payload of [
      { authorization },
      { Authorization: authorization },
      { headers: { Authorization: authorization } },
    ]) {
      expect(await idOf(payload)).not.toBeNull();
    }
    expect(await idOf({})).toBeNull();
  });

  test('of the handshake counts', async () => {
    const { subscribe, next: take } = await openAcknowledged(gateway.base, await signIn(1));
    subscribe('1', whoAmI);
    expect((await take()).payload.data.viewer).not.toBeNull();
  });

  test('is refused with 4403, or 401 in the handshake', async () => {
    for (const authorization of ['Bearer x', 'Bearer x\r\nA: b', 'Bearer \u{1f600}']) {
      const { send, closed } = await openSocket(gateway.base);
      send({ type: 'connection_init', payload: { authorization } });
      expect(await closed).toEqual([4403, 'Forbidden']);
    }
    const refused = openSocket(gateway.base, { authorization: 'Bearer x' });
    await expect(refused).rejects.toThrow(/^401 .*UNAUTHENTICATED/);
  });

  test('that ends closes the connection with 4403, so that graphql-ws asks for a new one', async () => {
    await retitle('Before');
    let connections = 0;
    const client = createClient({
      url: `${gateway.base.replace('http', 'ws')}/graphql`,
      webSocketImpl: WebSocket,
      connectionParams: async () => {
        connections += 1;
        return signIn(1, connections === 1 ? 2 : 3600);
      },
    });
    onTestFinished(() => void client.dispose());
    const titles: unknown[] = [];
    const failures: unknown[] = [];
    const query = `subscription { outfit(databaseId: ${id}) { title viewerHasLiked } }`;
    client.subscribe<{ outfit: { title: string } }>(
      { query },
      {
        next: ({ data }) => titles.push(data?.outfit.title),
        error: (error) => failures.push(error),
        complete: () => failures.push('complete'),
      },
    );
    await expect.poll(() => connections, { timeout: 20_000 }).toBe(2);
    await retitle('After');
    await expect.poll(() => titles.at(-1), { timeout: 20_000 }).toBe('After');
    expect(failures).toEqual([]);
  });
});

describe('the protocol', () => {
  const init = { type: 'connection_init' };
  const subscription = { id: '1', type: 'subscribe', payload: { query: oneOutfit } };
  test.each([
    [4400, ['{']],
    [4400, [{ type: 'anything' }]],
    [4400, [{ type: 'next', id: '1', payload: {} }]],
    [4400, [init, { ...subscription, id: 'x'.repeat(129) }]],
    [
      4400,
      [
        `{"id":"1","type":"subscribe","payload":{"query":"","variables":${'{"a":'.repeat(100_000)}1${'}'.repeat(100_001)}}`,
      ],
    ],
    [4401, [subscription]],
    [4409, [init, subscription, subscription]],
    [4429, [init, init]],
    [1009, [init, { ...subscription, payload: { query: 'x'.repeat(1_048_576) } }]],
  ])('closes with %i', async (code, sent) => {
    const { next: take, send, closed } = await openSocket(gateway.base);
    for (const message of sent) {
      send(message);
      if (message === init && sent.length < 3 && sent[1] !== init) await take();
      if (message === init && sent.length === 3) await take();
    }
    expect((await closed)[0]).toBe(code);
  });

  test('of an older package, or of none, is refused with the transports that there are', async () => {
    for (const protocol of ['graphql-ws', 'chat']) {
      const refused = openSocket(gateway.base, {}, protocol);
      await expect(refused).rejects.toThrow(
        /^400 .*text\/event-stream.*multipart.*graphql-transport-ws/,
      );
    }
  });
});

describe('the handshake', () => {
  test.each([
    ['CORS_ORIGINS names', 'https://app.test', 'https://app.test', true],
    ['does not exist', undefined, '', true],
    ['is any of *', 'https://other.test', '*', true],
    ['is null, with *', 'null', '*', true],
    ['is null', 'null', 'https://app.test', false],
    ['nobody names', 'https://other.test', 'https://app.test', false],
  ])('of an origin that %s', async (_, origin, names, isOpened) => {
    const { base, close } = await open(names === '' ? {} : { CORS_ORIGINS: names });
    onTestFinished(close);
    const opening = openSocket(base, origin === undefined ? {} : { origin });
    if (isOpened) await opening;
    else await expect(opening).rejects.toThrow(/^403 .*CORS_ORIGINS/);
  });

  test('of a page that is not trusted has no cookie and no password of the browser', async () => {
    const webhook = await startWebhook();
    onTestFinished(() => webhook.close());
    const password = 'Basic YW5uOnNlY3JldA==';
    for (const credential of ['sessionid=ann', password]) webhook.users.set(credential, 1);
    const { base, close } = await open({
      ...{ AUTH_WEBHOOK_URL: webhook.url, AUTH_COOKIES: 'sessionid' },
      CORS_ORIGINS: 'https://app.test,*',
    });
    onTestFinished(close);
    const isSignedIn = async (headers: Record<string, string>) => {
      const { subscribe, next: take } = await openAcknowledged(base, headers);
      subscribe('1', '{ viewer { user { id } } }');
      return (await take()).payload.data.viewer !== null;
    };
    const trusted = ['https://app.test', base];
    for (const origin of [...trusted, 'https://other.test', 'null', undefined]) {
      const sent = origin === undefined ? {} : { origin };
      const isTrusted = origin !== undefined && trusted.includes(origin);
      expect(await isSignedIn({ ...sent, cookie: 'sessionid=ann' })).toBe(isTrusted);
      // Without a page it is an app that has sent it.
      const isByApp = origin === undefined;
      expect(await isSignedIn({ ...sent, authorization: password })).toBe(isTrusted || isByApp);
      expect(await isSignedIn({ ...sent, ...(await signIn(1)) })).toBe(true);
    }
  });

  test('is refused above MAX_SOCKETS, and without sockets', async () => {
    const one = await open({ MAX_SOCKETS: '1' });
    onTestFinished(one.close);
    const { socket } = await openSocket(one.base);
    await expect(openSocket(one.base)).rejects.toThrow(/^503 .*TOO_MANY_SOCKETS/);
    socket.close();
    await once(socket, 'close');
    await openSocket(one.base);
    const none = await open({ MAX_SOCKETS: '0' });
    onTestFinished(none.close);
    await expect(openSocket(none.base)).rejects.toThrow(
      /^400 (?!.*graphql-transport-ws).*text\/event-stream/,
    );
  });
});

describe('limits', () => {
  test('MAX_STREAMS and RATE_LIMIT hold for operations', async () => {
    const { base, close } = await open({ MAX_STREAMS: '1', RATE_LIMIT: '4/hour' });
    onTestFinished(close);
    const { subscribe, next: take } = await openAcknowledged(base);
    subscribe('1', oneOutfit);
    expect((await take()).type).toBe('next');
    const codes = [];
    for (const operation of ['2', '3', '4']) {
      subscribe(operation, oneOutfit);
      codes.push((await take()).payload[0].extensions.code);
    }
    expect(codes).toEqual(['TOO_MANY_STREAMS', 'TOO_MANY_STREAMS', 'TOO_MANY_REQUESTS']);
  });
});

test('a gateway that stops answers what it has begun, and closes with 1012', async () => {
  const { base, app, close } = await open();
  onTestFinished(close);
  const idle = await openAcknowledged(base);
  const live = await openAcknowledged(base);
  live.subscribe('1', oneOutfit);
  await live.next();
  const closing = app.close();
  expect(await idle.closed).toEqual([1012, '']);
  expect([1012, 1013]).toContain((await live.closed)[0]);
  expect(live.messages.map(({ type }) => type)).toEqual(['connection_ack', 'next']);
  await closing;
});

describe('requests that are no handshake', () => {
  async function exchange(parts: readonly string[], until: RegExp): Promise<string> {
    const { port } = new URL(gateway.base);
    const socket = connect(Number(port), '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    let received = '';
    socket.setEncoding('latin1').on('data', (chunk) => (received += chunk));
    for (const part of parts) {
      socket.write(part, 'latin1');
      await new Promise((settle) => setTimeout(settle, 50));
    }
    await expect.poll(() => received, { timeout: 5_000 }).toMatch(until);
    return received;
  }
  const body = '{"query":"{ outfits { count } }"}';
  const upgrade = (name: string) =>
    `POST /graphql HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: ${name}\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
  const health = 'GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n';

  test('are answered with their body, in their order, on a connection that stays', async () => {
    for (const name of ['h2c', 'websocket']) {
      const parts = [health + upgrade(name) + body.slice(0, 9), body.slice(9), health];
      const received = await exchange(parts, /200 OK[\s\S]*200 OK[\s\S]*200 OK[\s\S]*"ok"/);
      expect(received).toMatch(/"ok"[\s\S]*"count":5[\s\S]*"ok"/);
    }
  });
});
