// Answers from memory: never stale after a commit of any client; bounded; one read of a key at a time. What ends them is
// in endings.test.ts.
import { setTimeout } from 'node:timers/promises';
import type { LightMyRequestResponse } from 'fastify';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { startEmbeddedPostgres } from '../support/databases/embedded-postgres.js';
import { type DatabaseKind, openGateway, type TestGateway } from '../support/gateway.ts';
import { amount, describeOnce, laneKinds } from '../support/lane.ts';

const rows = [...generateOutfits({ outfits: 45, users: 9 })];

let postgres: Awaited<ReturnType<typeof startEmbeddedPostgres>>;
beforeAll(async () => {
  // Its commits would be asked about, too.
  postgres = await startEmbeddedPostgres(['-c', 'autovacuum=off', '-c', 'fsync=off']);
});
afterAll(() => postgres.close());

/** A gateway of a test's own. */
async function open(
  kind: DatabaseKind,
  environment: Record<string, string> = {},
  outfits = rows,
): Promise<TestGateway> {
  const gateway = await openGateway(kind, outfits, environment, { server: postgres.url });
  onTestFinished(() => gateway.close());
  return gateway;
}

/** A connection that does not go through the gateway. */
async function connect({ database }: TestGateway): Promise<pg.Client> {
  const client = new pg.Client(database.pool.options.connectionString);
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

/** Counts the statements that answer requests: all but the snapshots. */
function countStatements({ database }: TestGateway): () => number {
  const query = vi.spyOn(database.pool, 'query');
  onTestFinished(() => query.mockRestore());
  return () => query.mock.calls.filter((call) => !isSnapshot(call[0])).length;
}

function isSnapshot(statement: unknown): boolean {
  return JSON.stringify(statement).includes('pg_current_snapshot');
}

/** The statements that `work` needs. */
async function statementsOf(count: () => number, work: () => Promise<unknown>): Promise<number> {
  const before = count();
  await work();
  return count() - before;
}

const postRaw = (
  { app }: TestGateway,
  payload: string,
  headers: Record<string, string> = {},
): Promise<LightMyRequestResponse> =>
  app.inject({
    method: 'POST',
    url: '/graphql',
    headers: { 'content-type': 'application/json', ...headers },
    payload,
  });

const post = (gateway: TestGateway, query: string, more: object = {}) =>
  postRaw(gateway, JSON.stringify({ query, ...more }));

const getQuery = ({ app }: TestGateway, parameters: Record<string, string>) =>
  app.inject({ method: 'GET', url: `/graphql?${new URLSearchParams(parameters)}` });

const times = <Value>(count: number, make: (index: number) => Value): Value[] =>
  Array.from({ length: count }, (_, index) => make(index));

/** Likes of an outfit: what writers have begun to write, and what has been acknowledged. */
interface Likes {
  begun: number;
  acknowledged: number;
  readonly takenBack: Set<number>;
}

/** Every outfit in an answer, wherever it is. */
function* findOutfits(value: unknown): Generator<{ id: number; likes: number }> {
  if (typeof value !== 'object' || value === null) return;
  if ('id' in value && 'likes' in value) yield value as { id: number; likes: number };
  for (const part of Object.values(value)) yield* findOutfits(part);
}

/** Outfits that are written while others are read, and what is known about them. */
class Tracked {
  readonly byId: ReadonlyMap<number, Likes>;
  reads = 0;
  commits = 0;
  readonly wrong: unknown[] = [];

  constructor(ids: readonly number[]) {
    // More than any other outfit has, so that they lead the list by likes too.
    this.byId = new Map(
      ids.map((id) => [id, { begun: 1e6, acknowledged: 1e6, takenBack: new Set<number>() }]),
    );
  }

  /** Reads, and notes what is older than an acknowledged write, or was never committed. */
  async read(ask: () => Promise<LightMyRequestResponse>): Promise<void> {
    const floors = new Map([...this.byId].map(([id, likes]) => [id, likes.acknowledged]));
    const response = await ask();
    this.reads++;
    let seen = 0;
    for (const { id, likes } of findOutfits(response.json())) {
      const known = this.byId.get(id);
      if (!known) continue;
      seen++;
      const floor = floors.get(id) ?? 0;
      if (likes < floor || likes > known.begun || known.takenBack.has(likes)) {
        this.wrong.push({ id, likes, floor, begun: known.begun });
      }
    }
    if (response.statusCode !== 200 || seen === 0) this.wrong.push(response.body);
  }

  /** Writes the next number of likes with `send`, which resolves when it has been committed. */
  async write(
    id: number,
    send: (statement: string) => Promise<'committed' | 'taken back'>,
  ): Promise<void> {
    const likes = this.byId.get(id);
    if (!likes) throw new Error(`Outfit ${id} is not tracked.`);
    const value = ++likes.begun;
    const outcome = await send(`UPDATE outfit_like_counts SET likes = ${value} WHERE id = ${id}`);
    if (outcome === 'taken back') likes.takenBack.add(value);
    else likes.acknowledged = value;
    this.commits++;
  }
}

/** Sends in a transaction that stays open for a while, and is sometimes taken back. */
async function sendSlowly(client: pg.ClientBase, statement: string) {
  const isKept = Math.random() < 0.7;
  await client.query('BEGIN');
  await client.query(statement);
  await setTimeout(Math.random() * 5);
  await client.query(isKept ? 'COMMIT' : 'ROLLBACK');
  return isKept ? 'committed' : 'taken back';
}

const byId = '{ outfits(ordering: ID_ASC) { results { id: databaseId likes } } }';
const byConnection =
  'query ($first: Int) { outfitConnection(first: $first, ordering: LIKE_COUNT_DESC) { edges { node { id: databaseId likes } } } }';
const ownersOutfits =
  '{ outfits(ordering: LIKE_COUNT_DESC) { results { user { outfits(ordering: LIKE_COUNT_DESC) { results { id: databaseId likes } } } } } }';

describe.each([
  ['PostgreSQL', amount(2_000, 5_000)],
  ['embedded', amount(300, 1_500)],
] as const)('on %s', (kind, leastReads) => {
  test(`none of ${leastReads} reads is stale while others write, inside and outside the gateway`, async () => {
    const gateway = await open(kind, { PAGE_SIZE: '5' });
    const { pool } = gateway.database;
    const ids = rows.slice(0, 3).map((row) => row.id);
    const tracked = new Tracked(ids);
    await pool.query('UPDATE outfit_like_counts SET likes = 1000000 WHERE id = ANY($1)', [ids]);
    const countSent = countStatements(gateway);

    const [first = 0, second = 0, third = 0] = ids;
    const questions = [
      () => gateway.get('/api/outfits/?ordering=id'),
      () => gateway.get('/api/outfits/?ordering=-like_count'),
      () => gateway.get(`/api/outfits/?ordering=-like_count&any=${Math.random()}`),
      () => post(gateway, byId),
      () => post(gateway, byConnection, { variables: { first: 3 } }),
      () => post(gateway, ownersOutfits),
      () => getQuery(gateway, { query: byId }),
      () =>
        getQuery(gateway, { query: `{ outfit(databaseId: ${second}) { id: databaseId likes } }` }),
    ];
    const reader = async () => {
      for (let index = 0; tracked.reads < leastReads; index++) {
        const question = questions[Math.floor(Math.random() * questions.length)];
        if (question) await tracked.read(question);
        // Reads within one turn of the event loop share snapshots; others must not need that.
        if (index % 50 === 0) await setTimeout(Math.random() * 3);
      }
    };
    const writer = async (id: number, send: Parameters<Tracked['write']>[1]) => {
      while (tracked.reads < leastReads) {
        await tracked.write(id, send);
        // Counted in reads, so that a slow machine does not meet other proportions.
        const next = tracked.reads + 60 + Math.random() * 140;
        while (tracked.reads < Math.min(next, leastReads)) await setTimeout(1);
      }
    };
    const outside = async () => (kind === 'embedded' ? pool : await connect(gateway));
    const sendAtOnce = (client: Pick<pg.Client, 'query'>) => async (statement: string) => {
      await client.query(statement);
      return 'committed' as const;
    };
    const slow = kind === 'embedded' ? undefined : await connect(gateway);

    await Promise.all([
      ...times(24, reader),
      writer(first, sendAtOnce(await outside())),
      writer(second, async (statement) => {
        const client = slow ?? (await pool.connect());
        try {
          return await sendSlowly(client, statement);
        } finally {
          if (client !== slow) (client as pg.PoolClient).release();
        }
      }),
      writer(third, sendAtOnce(pool)),
    ]);

    const figures = { kind, ...tracked, byId: undefined, statements: countSent() };
    if (process.env['SHOW_FIGURES']) console.info(figures);
    expect(tracked.wrong).toEqual([]);
    expect(tracked.reads).toBeGreaterThanOrEqual(leastReads);
    // Or else it proves nothing: neither a cache that never keeps, nor one that is never emptied.
    expect(countSent()).toBeLessThan(leastReads / 2);
    expect(tracked.commits).toBeGreaterThan(leastReads / 100);
  });
});

describe.each(laneKinds)('the cache on %s', (kind) => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await openGateway(kind, rows, {}, { server: postgres.url });
  });
  afterAll(() => gateway.close());

  const write = () =>
    gateway.database.pool.query('UPDATE outfit_like_counts SET likes = likes + 1');
  const query =
    'query Page($page: Int) { outfits(page: $page) { count results { id: databaseId likes } } }';

  test('an answer is read once, until something is committed', async () => {
    const count = countStatements(gateway);
    for (const ask of [
      () => gateway.get('/api/outfits/?page=2'),
      () => post(gateway, query, { variables: { page: 2 } }),
      () => getQuery(gateway, { query: '{ outfits(page: 3) { results { likes } } }' }),
    ]) {
      await ask();
      await ask();
      expect(await statementsOf(count, ask)).toBe(0);
      const before = (await ask()).body;
      await write();
      // The write is a statement too.
      expect(await statementsOf(count, ask)).toBe(1);
      expect((await ask()).body).not.toBe(before);
      expect(await statementsOf(count, ask)).toBe(0);
    }
  });

  test('fifty requests for the same after a write share one read', async () => {
    const count = countStatements(gateway);
    for (const ask of [
      () => gateway.get('/api/outfits/'),
      () => post(gateway, query),
      () => getQuery(gateway, { query }),
    ]) {
      await ask();
      await ask();
      await write();
      const together = async () => {
        const answers = await Promise.all(times(50, ask));
        expect(new Set(answers.map((answer) => `${answer.statusCode} ${answer.body}`)).size).toBe(
          1,
        );
      };
      expect(await statementsOf(count, together)).toBe(1);
    }
  });

  test('however many ask, and whatever is written, a key is read by one at a time', async () => {
    const { pool } = gateway.database;
    const send = pool.query.bind(pool) as (...args: unknown[]) => Promise<unknown>;
    let underWay = 0;
    let most = 0;
    let reads = 0;
    const spy = vi.spyOn(pool, 'query').mockImplementation((async (...args: unknown[]) => {
      if (!JSON.stringify(args[0]).includes('outfits_by_')) return send(...args);
      reads++;
      underWay++;
      most = Math.max(most, underWay);
      try {
        return await send(...args);
      } finally {
        underWay--;
      }
    }) as unknown as typeof pool.query);
    onTestFinished(() => spy.mockRestore());
    let asking = true;
    await Promise.all([
      (async () => {
        while (asking) await write();
      })(),
      Promise.all(
        times(20, async () => {
          while (reads < 50) await gateway.get('/api/outfits/?page=3');
        }),
      ).finally(() => {
        asking = false;
      }),
    ]);
    expect(most).toBe(1);
  });

  test('parameters that mean nothing do not fill it, and links are those of each request', async () => {
    const count = countStatements(gateway);
    await gateway.get('/api/outfits/?page=2');
    const ask = async () => {
      for (let index = 0; index < 30; index++) {
        const response = await gateway.get(`/api/outfits/?page=2&a=${index}`, {
          host: `shop${index}.test`,
        });
        expect(response.json()).toMatchObject({
          next: `http://shop${index}.test/api/outfits/?a=${index}&page=3`,
          previous: `http://shop${index}.test/api/outfits/?a=${index}&page=1`,
        });
      }
    };
    expect(await statementsOf(count, ask)).toBe(0);
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
          const answers = await Promise.all([
            post(gateway, document, { operationName, variables }),
            getQuery(gateway, {
              query: document,
              operationName,
              variables: JSON.stringify(variables),
            }),
          ]);
          for (const answer of answers) {
            const { results } = answer.json().data.outfits;
            expect(results.map(({ id }: { id: number }) => id)).toEqual(
              expected(operationName, page),
            );
          }
        }
      }
      const unnamed = await post(gateway, document);
      expect(unnamed.json().errors).toHaveLength(1);
    }
  });

  test('a variable that JSON can only write as null is not taken for null', async () => {
    const ask = (page: string) =>
      postRaw(gateway, `{"query":${JSON.stringify(query)},"variables":{"page":${page}}}`);
    for (let round = 0; round < 5; round++) {
      expect((await ask('null')).json().data.outfits.count).toBe(rows.length);
      expect((await ask('1e400')).json().errors).toHaveLength(1);
    }
  });

  test('the variables of a GET that look like the body of a POST are not taken for it', async () => {
    const body = JSON.stringify({ query, variables: { page: 2 } });
    for (let round = 0; round < 5; round++) {
      // All variables of the GET are unknown ones, so that it asks for the first page.
      const first = await getQuery(gateway, { query, variables: body });
      const second = await postRaw(gateway, body);
      expect(first.json().data.outfits.results).toHaveLength(20);
      expect(second.json().data.outfits.results).not.toEqual(first.json().data.outfits.results);
    }
  });

  test('a request of a type that is not taken never answers others that ask the same', async () => {
    const unseen = '{ outfits { pageCount results { id: databaseId } } }';
    const ask = (type: string) =>
      postRaw(gateway, JSON.stringify({ query: unseen }), { 'content-type': type });
    const types = ['application/json', 'application/json-patch+json', 'application/jsonl'];
    const alone = new Map<string, number>();
    for (const type of types.toReversed()) alone.set(type, (await ask(type)).statusCode);
    expect(alone.get('application/json')).toBe(200);
    for (let round = 0; round < 5; round++) {
      await ask('application/json');
      await write();
      await Promise.all(
        times(45, async (index) => {
          const type = types[index % types.length] ?? '';
          expect([type, (await ask(type)).statusCode]).toEqual([type, alone.get(type)]);
        }),
      );
    }
  });

  test('each accepted type is answered with that type, also from memory', async () => {
    for (let round = 0; round < 6; round++) {
      for (const accept of ['application/json', 'application/graphql-response+json']) {
        const answer = await postRaw(gateway, JSON.stringify({ query }), { accept });
        expect(answer.headers['content-type']).toMatch(accept);
      }
    }
  });

  test('an error is not kept', async () => {
    const { pool } = gateway.database;
    const questions = [
      () => gateway.get('/api/outfits/?page=2'),
      () => post(gateway, query, { variables: { page: 2 } }),
    ];
    for (const ask of questions) {
      await ask();
      await write();
      const send = pool.query.bind(pool) as (...args: unknown[]) => Promise<unknown>;
      const broken = vi.spyOn(pool, 'query').mockImplementation((async (...args: unknown[]) => {
        if (isSnapshot(args[0])) return send(...args);
        throw new Error('The disk is on fire.');
      }) as unknown as typeof pool.query);
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
    const { data } = (await post(gateway, query, { variables: { page: 4 } })).json();
    expect(data).toEqual({ outfits: null });
  });
});

describeOnce('the size of the cache', () => {
  const many = [...generateOutfits({ outfits: 800, users: 20 })];
  const walk = async (gateway: TestGateway) => {
    for (let page = 1; page <= 40; page++) {
      expect((await gateway.get(`/api/outfits/?page=${page}`)).statusCode).toBe(200);
    }
  };

  test('as many answers are kept as CACHE_MAX_SIZE takes, and the latest ones', async () => {
    const roomy = await open('PostgreSQL', {}, many);
    const pageBytes = Number((await roomy.get('/api/outfits/')).headers['content-length']);
    const roomyCount = countStatements(roomy);
    await walk(roomy);
    expect(await statementsOf(roomyCount, () => walk(roomy))).toBe(0);

    const tight = await open('PostgreSQL', { CACHE_MAX_SIZE: `${5 * pageBytes}B` }, many);
    const count = countStatements(tight);
    expect(await statementsOf(count, () => walk(tight))).toBe(40);
    expect(await statementsOf(count, () => walk(tight))).toBe(40);
    expect(await statementsOf(count, () => tight.get('/api/outfits/?page=40'))).toBe(0);
    const half = async () => {
      for (let page = 40; page > 34; page--) await tight.get(`/api/outfits/?page=${page}`);
    };
    expect(await statementsOf(count, half)).toBeGreaterThan(0);
  });

  test('an answer that is larger than all of it is given, and not kept', async () => {
    const gateway = await open('PostgreSQL', { CACHE_MAX_SIZE: '100B' });
    const count = countStatements(gateway);
    const ask = () => gateway.get('/api/outfits/');
    const { body } = await ask();
    expect(await statementsOf(count, ask)).toBe(1);
    expect((await ask()).body).toBe(body);
  });

  test('CACHE_MAX_SIZE=0 reads for every request, and asks for no snapshot', async () => {
    const gateway = await open('PostgreSQL', { CACHE_MAX_SIZE: '0' });
    const count = countStatements(gateway);
    const next = vi.spyOn(gateway.database.snapshots, 'next');
    for (const ask of [() => gateway.get('/api/outfits/'), () => post(gateway, byId)]) {
      const { body } = await ask();
      for (let round = 0; round < 5; round++) {
        expect(await statementsOf(count, ask)).toBe(1);
        expect((await ask()).body).toBe(body);
      }
    }
    expect(next).not.toHaveBeenCalled();
  });
});

describe('a lost snapshot connection', () => {
  const findConnections = `SELECT pid FROM pg_stat_activity WHERE datname = current_database()
    AND application_name = 'outfit-gateway' AND query LIKE '%pg_current_snapshot%'`;

  test('empties the cache, and the next one keeps answers again', async () => {
    const gateway = await open('PostgreSQL');
    const outside = await connect(gateway);
    const count = countStatements(gateway);
    const ask = () => gateway.get('/api/outfits/');
    await ask();
    expect(await statementsOf(count, ask)).toBe(0);
    const { rows: lost } = await outside.query(
      `SELECT pg_terminate_backend(pid) FROM (${findConnections}) AS connection`,
    );
    expect(lost).toHaveLength(1);
    expect(await statementsOf(count, ask)).toBe(1);
    await ask();
    expect(await statementsOf(count, ask)).toBe(0);
  });

  test('fails no request and makes none stale, however often, and leaves one connection', async () => {
    const gateway = await open('PostgreSQL');
    const outside = await connect(gateway);
    const [{ id } = { id: 0 }] = rows;
    const tracked = new Tracked([id]);
    await outside.query('UPDATE outfit_like_counts SET likes = 1000000 WHERE id = $1', [id]);
    let lost = 0;
    let reading = true;
    await Promise.all([
      Promise.all(
        times(8, async () => {
          while (tracked.reads < amount(500, 1_500) || lost < amount(4, 10)) {
            await tracked.read(() => gateway.get('/api/outfits/?ordering=-like_count'));
          }
        }),
      ).finally(() => {
        reading = false;
      }),
      (async () => {
        while (reading) {
          const { rowCount } = await outside.query(
            `SELECT pg_terminate_backend(pid) FROM (${findConnections}) AS connection`,
          );
          lost += rowCount ?? 0;
          await tracked.write(id, async (statement) => {
            await outside.query(statement);
            return 'committed';
          });
          await setTimeout(Math.random() * 20);
        }
      })(),
    ]);
    expect(tracked.wrong).toEqual([]);
    await gateway.get('/api/outfits/');
    await expect.poll(async () => (await outside.query(findConnections)).rowCount).toBe(1);
  });
});
