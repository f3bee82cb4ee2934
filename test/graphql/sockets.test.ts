// graphql-transport-ws, by what a client sees: messages, close codes, and refused handshakes.
import { once } from 'node:events';
import { createClient } from 'graphql-ws';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { buildObserved, openForTest, useGateway } from '../support/gateway.ts';
import { baseOfApp, openStream } from '../support/http/event-stream.ts';
import { openAcknowledged, openSocket } from '../support/http/socket.ts';
import { secret, signIn } from '../support/http/tokens.ts';
import { startWebhook } from '../support/http/webhook.ts';

const rows = [...generateOutfits({ outfits: 5, users: 2 })];
const id = rows[0]?.id ?? 0;
const oneOutfit = `subscription { outfit(databaseId: ${id}) { title } }`;

const settings = { AUTH_JWT_SECRET: secret };
const gateway = useGateway('PostgreSQL', rows, { ...settings, CORS_ORIGINS: 'https://app.test' });
let base: string;
beforeAll(async () => {
  base = await baseOfApp(gateway.app);
});

/** Another one, for one test. */
async function open(environment: Record<string, string> = {}) {
  const { app } = await openForTest('PostgreSQL', rows, { ...settings, ...environment });
  return { app, base: await baseOfApp(app) };
}

const retitle = (title: string) =>
  gateway.database.pool.query('UPDATE outfits SET title = $1 WHERE id = $2', [title, id]);
const next = (operation: string, title: string) => ({
  id: operation,
  type: 'next',
  payload: { data: { outfit: { title } } },
});

test('many operations over one connection: each is answered, and live ones again after a commit', async () => {
  await retitle('One');
  const { subscribe, next: take, send, messages } = await openAcknowledged(base);
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
  const { subscribe, next: take } = await openAcknowledged(base);
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
  const viewerOf = async (headers: Record<string, string>, payload?: object) => {
    const { subscribe, next: take } = await openAcknowledged(base, headers, payload);
    subscribe('1', '{ viewer { __typename } }');
    return (await take()).payload.data.viewer;
  };

  test('the token of connection_init counts, by each name that apps give it, or that of the handshake', async () => {
    const { authorization } = await signIn(1);
    for (const payload of [
      { authorization },
      { Authorization: authorization },
      { headers: { Authorization: authorization } },
    ]) {
      expect(await viewerOf({}, payload)).not.toBeNull();
    }
    expect(await viewerOf({}, {})).toBeNull();
    expect(await viewerOf(await signIn(1))).not.toBeNull();
  });

  test('the token is refused with 4403, or 401 in the handshake', async () => {
    for (const authorization of ['Bearer x', 'Bearer x\r\nA: b', 'Bearer \u{1f600}']) {
      const { send, closed } = await openSocket(base);
      send({ type: 'connection_init', payload: { authorization } });
      expect(await closed).toEqual([4403, 'Forbidden']);
    }
    const refused = openSocket(base, { authorization: 'Bearer x' });
    await expect(refused).rejects.toThrow(/^401 .*UNAUTHENTICATED/);
  });

  test('the token that ends closes the connection with 4403, so that graphql-ws asks for a new one', async () => {
    await retitle('Before');
    let connections = 0;
    const client = createClient({
      url: `${base.replace('http', 'ws')}/graphql`,
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
    await expect.poll(() => connections).toBe(2);
    await retitle('After');
    await expect.poll(() => titles.at(-1)).toBe('After');
    expect(failures).toEqual([]);
  });
});

describe('the protocol', () => {
  const init = { type: 'connection_init' };
  const subscription = { id: '1', type: 'subscribe', payload: { query: oneOutfit } };
  const variables = `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`;
  const deep = `{"id":"1","type":"subscribe","payload":{"query":"","variables":${variables}}}`;
  test.each([
    [4400, ['{']],
    [4400, [{ type: 'anything' }]],
    [4400, [{ type: 'next', id: '1', payload: {} }]],
    [4400, [init, { ...subscription, id: 'x'.repeat(129) }]],
    [4400, [deep]],
    [4401, [subscription]],
    [4409, [init, subscription, subscription]],
    [4429, [init, init]],
    [1009, [init, { ...subscription, payload: { query: 'x'.repeat(1_048_576) } }]],
  ])('the protocol closes with %i', async (code, sent) => {
    const { next: take, send, closed } = await openSocket(base);
    for (const message of sent) {
      send(message);
      if (message === init && sent[1] !== init) await take();
    }
    expect((await closed)[0]).toBe(code);
  });

  test('an older package, or none, is refused with the supported transports', async () => {
    for (const protocol of ['graphql-ws', 'chat']) {
      const refused = openSocket(base, {}, protocol);
      await expect(refused).rejects.toThrow(/^400 .*text\/event-stream.*graphql-transport-ws/);
    }
  });
});

describe('whatever a client sends', () => {
  const values: unknown[] = [null, -1e300, '', 'a\u0000\ud800', [[1]], { toString: 1 }];
  const subscribe = { id: '1', type: 'subscribe', payload: { query: '{ __typename }' } };
  /** Each field of the message by each value, at any depth. */
  function* mutations(message: object): Generator<object> {
    for (const [name, inner] of Object.entries(message)) {
      for (const value of values) yield { ...message, [name]: value };
      yield { ...message, [name]: undefined };
      if (typeof inner !== 'object' || inner === null) continue;
      for (const other of mutations(inner)) yield { ...message, [name]: other };
    }
  }
  const parameters = {
    headers: { Authorization: 'Bearer x', 'x-client-name': 'a' },
    Authorization: 'Bearer x',
  };
  const rest = {
    operationName: 'A',
    variables: { a: 1 },
    documentId: 'x',
    extensions: { persistedQuery: { version: 1, sha256Hash: 'x' } },
  };

  test.each([
    ['connection_init', { type: 'connection_init', payload: parameters }],
    ['subscribe', { ...subscribe, payload: { ...subscribe.payload, ...rest } }],
    ['ping', { type: 'ping', payload: { any: 1 } }],
    ['complete', { id: '1', type: 'complete' }],
  ])('%s with any value in any field ends this connection at most', async (name, message) => {
    const other = await openAcknowledged(base);
    for (const changed of mutations(message)) {
      const { send, socket } = await openSocket(base);
      if (name !== 'connection_init') send({ type: 'connection_init' });
      send(changed);
      // Answered or closed, as it comes.
      send({ ...subscribe, id: 'after' });
      socket.close();
    }
    other.subscribe('1', '{ __typename }');
    expect(await other.next()).toMatchObject({ payload: { data: { __typename: 'Query' } } });
  });

  test('parameters of a megabyte are read once, not for each operation', async () => {
    for (const headers of ['a'.repeat(1_000_000), { 'x-client-name': 'a'.repeat(1_000_000) }]) {
      const { send, subscribe: ask, next: take, closed } = await openSocket(base);
      send({ type: 'connection_init', payload: { headers } });
      if (typeof headers === 'object') {
        expect((await closed)[0]).toBe(4400);
        continue;
      }
      await take();
      for (let at = 0; at < 50; at++) ask(String(at), '{ __typename }');
      for (let at = 0; at < 100; at++) await take();
    }
  });
});

describe('an error of an operation is its result, and the connection stays', () => {
  const like = `mutation { likeOutfit(id: "${btoa(`Outfit:${id}`)}") { outfit { likes } } }`;
  test.each([
    ['a mutation without a sign-in', 'UNAUTHENTICATED', { query: like }],
    [
      'a number that JSON cannot hold',
      'BAD_USER_INPUT',
      '{"query":"query ($n: Int) { outfits(filter: {likesFrom: $n}) { count } }","variables":{"n":1e400}}',
    ],
    ['no document', 'BAD_REQUEST', { documentId: 1 }],
    ['an unknown document', 'DOCUMENT_NOT_FOUND', { query: null, documentId: 'none' }],
  ])('%s', async (_name, code, payload) => {
    const { send, subscribe, next: take } = await openAcknowledged(base);
    await retitle('Stays');
    subscribe('live', oneOutfit);
    expect(await take()).toEqual(next('live', 'Stays'));
    const text = typeof payload === 'string' ? payload : JSON.stringify(payload);
    send(`{"id":"1","type":"subscribe","payload":${text}}`);
    expect(await take()).toMatchObject({
      id: '1',
      type: 'error',
      payload: [{ extensions: { code } }],
    });
    await retitle('Stayed');
    expect(await take()).toEqual(next('live', 'Stayed'));
  });
});

test('a mutation that is sent again over another connection writes once, by its key in extensions', async () => {
  const input = { imageKey: 'outfits/2b1d3c4e-0000-4000-8000-000000000001.png' };
  const query =
    'mutation ($input: CreateOutfitInput!) { createOutfit(input: $input) { outfit { id } } }';
  const { base } = await open();
  const created: unknown[] = [];
  for (const idempotencyKey of ['one', 'one', 'two', 'x'.repeat(256)]) {
    const { subscribe, next: take } = await openAcknowledged(base, await signIn(1));
    subscribe('1', query, { variables: { input }, extensions: { idempotencyKey } });
    const { payload } = await take();
    created.push(payload.data?.createOutfit.outfit.id ?? payload[0].extensions.code);
  }
  const [first, again, other, invalid] = created;
  expect(again).toBe(first);
  expect(other).not.toBe(first);
  expect(invalid).toBe('BAD_USER_INPUT');
});

test('a mutation is executed although its client closes the connection behind it', async () => {
  const { subscribe, socket, closed } = await openAcknowledged(base, await signIn(1));
  const [outfit] = rows.filter(({ private: isPrivate }) => !isPrivate);
  const query = `mutation { likeOutfit(id: "${btoa(`Outfit:${outfit?.id}`)}") { outfit { id } } }`;
  subscribe('1', query);
  socket.close(1000);
  await closed;
  const count = `SELECT count(*)::int FROM outfit_likes WHERE user_id = 1 AND outfit_id = ${outfit?.id}`;
  await expect
    .poll(async () => (await gateway.database.pool.query(count)).rows)
    .toEqual([{ count: 1 }]);
});

describe('the handshake', () => {
  test.each([
    ['', [undefined], []],
    ['https://app.test', ['https://app.test', undefined], ['null', 'https://other.test']],
    ['ionic://app', ['ionic://app'], ['ionic://other', 'capacitor://app', 'https://app']],
    ['*', ['https://other.test', 'null'], []],
  ])(
    'the handshake with CORS_ORIGINS=%s is taken from %j, and not from %j',
    async (names, taken, refused) => {
      const { base } = await open(names === '' ? {} : { CORS_ORIGINS: names });
      for (const origin of taken) await openSocket(base, origin === undefined ? {} : { origin });
      for (const origin of refused) {
        await expect(openSocket(base, { origin })).rejects.toThrow(/^403 .*CORS_ORIGINS/);
      }
    },
  );

  test('the handshake of a page that is not trusted has no cookie and no password of the browser', async () => {
    const webhook = await startWebhook();
    onTestFinished(() => webhook.close());
    const password = 'Basic YW5uOnNlY3JldA==';
    for (const credential of ['sessionid=ann', password]) webhook.users.set(credential, 1);
    const { base } = await open({
      ...{ AUTH_WEBHOOK_URL: webhook.url, AUTH_COOKIES: 'sessionid' },
      CORS_ORIGINS: 'https://app.test,ionic://app,*',
    });
    const isSignedIn = async (headers: Record<string, string>) => {
      const { subscribe, next: take } = await openAcknowledged(base, headers);
      subscribe('1', '{ viewer { user { id } } }');
      return (await take()).payload.data.viewer !== null;
    };
    const trusted = ['https://app.test', 'ionic://app', base];
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

  test('the handshake is refused above MAX_SOCKETS, and without sockets', async () => {
    const one = await open({ MAX_SOCKETS: '1' });
    const { socket } = await openSocket(one.base);
    await expect(openSocket(one.base)).rejects.toThrow(/^503 .*TOO_MANY_SOCKETS/);
    socket.close();
    await once(socket, 'close');
    await openSocket(one.base);
    const none = await open({ MAX_SOCKETS: '0' });
    await expect(openSocket(none.base)).rejects.toThrow(
      /^400 (?!.*graphql-transport-ws).*text\/event-stream/,
    );
  });
});

test('a client of another address gets the newest place of the one that holds the most', async () => {
  const { base } = await open({
    MAX_STREAMS: '4',
    MAX_SOCKETS: '2',
    TRUST_PROXY: '127.0.0.1',
  });
  const from = (address: string) => ({ 'x-forwarded-for': address });
  const first = await openAcknowledged(base, from('1.1.1.1'));
  const second = await openAcknowledged(base, from('1.1.1.1'));
  await expect(openSocket(base, from('1.1.1.1'))).rejects.toThrow(/^503 .*TOO_MANY_SOCKETS/);
  const other = await openAcknowledged(base, from('1.1.1.2'));
  expect((await second.closed)[0]).toBe(1013);
  // Each holds one.
  await expect(openSocket(base, from('1.1.1.2'))).rejects.toThrow(/^503 .*TOO_MANY_SOCKETS/);

  for (const name of ['1', '2']) {
    first.subscribe(name, oneOutfit);
    await first.next();
  }
  const streams = [];
  for (const address of ['1.1.1.1', '1.1.1.1']) {
    const stream = await openStream(base, oneOutfit, { headers: from(address) });
    await stream.next();
    streams.push(stream);
  }
  const code = 'TOO_MANY_STREAMS';
  const refused = [{ extensions: { code } }];
  other.subscribe('1', oneOutfit);
  expect(await other.next()).toMatchObject({ type: 'next' });
  const [, newest] = streams;
  expect(await newest?.next()).toMatchObject({ name: 'next', data: { errors: refused } });
  expect(await newest?.next()).toMatchObject({ name: 'complete' });
  await openStream(base, oneOutfit, { headers: from('1.1.1.3') });
  await streams[0]?.ended;
  await openStream(base, oneOutfit, { headers: from('1.1.1.4') });
  await expect
    .poll(() => first.messages)
    .toContainEqual(
      expect.objectContaining({
        id: '2',
        type: 'error',
        payload: [expect.objectContaining({ extensions: { code } })],
      }),
    );
});

test('what a client has left is neither counted as a 503 or an error nor logged', async () => {
  const { app, log, metrics } = await buildObserved(gateway);
  const base = await baseOfApp(app);
  const slow = (at: number) =>
    `outfits(filter: { hasVideo: true, createdFrom: "2020-01-01T00:00:0${at}Z", search: "the" }) { count }`;
  for (let at = 0; at < 6; at++) {
    const { subscribe, send, socket } = await openAcknowledged(base);
    for (const type of ['query', 'subscription']) subscribe(type, `${type} { ${slow(at)} }`);
    if (at % 2 === 0) socket.terminate();
    else for (const id of ['query', 'subscription']) send({ type: 'complete', id });
    const leave = new AbortController();
    const headers = {
      'content-type': 'application/json',
      accept: at < 3 ? 'text/event-stream' : '*/*',
    };
    const body = JSON.stringify({ query: `{ ${slow(at)} }` });
    const asked = fetch(`${base}/graphql`, { method: 'POST', headers, body, signal: leave.signal });
    setImmediate(() => leave.abort());
    await asked.catch(() => {});
  }
  const { subscribe, next: take } = await openAcknowledged(base);
  subscribe('1', '{ __typename }');
  await take();
  await app.close();
  expect(await metrics()).not.toMatch(/requests_total\{[^}]*status="5|graphql_errors_total\{/);
  expect(log.text()).not.toMatch(/refused|error/);
});

test('a gateway that stops answers what it has begun, and closes with 1012', async () => {
  const { base, app } = await open();
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
