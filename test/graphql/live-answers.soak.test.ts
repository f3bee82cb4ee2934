// Live answers over server-sent events: at once, and after each change by any client; for whom, and for how long.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import type { OutfitRow } from '../../src/outfits/row.ts';
import { textOf } from '../support/databases/statements.ts';
import { buildObserved, openForTest, outfitId } from '../support/gateway.ts';
import { extend, type Resolver } from '../support/graphql/schema-extension.ts';
import { baseOfApp, openStream, type Stream } from '../support/http/event-stream.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const rows = [...generateOutfits({ outfits: 45, users: 6 })];
const [outfit] = rows as [OutfitRow];
const [ann = 0, ben = 0] = [...new Set(rows.map((row) => row.userId))];

const oneOutfit = `subscription { outfit(databaseId: ${outfit.id}) { title likes } }`;
const list = 'subscription { outfits { count results { databaseId title likes } } }';

async function open(
  environment: Record<string, string> = {},
  options: Parameters<typeof openForTest>[3] = {},
) {
  const settings = { AUTH_JWT_SECRET: secret, ...environment };
  const gateway = await openForTest('PostgreSQL', rows, settings, options);
  const base = await baseOfApp(gateway.app);
  const execute = (statement: string, values: unknown[] = []) =>
    gateway.database.pool.query(statement, values);
  const retitle = (title: string, id = outfit.id) =>
    execute('UPDATE outfits SET title = $1 WHERE id = $2', [title, id]);
  return { ...gateway, base, retitle, execute };
}

type Gateway = Awaited<ReturnType<typeof open>>;

/** Waits until the gateway has looked at the database some more times. */
async function untilLooked({ database }: Gateway, times = 3): Promise<void> {
  const take = vi.spyOn(database.snapshots, 'next');
  await expect.poll(() => take.mock.calls.length).toBeGreaterThan(times);
  take.mockRestore();
}

afterEach(() => vi.restoreAllMocks());

describe('a live answer', () => {
  test('a live answer is what a query gives, in all three fields', async () => {
    const gateway = await open();
    const fields = [
      'outfits(ordering: LIKE_COUNT_DESC, page: 2) { count pageCount results { id user { username } } }',
      'outfitConnection(first: 3) { totalCount edges { cursor node { id title } } pageInfo { endCursor } }',
      `outfit(id: "${outfitId(outfit.id)}") { title created }`,
    ];
    for (const field of fields) {
      const stream = await openStream(gateway.base, `subscription { ${field} }`, { method: 'GET' });
      expect((await stream.next()).data).toEqual(await gateway.post(`{ ${field} }`));
      stream.close();
    }
  });

  test('a live answer is not sent again when something else has changed, and goes with its outfit', async () => {
    const gateway = await open();
    const stream = await openStream(gateway.base, oneOutfit);
    await stream.next();
    await gateway.retitle('Another one', rows[1]?.id);
    await untilLooked(gateway);
    await gateway.retitle('This one');
    expect((await stream.next()).data.data.outfit.title).toBe('This one');
    expect(stream.events()).toHaveLength(2);
    await gateway.execute('DELETE FROM outfits WHERE id = $1', [outfit.id]);
    expect(await stream.next()).toEqual({ name: 'next', data: { data: { outfit: null } } });
  });

  test('a live answer may be of fragments on Subscription, of one operation of several, and compiled', async () => {
    const gateway = await open();
    const document = `
      query Other { __typename }
      subscription Live($page: Int) { ...Root }
      fragment Root on Subscription { page: outfits(page: $page) { ...Page } }
      fragment Page on OutfitPage { count results { title user { username } } }`;
    const options = { operationName: 'Live', variables: { page: 1 } };
    const stream = await openStream(gateway.base, document, options);
    for (let round = 0; round < 6; round++) {
      const { data } = await stream.next();
      expect(data.data.page.count).toBe(45);
      expect(data.data.page.results[0].user.username).toEqual(expect.any(String));
      await gateway.execute('UPDATE outfits SET title = $1', [`Round ${round}`]);
    }
  });

  test('a live answer goes on behind an error in a field', async () => {
    const gateway = await open();
    const stream = await openStream(gateway.base, 'subscription { outfits(page: 4) { count } }');
    expect((await stream.next()).data.errors[0].extensions.code).toBe('PAGE_NOT_FOUND');
    await gateway.execute(
      'INSERT INTO outfits SELECT (jsonb_populate_record(o, jsonb_build_object($1::text, o.id + 10000))).* FROM outfits o',
      ['id'],
    );
    expect((await stream.next()).data).toEqual({ data: { outfits: { count: 90 } } });
  });

  test('a live answer ends with what is wrong with a document or its variables, in an event', async () => {
    const { base } = await open();
    const costly =
      'outfits { results { user { outfits { results { user { outfits { results { id } } } } } } } }';
    for (const [query = '', code] of [
      ['subscription { nothing }', 'GRAPHQL_VALIDATION_FAILED'],
      ['subscription {', 'GRAPHQL_PARSE_FAILED'],
      ['subscription { outfits { count } outfit(databaseId: 1) { id } }', expect.any(String)],
      ['subscription ($id: Int!) { outfit(databaseId: $id) { id } }', 'BAD_USER_INPUT'],
      [`subscription { ${costly} }`, 'QUERY_TOO_COSTLY'],
      ['{ nothing }', expect.any(String)],
    ]) {
      const stream = await openStream(base, query);
      expect(stream.response.statusCode).toBe(200);
      const { data } = await stream.next();
      expect(data).toEqual({ errors: [expect.objectContaining({ extensions: { code } })] });
      expect(await stream.next()).toEqual({ name: 'complete', data: undefined });
      expect(await stream.ended).toBe(true);
    }
  });

  test('a live answer that grows too large ends with that, in an event', async () => {
    const gateway = await open();
    const names = Array.from({ length: 30 }, (_, index) => `a${index}: description`);
    const query = `subscription { outfits(pageSize: 45) { results { ${names.join(' ')} } } }`;
    const stream = await openStream(gateway.base, query);
    expect((await stream.next()).data.data.outfits.results).toHaveLength(45);
    await gateway.execute('UPDATE outfits SET description = $1', ['x'.repeat(30_000)]);
    const code = 'ANSWER_TOO_LARGE';
    expect((await stream.next()).data).toMatchObject({ errors: [{ extensions: { code } }] });
    expect(await stream.next()).toEqual({ name: 'complete', data: undefined });
    expect(await stream.ended).toBe(true);
  });

  test('a live answer of a query is one event', async () => {
    const { base } = await open();
    const stream = await openStream(base, '{ outfits { count } }');
    expect((await stream.next()).data).toEqual({ data: { outfits: { count: 45 } } });
    expect((await stream.next()).name).toBe('complete');
  });

  /** A live answer whose reading is held, with the title One, when Two is committed. */
  async function holdReading() {
    let gate: Promise<void> | undefined;
    let waiting = 0;
    const resolve: Resolver = async () => {
      waiting += 1;
      await gate;
      return null;
    };
    const schema = extend('extend type Outfit { slow: String }', { 'Outfit.slow': resolve });
    const gateway = await open({ CACHE_MAX_SIZE: '0' }, { schema });
    const query = oneOutfit.replace('title', 'title slow');
    const early = await openStream(gateway.base, query);
    await early.next();
    await untilLooked(gateway);

    let settle = () => {};
    gate = new Promise((done) => {
      settle = done;
    });
    const before = waiting;
    await gateway.retitle('One');
    await expect.poll(() => waiting).toBeGreaterThan(before);
    await gateway.retitle('Two');
    const release = () => {
      gate = undefined;
      settle();
    };
    return { gateway, query, early, release };
  }

  test('a live answer follows on a commit during a reading without another poll', async () => {
    const { gateway, early, release } = await holdReading();
    await untilLooked(gateway);
    const poll = vi.spyOn(gateway.database.snapshots, 'next');
    poll.mockReturnValue(new Promise(() => {}));
    await expect.poll(() => poll.mock.calls.length).toBe(1);
    release();
    expect((await early.next()).data.data.outfit.title).toBe('One');
    expect((await early.next()).data.data.outfit.title).toBe('Two');
  });

  test('a live answer was not begun before its reader came', async () => {
    const { gateway, query, early, release } = await holdReading();
    const opening = openStream(gateway.base, query);
    // So that it has come before the reading goes on; were it later, it would see the same.
    await sleep(500);
    release();
    const late = await opening;
    expect((await late.next()).data.data.outfit.title).toBe('Two');
    expect((await early.next()).data.data.outfit.title).toBe('One');
    expect((await early.next()).data.data.outfit.title).toBe('Two');
  });

  test('a live answer is read once for all subscribers, and never without one', async () => {
    const gateway = await open({ CACHE_MAX_SIZE: '0' });
    const take = vi.spyOn(gateway.database.snapshots, 'next');
    const query = vi.spyOn(gateway.database.pool, 'query');
    const lists = () =>
      query.mock.calls.filter(([statement]) => textOf(statement).includes('FROM outfits')).length;
    await sleep(600);
    expect(take).not.toHaveBeenCalled();

    const senders = [{}, await signIn(ann), {}, await signIn(ben)];
    const streams = await Promise.all(
      Array.from({ length: 28 }, (_, index) =>
        openStream(gateway.base, list, { headers: senders[index % 4] ?? {} }),
      ),
    );
    await untilLooked(gateway);
    const { changes } = gateway.database.snapshots;
    const before = { lists: lists(), version: changes.current };
    await gateway.execute("UPDATE outfits SET title = 'All of them'");
    for (const stream of streams) {
      const last = () => stream.events().at(-1)?.data.data.outfits.results[0].title;
      await expect.poll(last).toBe('All of them');
    }
    await untilLooked(gateway);
    // One statement for the change, and at most one each for other commits on the server.
    expect(lists() - before.lists).toBeGreaterThan(0);
    expect(lists() - before.lists).toBeLessThanOrEqual(changes.current - before.version);

    for (const stream of streams) stream.close();
    const looks = async () => {
      const seen = take.mock.calls.length;
      await sleep(700);
      return take.mock.calls.length - seen;
    };
    await expect.poll(looks).toBe(0);
  });
});

describe('a viewer', () => {
  /** The next answer to Ann, to Ben, and to somebody without a token. */
  async function follow(gateway: Gateway, field: string) {
    const query = `subscription { outfit(databaseId: ${outfit.id}) { likes ${field} } }`;
    const streams = await Promise.all(
      [ann, ben, undefined].map(async (userId) =>
        openStream(gateway.base, query, { headers: await signIn(userId) }),
      ),
    );
    const nextOf = async (stream: Stream) => (await stream.next()).data.data.outfit[field];
    return () => Promise.all(streams.map(nextOf));
  }

  test('sees a list become personal while it is followed, and still nothing of others', async () => {
    const resolve: Resolver = (row, _args, context) =>
      (row as OutfitRow).likes >= 1_000_000 ? `of ${context.viewer?.userId ?? 'nobody'}` : null;
    const schema = extend('extend type Outfit { secret: String }', { 'Outfit.secret': resolve });
    const gateway = await open({}, { schema });
    const next = await follow(gateway, 'secret');
    expect(await next()).toEqual([null, null, null]);
    await gateway.execute('UPDATE outfit_like_counts SET likes = 1000000');
    expect(await next()).toEqual([`of ${ann}`, `of ${ben}`, 'of nobody']);
  });
});

describe('streams', () => {
  test('streams have the headers of every answer', async () => {
    const { base } = await open({ CORS_ORIGINS: 'https://app.test' });
    const headers = { origin: 'https://app.test', 'x-request-id': 'named' };
    const stream = await openStream(base, list, { headers });
    expect(stream.response.headers).toMatchObject({
      'access-control-allow-origin': 'https://app.test',
      'cache-control': 'no-store, no-transform',
      vary: 'Accept, Accept-Encoding, Origin',
      'x-content-type-options': 'nosniff',
      'x-request-id': 'named',
    });
  });

  test('streams are refused above MAX_STREAMS, until one has been closed', async () => {
    const { base } = await open({ MAX_STREAMS: '2' });
    const first = await openStream(base, list);
    await openStream(base, list);
    const third = await openStream(base, list);
    expect(third.response.statusCode).toBe(503);
    expect(third.response.headers['retry-after']).toBe('5');
    await third.ended;
    expect(JSON.parse(third.text()).errors[0].extensions.code).toBe('TOO_MANY_STREAMS');
    first.close();
    const status = async () => (await openStream(base, list)).response.statusCode;
    await expect.poll(status).toBe(200);
  });

  test('streams hold none of MAX_CONCURRENT_REQUESTS', async () => {
    const { base, post } = await open({ MAX_CONCURRENT_REQUESTS: '1' });
    await Promise.all(Array.from({ length: 20 }, () => openStream(base, list)));
    expect(await post('{ outfits { count } }')).toEqual({ data: { outfits: { count: 45 } } });
  });

  test('streams keep no more for a slow reader than what is on its way, and give it the newest', async () => {
    const gateway = await open({ PAGE_SIZE: '1000' });
    const big = 'subscription { outfits { results { databaseId likes description } } }';
    await gateway.execute('UPDATE outfits SET description = $1', [' '.repeat(100_000)]);
    const slow = await openStream(gateway.base, big);
    const quick = await openStream(gateway.base, oneOutfit);
    await slow.next();
    slow.response.pause();
    const changes = 8;
    for (let likes = 1; likes <= changes; likes++) {
      await gateway.execute('UPDATE outfit_like_counts SET likes = $1', [2_000 + likes]);
      const last = () => quick.events().at(-1)?.data.data.outfit.likes;
      await expect.poll(last).toBe(2_000 + likes);
      await untilLooked(gateway, 1);
    }
    slow.response.resume();
    const last = () => slow.events().at(-1)?.data.data.outfits.results[0].likes;
    await expect.poll(last).toBe(2_000 + changes);
    expect(slow.events().length).toBeLessThan(changes);
  });

  test('streams end with their token, measured and logged by what came before the first answer', async () => {
    const { app, log, metrics: text } = await buildObserved(await open());
    const stream = await openStream(await baseOfApp(app), list, { headers: await signIn(ann, 6) });
    expect(await text()).toMatch(/^gateway_streams_open\{transport="sse"\} 1$/m);
    expect(await stream.ended).toBe(true);
    const expired = { errors: [{ extensions: { code: 'UNAUTHENTICATED' } }] };
    expect(stream.events().slice(-2)).toMatchObject([{ data: expired }, { name: 'complete' }]);
    await expect.poll(text).toMatch(/^gateway_streams_open\{transport="sse"\} 0$/m);
    expect(await text()).toMatch(/^gateway_streams_opened_total\{transport="sse"\} 1$/m);
    await expect.poll(text).toMatch(/duration_seconds_bucket\{le="5",.*"\/graphql".*\} 1$/m);
    expect(log.text()).not.toContain('slow');
  });
});
