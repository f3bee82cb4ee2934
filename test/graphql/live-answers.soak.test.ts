// Live answers over server-sent events: at once, and after each change by any client; for whom, and for how long.
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from 'graphql-sse';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { buildApp } from '../../src/app.ts';
import { createLog } from '../../src/observability/log.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import type { OutfitRow } from '../../src/outfits/row.ts';
import { type DatabaseKind, databaseKinds, openGateway, outfitId } from '../support/gateway.ts';
import { extend, type Resolver } from '../support/graphql/schema-extension.ts';
import { baseOfApp, openStream, type Stream } from '../support/http/event-stream.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const rows = [...generateOutfits({ outfits: 45, users: 6 })];
const [outfit] = rows as [OutfitRow];
const [ann = 0, ben = 0] = [...new Set(rows.map((row) => row.userId))];

const oneOutfit = 'subscription ($id: Int!) { outfit(databaseId: $id) { databaseId title likes } }';
const list = 'subscription { outfits { count results { databaseId title likes } } }';

async function open(
  kind: DatabaseKind = 'PostgreSQL',
  environment: Record<string, string> = {},
  options: Parameters<typeof openGateway>[3] = {},
) {
  const settings = { AUTH_JWT_SECRET: secret, ...environment };
  const gateway = await openGateway(kind, rows, settings, options);
  onTestFinished(() => gateway.close());
  const base = await baseOfApp(gateway.app);
  const retitle = (title: string, id = outfit.id) =>
    gateway.database.pool.query('UPDATE outfits SET title = $1 WHERE id = $2', [title, id]);
  const write = async (mutation: string, userId: number) => {
    const response = await gateway.app.inject({
      method: 'POST',
      url: '/graphql',
      headers: await signIn(userId),
      payload: { query: mutation },
    });
    expect(response.json().errors).toBeUndefined();
  };
  return { ...gateway, base, retitle, write };
}

type Gateway = Awaited<ReturnType<typeof open>>;

/** Waits until the gateway has looked at the database some more times. */
async function untilLooked({ database }: Gateway, times = 3): Promise<void> {
  const take = vi.spyOn(database.snapshots, 'next');
  await expect.poll(() => take.mock.calls.length, { timeout: 20_000 }).toBeGreaterThan(times);
  take.mockRestore();
}

afterEach(() => vi.restoreAllMocks());

describe.each(databaseKinds)('on %s, a live answer', (kind) => {
  test('comes at once, and again after each change by any client', async () => {
    const gateway = await open(kind);
    const stream = await openStream(gateway.base, oneOutfit, { variables: { id: outfit.id } });
    expect(stream.response.statusCode).toBe(200);
    expect(stream.response.headers['content-type']).toBe('text/event-stream; charset=utf-8');
    const { id: databaseId, title, likes } = outfit;
    const answer = (changed: object) => ({
      name: 'next',
      data: { data: { outfit: { databaseId, title, likes, ...changed } } },
    });
    expect(await stream.next()).toEqual(answer({}));

    await gateway.write(
      `mutation { likeOutfit(id: "${outfitId(outfit.id)}") { outfit { id } } }`,
      ann,
    );
    expect(await stream.next()).toEqual(answer({ likes: likes + 1 }));
    await gateway.retitle('From outside');
    expect(await stream.next()).toEqual(answer({ likes: likes + 1, title: 'From outside' }));
    await gateway.database.pool.query('DELETE FROM outfits WHERE id = $1', [outfit.id]);
    expect(await stream.next()).toEqual({ name: 'next', data: { data: { outfit: null } } });
  });

  test('is what a query gives, in all three fields', async () => {
    const gateway = await open(kind);
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

  test('is not sent again when something else has changed', async () => {
    const gateway = await open(kind);
    const stream = await openStream(gateway.base, oneOutfit, { variables: { id: outfit.id } });
    await stream.next();
    await gateway.retitle('Another one', rows[1]?.id);
    await untilLooked(gateway);
    await gateway.retitle('This one');
    expect((await stream.next()).data.data.outfit.title).toBe('This one');
    expect(stream.events()).toHaveLength(2);
  });
});

describe('a live answer', () => {
  test('may be of fragments on Subscription, of one operation of several, and compiled', async () => {
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
      await gateway.database.pool.query('UPDATE outfits SET title = $1', [`Round ${round}`]);
    }
  });

  test('goes on behind an error in a field', async () => {
    const gateway = await open();
    const stream = await openStream(gateway.base, 'subscription { outfits(page: 4) { count } }');
    expect((await stream.next()).data.errors[0].extensions.code).toBe('PAGE_NOT_FOUND');
    await gateway.database.pool.query(
      'INSERT INTO outfits SELECT (jsonb_populate_record(o, jsonb_build_object($1::text, o.id + 10000))).* FROM outfits o',
      ['id'],
    );
    expect((await stream.next()).data).toEqual({ data: { outfits: { count: 90 } } });
  });

  test('ends with what is wrong with a document or its variables, in an event', async () => {
    const { base } = await open();
    const wrong: [string, object | undefined, string | undefined][] = [
      ['subscription { nothing }', undefined, 'GRAPHQL_VALIDATION_FAILED'],
      ['subscription {', undefined, 'GRAPHQL_PARSE_FAILED'],
      ['subscription { outfits { count } outfit(databaseId: 1) { id } }', undefined, undefined],
      [oneOutfit, { id: 'x' }, 'BAD_USER_INPUT'],
      [
        `subscription { outfitConnection(first: 100) { edges { node {
         user { a: outfits { results { id } } b: outfits { results { id } } c: outfits { results { id } } }
       } } } }`,
        undefined,
        'QUERY_TOO_COSTLY',
      ],
      ['{ nothing }', undefined, undefined],
    ];
    for (const [query, variables, code] of wrong) {
      const stream = await openStream(base, query, variables ? { variables } : {});
      expect(stream.response.statusCode).toBe(200);
      const { data } = await stream.next();
      expect(data.errors.length).toBeGreaterThan(0);
      expect(data.data).toBeUndefined();
      if (code) expect(data.errors[0].extensions?.code).toBe(code);
      expect(await stream.next()).toEqual({ name: 'complete', data: undefined });
      expect(await stream.ended).toBe(true);
    }
  });

  test('is refused as before where no events are taken, with a code that says what to do', async () => {
    const gateway = await open();
    const { errors } = await gateway.post('subscription { outfits { count } }');
    expect(errors?.[0]).toMatchObject({
      message: expect.stringContaining('text/event-stream'),
      extensions: { code: 'SUBSCRIPTION_NEEDS_STREAM' },
    });
  });

  test('is asked for as urql does, with several types; a query of the same types gets none', async () => {
    const { base } = await open();
    const accept =
      'application/graphql-response+json, application/json, text/event-stream, multipart/mixed';
    const stream = await openStream(base, list, { headers: { accept } });
    expect((await stream.next()).name).toBe('next');
    const query = await openStream(base, '{ outfits { count } }', { headers: { accept } });
    expect(query.response.headers['content-type']).toMatch(/^application\/graphql-response/);
  });

  test('of a query or mutation is one event', async () => {
    const { base } = await open();
    const stream = await openStream(base, '{ outfits { count } }');
    expect((await stream.next()).data).toEqual({ data: { outfits: { count: 45 } } });
    expect((await stream.next()).name).toBe('complete');
    const mutation = 'mutation ($id: ID!) { likeOutfit(id: $id) { outfit { viewerHasLiked } } }';
    const variables = { id: outfitId(outfit.id) };
    const liked = await openStream(base, mutation, { variables, headers: await signIn(ann) });
    expect((await liked.next()).data.data.likeOutfit.outfit.viewerHasLiked).toBe(true);
    const byGet = await openStream(base, mutation, { variables, method: 'GET' });
    expect((await byGet.next()).data.errors).toHaveLength(1);
  });

  test('is never older than one before, nor lost, while others write', async () => {
    const gateway = await open('PostgreSQL', { CACHE_MAX_SIZE: '0' });
    const streams = await Promise.all(
      Array.from({ length: 6 }, (_, index) =>
        openStream(gateway.base, oneOutfit, {
          variables: { id: outfit.id },
          method: index % 2 ? 'GET' : 'POST',
        }),
      ),
    );
    for (let likes = 1_000; likes < 1_200; likes++) {
      await gateway.database.pool.query('UPDATE outfit_like_counts SET likes = $1 WHERE id = $2', [
        likes,
        outfit.id,
      ]);
      if (likes % 20 === 0) {
        const late = await openStream(gateway.base, oneOutfit, { variables: { id: outfit.id } });
        // A subscriber that comes after a commit sees it.
        expect((await late.next()).data.data.outfit.likes).toBeGreaterThanOrEqual(likes);
        streams.push(late);
      }
    }
    for (const stream of streams) {
      const seen = () => stream.events().map(({ data }) => data.data.outfit.likes as number);
      await expect.poll(() => seen().at(-1), { timeout: 20_000 }).toBe(1_199);
      expect(seen()).toEqual([...new Set(seen())].sort((a, b) => a - b));
    }
  });

  test('is none that began to be read before its reader came', async () => {
    let gate: Promise<void> | undefined;
    let waiting = 0;
    const resolve: Resolver = async () => {
      waiting += 1;
      await gate;
      return null;
    };
    const schema = extend('extend type Outfit { slow: String }', { 'Outfit.slow': resolve });
    const gateway = await open('PostgreSQL', {}, { schema });
    const query = oneOutfit.replace('title', 'title slow');
    const variables = { id: outfit.id };
    const early = await openStream(gateway.base, query, { variables });
    await early.next();
    await untilLooked(gateway);

    let release = () => {};
    gate = new Promise((settle) => {
      release = settle;
    });
    const before = waiting;
    await gateway.retitle('One');
    await expect.poll(() => waiting, { timeout: 20_000 }).toBeGreaterThan(before);
    await gateway.retitle('Two');
    const opening = openStream(gateway.base, query, { variables });
    // So that it has come before the reading goes on; were it later, it would see the same.
    await sleep(500);
    gate = undefined;
    release();
    const late = await opening;
    expect((await late.next()).data.data.outfit.title).toBe('Two');
    expect((await early.next()).data.data.outfit.title).toBe('One');
    expect((await early.next()).data.data.outfit.title).toBe('Two');
  });

  test('is read once for all subscribers, and never without one', async () => {
    const gateway = await open('PostgreSQL', { CACHE_MAX_SIZE: '0' });
    const take = vi.spyOn(gateway.database.snapshots, 'next');
    const query = vi.spyOn(gateway.database.pool, 'query');
    const lists = () =>
      query.mock.calls.filter(([statement]) => /FROM outfits/.test(JSON.stringify(statement)))
        .length;
    await sleep(600);
    expect(take).not.toHaveBeenCalled();

    const streams = await Promise.all(
      Array.from({ length: 30 }, async (_, index) =>
        openStream(gateway.base, list, {
          headers: index % 2 ? await signIn(index % 3 ? ann : ben) : {},
        }),
      ),
    );
    await untilLooked(gateway);
    const before = lists();
    await gateway.database.pool.query("UPDATE outfits SET title = 'All of them'");
    for (const stream of streams) {
      const last = () => stream.events().at(-1)?.data.data.outfits.results[0].title;
      await expect.poll(last, { timeout: 20_000 }).toBe('All of them');
    }
    await untilLooked(gateway);
    // One statement for the change, and one each if other commits on the server came in between.
    expect(lists() - before).toBeLessThan(10);

    for (const stream of streams) stream.close();
    const looks = async () => {
      const seen = take.mock.calls.length;
      await sleep(700);
      return take.mock.calls.length - seen;
    };
    await expect.poll(looks, { timeout: 20_000 }).toBe(0);
  });
});

describe('a viewer', () => {
  const mine = 'subscription { outfits { count results { databaseId viewerHasLiked } } }';

  test('follows what is their own, and nothing of others', async () => {
    const gateway = await open();
    const id = Math.max(...rows.map((row) => row.id));
    const streams = await Promise.all(
      [ann, ben, undefined].map(async (userId) =>
        openStream(gateway.base, mine, { headers: await signIn(userId) }),
      ),
    );
    const [ofAnn, ofBen, ofNobody] = streams as [Stream, Stream, Stream];
    await gateway.database.pool.query('UPDATE outfits SET created = 4e15 WHERE id = $1', [id]);
    await gateway.write(`mutation { likeOutfit(id: "${outfitId(id)}") { outfit { id } } }`, ann);
    const liked = (stream: Stream) =>
      stream
        .events()
        .map(({ data }) =>
          data.data.outfits.results
            .filter((one: { viewerHasLiked: boolean }) => one.viewerHasLiked)
            .map((one: { databaseId: number }) => one.databaseId),
        );
    await expect.poll(() => liked(ofAnn).at(-1), { timeout: 20_000 }).toEqual([id]);
    await gateway.write(
      `mutation { likeOutfit(id: "${outfitId(outfit.id)}") { outfit { id } } }`,
      ben,
    );
    await untilLooked(gateway);
    expect(liked(ofBen).flat()).not.toContain(id);
    expect(liked(ofNobody).flat()).toEqual([]);
  });

  test('sees a list become personal while it is followed, and still nothing of others', async () => {
    const resolve: Resolver = (row, _args, context) =>
      (row as OutfitRow).likes >= 1_000_000 ? `of ${context.viewer?.userId ?? 'nobody'}` : null;
    const schema = extend('extend type Outfit { secret: String }', { 'Outfit.secret': resolve });
    const gateway = await open('PostgreSQL', {}, { schema });
    const query = `subscription { outfit(databaseId: ${outfit.id}) { secret } }`;
    const streams = await Promise.all(
      [ann, ben, undefined].map(async (userId) =>
        openStream(gateway.base, query, { headers: await signIn(userId) }),
      ),
    );
    for (const stream of streams) {
      expect((await stream.next()).data).toEqual({ data: { outfit: { secret: null } } });
    }
    await gateway.database.pool.query(
      'UPDATE outfit_like_counts SET likes = 1000000 WHERE id = $1',
      [outfit.id],
    );
    const [first, second, third] = await Promise.all(streams.map((stream) => stream.next()));
    expect(first?.data.data.outfit.secret).toBe(`of ${ann}`);
    expect(second?.data.data.outfit.secret).toBe(`of ${ben}`);
    expect(third?.data.data.outfit.secret).toBe('of nobody');
  });

  test('alone sees their private outfits change, with PRIVATE_OUTFITS=owner', async () => {
    const gateway = await open('PostgreSQL', { PRIVATE_OUTFITS: 'owner' });
    await gateway.database.pool.query(
      'UPDATE outfits SET private = true, user_id = $1 WHERE id = $2',
      [ann, outfit.id],
    );
    const variables = { id: outfit.id };
    const ofAnn = await openStream(gateway.base, oneOutfit, {
      variables,
      headers: await signIn(ann),
    });
    const ofBen = await openStream(gateway.base, oneOutfit, {
      variables,
      headers: await signIn(ben),
    });
    const ofNobody = await openStream(gateway.base, oneOutfit, { variables });
    expect((await ofAnn.next()).data.data.outfit.databaseId).toBe(outfit.id);
    await gateway.retitle('Hidden');
    expect((await ofAnn.next()).data.data.outfit.title).toBe('Hidden');
    await untilLooked(gateway);
    for (const stream of [ofBen, ofNobody]) {
      expect(stream.events()).toEqual([{ name: 'next', data: { data: { outfit: null } } }]);
    }
  });

  test('is told when the token has expired, and the stream ends', async () => {
    const { base } = await open();
    const headers = await signIn(ann, 3);
    const stream = await openStream(base, list, { headers });
    expect((await stream.next()).data.data.outfits.count).toBe(45);
    const { data } = await stream.next();
    expect(data.errors[0].extensions.code).toBe('UNAUTHENTICATED');
    expect((await stream.next()).name).toBe('complete');
    expect(await stream.ended).toBe(true);
    const again = await openStream(base, list, { headers });
    expect(again.response.statusCode).toBe(401);
  });
});

describe('streams', () => {
  test('come in by the same door', async () => {
    const { base } = await open('PostgreSQL', {
      RATE_LIMIT: '2/hour',
      CORS_ORIGINS: 'https://app.test',
    });
    const bad = await openStream(base, list, { headers: { authorization: 'Bearer x' } });
    expect(bad.response.statusCode).toBe(401);
    const headers = { origin: 'https://app.test', 'x-request-id': 'named' };
    const stream = await openStream(base, list, { headers });
    expect(stream.response.headers).toMatchObject({
      'access-control-allow-origin': 'https://app.test',
      'cache-control': 'no-store, no-transform',
      vary: 'Accept, Accept-Encoding, Origin',
      'x-content-type-options': 'nosniff',
      'x-request-id': 'named',
    });
    const second = await openStream(base, list);
    expect(second.response.statusCode).toBe(429);
    expect(second.response.headers['content-type']).toMatch(/^application\/json/);
  });

  test('are refused above MAX_STREAMS, until one has been closed', async () => {
    const { base } = await open('PostgreSQL', { MAX_STREAMS: '2' });
    const first = await openStream(base, list);
    await openStream(base, list);
    const third = await openStream(base, list);
    expect(third.response.statusCode).toBe(503);
    expect(third.response.headers['retry-after']).toBe('5');
    await third.ended;
    expect(JSON.parse(third.text()).errors[0].extensions.code).toBe('TOO_MANY_STREAMS');
    first.close();
    const status = async () => (await openStream(base, list)).response.statusCode;
    await expect.poll(status, { timeout: 20_000 }).toBe(200);
  });

  test('hold none of MAX_CONCURRENT_REQUESTS', async () => {
    const { base, post } = await open('PostgreSQL', { MAX_CONCURRENT_REQUESTS: '1' });
    await Promise.all(Array.from({ length: 20 }, () => openStream(base, list)));
    expect(await post('{ outfits { count } }')).toEqual({ data: { outfits: { count: 45 } } });
  });

  test('keep no more for a slow reader than what is on its way, and give it the newest', async () => {
    const gateway = await open('PostgreSQL', { PAGE_SIZE: '1000' });
    const big = 'subscription { outfits { results { databaseId likes description } } }';
    await gateway.database.pool.query('UPDATE outfits SET description = $1', [' '.repeat(100_000)]);
    const slow = await openStream(gateway.base, big);
    const quick = await openStream(gateway.base, oneOutfit, { variables: { id: outfit.id } });
    await slow.next();
    slow.response.pause();
    const changes = 8;
    for (let likes = 1; likes <= changes; likes++) {
      await gateway.database.pool.query('UPDATE outfit_like_counts SET likes = $1', [
        2_000 + likes,
      ]);
      const last = () => quick.events().at(-1)?.data.data.outfit.likes;
      await expect.poll(last, { timeout: 20_000 }).toBe(2_000 + likes);
      await untilLooked(gateway, 1);
    }
    slow.response.resume();
    const last = () => slow.events().at(-1)?.data.data.outfits.results[0].likes;
    await expect.poll(last, { timeout: 20_000 }).toBe(2_000 + changes);
    expect(slow.events().length).toBeLessThan(changes);
  });

  test('are measured and logged by what came before the first answer, not by how long they last', async () => {
    const { database, config } = await open();
    let log = '';
    const metrics = new Metrics(database);
    const logger = createLog('info', { write: (chunk) => (log += chunk) });
    const app = await buildApp(config, database, { metrics, logger });
    onTestFinished(() => app.close());
    const stream = await openStream(await baseOfApp(app), list, { headers: await signIn(ann, 3) });
    expect((await metrics.print()).text).toMatch(/^gateway_streams_open\{transport="sse"\} 1$/m);
    expect(await stream.ended).toBe(true);
    const text = async () => (await metrics.print()).text;
    await expect
      .poll(text, { timeout: 20_000 })
      .toMatch(/^gateway_streams_open\{transport="sse"\} 0$/m);
    expect(await text()).toMatch(/^gateway_streams_opened_total\{transport="sse"\} 1$/m);
    await expect.poll(text).toMatch(/duration_seconds_bucket\{le="2.5",.*"\/graphql".*\} 1$/m);
    expect(log).not.toContain('slow');
  });

  test('are what graphql-sse reads', async () => {
    const gateway = await open();
    const client = createClient({ url: `${gateway.base}/graphql` });
    onTestFinished(() => client.dispose());
    const answers = client.iterate({ query: oneOutfit, variables: { id: outfit.id } });
    const { value } = await answers.next();
    expect(value.data.outfit).toMatchObject({ title: outfit.title });
    await gateway.retitle('Read by a client');
    expect((await answers.next()).value.data.outfit.title).toBe('Read by a client');
    await answers.return?.();
  });
});
