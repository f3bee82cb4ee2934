// Answers from memory: never stale after a commit of any client; bounded; one read of a key at a time. What ends them is
// in invalidation.test.ts.
import { setTimeout } from 'node:timers/promises';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { connectForTest, databaseUrlOf } from '../support/databases/connections.ts';
import { startEmbeddedPostgres } from '../support/databases/embedded-postgres.js';
import { isSnapshot, statementsOf, textOf } from '../support/databases/statements.ts';
import { openGateway, type TestGateway } from '../support/gateway.ts';
import { getGraphql, postGraphql } from '../support/http/graphql.ts';

const rows = [...generateOutfits({ outfits: 45, users: 9 })];

let postgres: Awaited<ReturnType<typeof startEmbeddedPostgres>>;
beforeAll(async () => {
  // Its commits would be asked about, too.
  postgres = await startEmbeddedPostgres(['-c', 'autovacuum=off', '-c', 'fsync=off']);
});
afterAll(() => postgres.close());

/** A gateway of a test's own. */
async function open(environment: Record<string, string> = {}, outfits = rows) {
  const gateway = await openGateway('PostgreSQL', outfits, environment, { server: postgres.url });
  onTestFinished(() => gateway.close());
  return gateway;
}

/** A connection that does not go through the gateway. */
const connect = ({ database }: TestGateway) => connectForTest(databaseUrlOf(database.pool));

const post = ({ app }: TestGateway, query: string, more: object = {}) =>
  postGraphql(app, { query, ...more });

/** How many statements answer `work`. */
const countOf = async (gateway: TestGateway, work: () => Promise<unknown>) =>
  (await statementsOf(gateway, work)).length;

const times = <Value>(count: number, make: (index: number) => Value): Value[] =>
  Array.from({ length: count }, (_, index) => make(index));

/** Every outfit in an answer, wherever it is. */
function* findOutfits(value: unknown): Generator<{ id: number; likes: number }> {
  if (typeof value !== 'object' || value === null) return;
  if ('id' in value && 'likes' in value) yield value as { id: number; likes: number };
  for (const part of Object.values(value)) yield* findOutfits(part);
}

const byId = '{ outfits(ordering: ID_ASC) { results { id: databaseId likes } } }';
const byConnection =
  'query ($first: Int) { outfitConnection(first: $first, ordering: LIKE_COUNT_DESC) { edges { node { id: databaseId likes } } } }';
const ownersOutfits =
  '{ outfits(ordering: LIKE_COUNT_DESC) { results { user { outfits(ordering: LIKE_COUNT_DESC) { results { id: databaseId likes } } } } } }';

/** Of the snapshots; not of what asks for it. */
const findConnections = `SELECT pid FROM pg_stat_activity WHERE datname = current_database()
  AND application_name = 'outfit-gateway' AND query LIKE '%pg_current_snapshot%'`;
const endConnections = `SELECT pg_terminate_backend(pid) FROM (${findConnections}) AS connection`;

const leastReads = 1_500;
test(`none of ${leastReads} reads is stale while others write, inside and outside the gateway`, async () => {
  const gateway = await open({ PAGE_SIZE: '5' });
  const { pool } = gateway.database;
  const outside = await connect(gateway);
  const slow = await connect(gateway);
  /** What writers have begun to write, and what has been acknowledged: more than any other outfit has. */
  const likes = new Map(
    rows.slice(0, 3).map(({ id }) => [id, { begun: 1_000_000, acknowledged: 1_000_000 }]),
  );
  const [first = 0, second = 0, third = 0] = likes.keys();
  const set = `UPDATE outfit_like_counts SET likes = 1000000 WHERE id IN (${[...likes.keys()]})`;
  await pool.query(set);

  const query = `{ outfit(databaseId: ${second}) { id: databaseId likes } }`;
  const questions = [
    () => gateway.get('/api/outfits/?ordering=id'),
    () => gateway.get('/api/outfits/?ordering=-like_count'),
    () => gateway.get(`/api/outfits/?ordering=-like_count&any=${Math.random()}`),
    () => post(gateway, byId),
    () => post(gateway, byConnection, { variables: { first: 3 } }),
    () => post(gateway, ownersOutfits),
    () => getGraphql(gateway.app, { query: byId }),
    () => getGraphql(gateway.app, { query }),
  ];
  let reads = 0;
  let commits = 0;
  let lost = 0;
  const wrong: unknown[] = [];
  const isOver = () => reads >= leastReads;
  const read = async () => {
    const floors = new Map([...likes].map(([id, { acknowledged }]) => [id, acknowledged]));
    const ask = questions[Math.floor(Math.random() * questions.length)] ?? expect.fail();
    const response = await ask();
    reads++;
    const seen = [...findOutfits(response.json())].filter(({ id }) => likes.has(id));
    const isRight = (outfit: { id: number; likes: number }) =>
      outfit.likes >= Number(floors.get(outfit.id)) &&
      outfit.likes <= Number(likes.get(outfit.id)?.begun);
    if (seen.length === 0 || !seen.every(isRight)) wrong.push(response.body);
    // Reads within one turn of the event loop share snapshots; others must not need that.
    if (reads % 50 === 0) await setTimeout(Math.random() * 3);
  };
  const repeat = async (work: () => Promise<unknown>) => {
    while (!isOver()) await work();
  };
  /** In reads, so that a slow machine does not meet other proportions. */
  const pause = async (least: number, most: number) => {
    const next = reads + least + Math.random() * (most - least);
    while (reads < next && !isOver()) await setTimeout(1);
  };
  /** Writes the next number of likes with `send`, which says whether it was committed. */
  const write = (id: number, send: (statement: string) => Promise<boolean>) =>
    repeat(async () => {
      const known = likes.get(id) ?? expect.fail();
      const value = ++known.begun;
      const statement = `UPDATE outfit_like_counts SET likes = ${value} WHERE id = ${id}`;
      if (await send(statement)) known.acknowledged = value;
      commits++;
      await pause(60, 200);
    });
  const sendAtOnce = (client: Pick<pg.Client, 'query'>) => async (statement: string) => {
    await client.query(statement);
    return true;
  };
  /** In a transaction that stays open for a while, and is sometimes taken back. */
  const sendSlowly = async (statement: string) => {
    const isKept = Math.random() < 0.7;
    await slow.query(`BEGIN; ${statement}`);
    await setTimeout(Math.random() * 5);
    await slow.query(isKept ? 'COMMIT' : 'ROLLBACK');
    return isKept;
  };
  const sent = await countOf(gateway, () =>
    Promise.all([
      ...times(24, () => repeat(read)),
      write(first, sendAtOnce(outside)),
      write(second, sendSlowly),
      write(third, sendAtOnce(pool)),
      // A lost connection fails no request, and hides no commit.
      repeat(async () => {
        await pause(400, 500);
        lost += (await outside.query(endConnections)).rowCount ?? 0;
      }),
    ]),
  );
  if (process.env['SHOW_FIGURES']) console.info({ reads, commits, lost, sent });
  expect(wrong).toEqual([]);
  // Or else it proves nothing: neither a cache that never keeps, nor one that is never emptied.
  expect(sent).toBeLessThan(leastReads / 2);
  expect(commits).toBeGreaterThan(leastReads / 100);
  expect(lost).toBeGreaterThan(1);
  await gateway.get('/api/outfits/');
  await expect.poll(async () => (await outside.query(findConnections)).rowCount).toBe(1);
});

describe('the cache', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await openGateway('PostgreSQL', rows, {}, { server: postgres.url });
  });
  afterAll(() => gateway.close());

  const write = () =>
    gateway.database.pool.query('UPDATE outfit_like_counts SET likes = likes + 1');
  const query =
    'query Page($page: Int) { outfits(page: $page) { count results { id: databaseId likes } } }';

  test('an answer is read once, until something is committed, and once for all who ask then', async () => {
    for (const ask of [
      () => gateway.get('/api/outfits/?page=2'),
      () => post(gateway, query, { variables: { page: 2 } }),
      () => getGraphql(gateway.app, { query: '{ outfits(page: 3) { results { likes } } }' }),
    ]) {
      await ask();
      expect(await countOf(gateway, ask)).toBe(0);
      const before = (await ask()).body;
      await write();
      const answers = new Set<string>();
      const ask50 = () => Promise.all(times(50, async () => answers.add((await ask()).body)));
      expect(await countOf(gateway, ask50)).toBe(1);
      expect(answers.size).toBe(1);
      expect(answers).not.toContain(before);
      expect(await countOf(gateway, ask)).toBe(0);
    }
  });

  test('who asks behind a commit does not get what was read before it, though that is still on its way', async () => {
    const { pool } = gateway.database;
    const send = pool.query.bind(pool);
    let release = () => {};
    const released = new Promise<void>((settle) => {
      release = settle;
    });
    let reads = 0;
    const spy = vi.spyOn(pool, 'query').mockImplementation((async (statement: pg.QueryConfig) => {
      const result = await send(statement);
      if (textOf(statement).includes('seek_outfits') && ++reads === 1) await released;
      return result;
    }) as unknown as typeof send);
    onTestFinished(() => spy.mockRestore());
    await write();
    const ask = async () => (await gateway.get('/api/outfits/?page=3')).json().results[0].likes;
    const before = ask();
    await expect.poll(() => reads).toBe(1);
    await write();
    const behind = ask();
    // Asked later and answered: so the one before it has been looked for.
    await gateway.get('/api/outfits/?page=2');
    release();
    expect(await behind).toBe((await before) + 1);
  });

  test('however many ask, and whatever is written, a key is read by one at a time', async () => {
    const { pool } = gateway.database;
    const send = pool.query.bind(pool);
    let underWay = 0;
    let most = 0;
    let reads = 0;
    const spy = vi.spyOn(pool, 'query').mockImplementation((async (statement: pg.QueryConfig) => {
      if (!textOf(statement).includes('seek_outfits')) return send(statement);
      reads++;
      underWay++;
      most = Math.max(most, underWay);
      return send(statement).finally(() => underWay--);
    }) as unknown as typeof send);
    onTestFinished(() => spy.mockRestore());
    const asking = times(20, async () => {
      while (reads < 25) await gateway.get('/api/outfits/?page=3');
    });
    while (reads < 25) await write();
    await Promise.all(asking);
    expect(most).toBe(1);
  });

  test('parameters that mean nothing do not fill it, and links are those of each request', async () => {
    await gateway.get('/api/outfits/?page=2');
    const ask = async () => {
      for (const host of times(30, (index) => `shop${index}.test`)) {
        const response = await gateway.get(`/api/outfits/?page=2&a=${host}`, { host });
        expect(response.json()).toMatchObject({
          next: `http://${host}/api/outfits/?a=${host}&page=3`,
          previous: `http://${host}/api/outfits/?a=${host}&page=1`,
        });
      }
    };
    expect(await countOf(gateway, ask)).toBe(0);
  });

  test('two operations of one document, and two values of a variable, are never confused', async () => {
    const document = `
      query Lowest($page: Int) { outfits(ordering: ID_ASC, page: $page) { results { id: databaseId } } }
      query Highest($page: Int) { outfits(ordering: ID_DESC, page: $page) { results { id: databaseId } } }`;
    const ids = rows.map((row) => row.id).sort((a, b) => a - b);
    const expected = (operationName: string, page: number) =>
      (operationName === 'Lowest' ? ids : ids.toReversed()).slice(20 * (page - 1), 20 * page);
    for (let round = 0; round < 6; round++) {
      for (const operationName of ['Lowest', 'Highest']) {
        for (const page of [1, 2]) {
          const variables = { page };
          const parameters = {
            query: document,
            operationName,
            variables: JSON.stringify(variables),
          };
          for (const answer of [
            await post(gateway, document, { operationName, variables }),
            await getGraphql(gateway.app, parameters),
          ]) {
            const results = expected(operationName, page).map((id) => ({ id }));
            expect(answer.json()).toEqual({ data: { outfits: { results } } });
          }
        }
      }
      expect((await post(gateway, document)).json().errors).toHaveLength(1);
    }
  });

  test('a variable that JSON can only write as null is not taken for null', async () => {
    const ask = (page: string) =>
      postGraphql(gateway.app, `{"query":${JSON.stringify(query)},"variables":{"page":${page}}}`);
    for (let round = 0; round < 5; round++) {
      expect((await ask('null')).json().data.outfits.count).toBe(rows.length);
      expect((await ask('1e400')).json().errors).toHaveLength(1);
    }
  });

  test('the variables of a GET that look like the body of a POST are not taken for it', async () => {
    const body = JSON.stringify({ query, variables: { page: 2 } });
    for (let round = 0; round < 5; round++) {
      // All variables of the GET are unknown ones, so that it asks for the first page.
      const first = await getGraphql(gateway.app, { query, variables: body });
      const second = await postGraphql(gateway.app, body);
      expect(first.json().data.outfits.results).toHaveLength(20);
      expect(second.json().data.outfits.results).not.toEqual(first.json().data.outfits.results);
    }
  });

  test('an error is not kept', async () => {
    const { pool } = gateway.database;
    for (const ask of [
      () => gateway.get('/api/outfits/?page=2'),
      () => post(gateway, query, { variables: { page: 2 } }),
    ]) {
      await ask();
      await write();
      const send = pool.query.bind(pool);
      const broken = vi.spyOn(pool, 'query').mockImplementation((async (statement: object) => {
        if (isSnapshot(textOf(statement))) return send(statement as pg.QueryConfig);
        throw new Error('The disk is on fire.');
      }) as unknown as typeof send);
      for (let round = 0; round < 3; round++) {
        const failed = await ask();
        expect(failed.body).toContain('Internal server error.');
        expect(failed.body).not.toContain('fire');
      }
      broken.mockRestore();
      const answer = await ask();
      expect(answer.statusCode).toBe(200);
      expect(answer.json().errors).toBeUndefined();
    }
  });
});

describe('the size of the cache', () => {
  const many = [...generateOutfits({ outfits: 800, users: 20 })];
  const walk = async (gateway: TestGateway) => {
    for (let page = 1; page <= 40; page++) {
      expect((await gateway.get(`/api/outfits/?page=${page}`)).statusCode).toBe(200);
    }
  };

  test('as many answers are kept as CACHE_MAX_SIZE takes, and the latest ones', async () => {
    const roomy = await open({}, many);
    const pageBytes = Number((await roomy.get('/api/outfits/')).headers['content-length']);
    await walk(roomy);
    expect(await countOf(roomy, () => walk(roomy))).toBe(0);

    const tight = await open({ CACHE_MAX_SIZE: `${5 * pageBytes}B` }, many);
    expect(await countOf(tight, () => walk(tight))).toBe(40);
    expect(await countOf(tight, () => walk(tight))).toBe(40);
    expect(await countOf(tight, () => tight.get('/api/outfits/?page=40'))).toBe(0);
    const half = async () => {
      for (let page = 40; page > 34; page--) await tight.get(`/api/outfits/?page=${page}`);
    };
    expect(await countOf(tight, half)).toBeGreaterThan(0);
  });

  test('a small answer counts with what is kept beside it', async () => {
    const gateway = await open({ CACHE_MAX_SIZE: '100000B' });
    const ask = (i: number) =>
      post(gateway, '{ outfit(databaseId: 1) { likes } }', { variables: { i } });
    for (let i = 0; i < 100; i++) await ask(i);
    expect(await countOf(gateway, () => ask(99))).toBe(0);
    expect(await countOf(gateway, () => ask(0))).toBe(1);
  });

  test('an answer that is larger than all of it is given, and not kept', async () => {
    const gateway = await open({ CACHE_MAX_SIZE: '100B' });
    const ask = () => gateway.get('/api/outfits/');
    const { body } = await ask();
    expect(await countOf(gateway, ask)).toBe(1);
    expect((await ask()).body).toBe(body);
  });

  test('CACHE_MAX_SIZE=0 reads for every request, and asks for no snapshot', async () => {
    const gateway = await open({ CACHE_MAX_SIZE: '0' });
    const next = vi.spyOn(gateway.database.snapshots, 'next');
    for (const ask of [() => gateway.get('/api/outfits/'), () => post(gateway, byId)]) {
      for (let round = 0; round < 5; round++) expect(await countOf(gateway, ask)).toBe(1);
    }
    expect(next).not.toHaveBeenCalled();
  });
});
