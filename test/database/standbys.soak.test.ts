// Queries are read from a standby, a real one, that shows no less than the primary; else from the primary.
import type { FastifyInstance } from 'fastify';
import type pg from 'pg';
import {
  afterAll,
  beforeAll,
  beforeEach,
  describe,
  expect,
  inject,
  onTestFinished,
  test,
} from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { buildApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import { openDatabase } from '../../src/database/database.ts';
import { migrate } from '../../src/database/migrations.ts';
import { Replicas } from '../../src/database/standby/replicas.ts';
import { saveOutfits } from '../../src/outfits/writes/bulk.ts';
import { baseOf, failure, listing, runServer, stop } from '../support/cli/process.ts';
import { connectForTest, connectTo } from '../support/databases/connections.ts';
import { startEmbeddedPostgres } from '../support/databases/embedded-postgres.js';
import { databaseKinds, openGateway, outfitId } from '../support/gateway.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const rows = [...generateOutfits({ outfits: 45, users: 9 })];
const [{ id, userId } = { id: 0, userId: 0 }] = rows;
const document = `{ outfit(databaseId: ${id}) { likes } outfits { results { id: databaseId likes } } }`;

/** For what takes a moment, also on a machine that does other things. */
const pollOptions = { timeout: 20_000 };

type Postgres = Awaited<ReturnType<typeof startEmbeddedPostgres>>;
let primary: Postgres;
let standby: Awaited<ReturnType<Postgres['addStandby']>>;
let outside: pg.Client;
let inside: pg.Client;

beforeAll(async () => {
  primary = await startEmbeddedPostgres();
  const database = await openDatabase(readConfig({ DATABASE_URL: primary.url }));
  await migrate(database.pool, () => {});
  await saveOutfits(database.pool, rows);
  await database.close();
  standby = await primary.addStandby();
  outside = await connectTo(primary.url);
});
afterAll(async () => {
  await outside.end();
  await standby.close();
  await primary.close();
});
beforeEach(async () => {
  inside = await connectForTest(standby.url);
});

interface Opened {
  readonly app: FastifyInstance;
  readonly replicas: Replicas;
  /** What has been said of the standby. */
  readonly told: (string | undefined)[];
  /** Queries that the standby has answered. */
  reads(): number;
}

async function open(environment: Record<string, string> = {}): Promise<Opened> {
  const urls = { DATABASE_URL: primary.url, DATABASE_READ_URLS: standby.url };
  const config = readConfig({ ...urls, AUTH_JWT_SECRET: secret, ...environment });
  const database = await openDatabase(config, 10_000);
  const told: (string | undefined)[] = [];
  const replicas = new Replicas(config, database, 10_000, ({ problem }) => told.push(problem));
  await replicas.start(true);
  const app = await buildApp(config, database, { replicas });
  onTestFinished(async () => {
    await app.close();
    await replicas.close();
    await database.close();
  });
  return { app, replicas, told, reads: () => [...replicas.reads.values()].reduce((a, b) => a + b) };
}

async function ask({ app }: Opened, query = document, headers = {}) {
  const response = await app.inject({
    method: 'POST',
    url: '/graphql',
    headers,
    payload: { query },
  });
  expect(response.statusCode).toBe(200);
  return response.json().data;
}

/** Writes beside the gateway, and expects that to be read at once. */
async function seeWrite(opened: Opened): Promise<void> {
  const written = await outside.query<{ likes: number }>(
    `UPDATE outfit_like_counts SET likes = likes + 1 WHERE id = ${id} RETURNING likes`,
  );
  expect((await ask(opened)).outfit.likes).toBe(written.rows[0]?.likes);
}

/** Until a write has been read from the standby. */
async function untilRead(opened: Opened): Promise<void> {
  const before = opened.reads();
  const readNext = async () => {
    await seeWrite(opened);
    return opened.reads();
  };
  await expect.poll(readNext, pollOptions).toBeGreaterThan(before);
}

/** Until the test has ended: the standby holds this lock too, and reads wait there. */
async function lockOutfits(): Promise<void> {
  await outside.query('BEGIN');
  onTestFinished(async () => {
    await outside.query('ROLLBACK');
  });
  await outside.query('LOCK TABLE outfits IN ACCESS EXCLUSIVE MODE');
  // Or else the lock is sent when something is committed.
  await outside.query('CHECKPOINT');
  const locks = `SELECT FROM pg_locks WHERE relation = 'outfits'::regclass AND mode = 'AccessExclusiveLock'`;
  await expect.poll(async () => (await inside.query(locks)).rowCount, pollOptions).toBe(1);
}

describe.each(['64MiB', '0'])('with CACHE_MAX_SIZE=%s', (CACHE_MAX_SIZE) => {
  test('the standby answers queries, and a writer reads its own write at once', async () => {
    const opened = await open({ CACHE_MAX_SIZE });
    await untilRead(opened);
    const headers = await signIn(userId);
    const own = `{ outfit(databaseId: ${id}) { likes viewerHasLiked } }`;
    for (let round = 0; round < 20; round++) {
      const field = round % 2 === 0 ? 'likeOutfit' : 'unlikeOutfit';
      const mutation = `mutation { ${field}(id: "${outfitId(id)}") { outfit { likes } } }`;
      const { likes } = (await ask(opened, mutation, headers))[field].outfit;
      const viewerHasLiked = round % 2 === 0;
      expect((await ask(opened, own, headers)).outfit).toEqual({ likes, viewerHasLiked });
      expect((await ask(opened)).outfit.likes).toBe(likes);
    }
    await untilRead(opened);
  });

  test('while it does not replay, the primary answers, and nothing is stale', async () => {
    const opened = await open({ CACHE_MAX_SIZE });
    await inside.query('SELECT pg_wal_replay_pause()');
    const { behind } = opened.replicas.primaryReads;
    for (let round = 0; round < 10; round++) await seeWrite(opened);
    expect(opened.replicas.primaryReads.behind).toBeGreaterThan(behind);
    await inside.query('SELECT pg_wal_replay_resume()');
    await untilRead(opened);
  });
});

test('a list that was too expensive for the standby is not read once more from the primary', async () => {
  const opened = await open({ EXPENSIVE_QUERY_TIMEOUT: '1s', CACHE_MAX_SIZE: '0' });
  await untilRead(opened);
  const { failed } = opened.replicas.primaryReads;
  await lockOutfits();
  const query = '{ outfits(filter: { hasVideo: true }) { count } }';
  const answer = await opened.app.inject({ method: 'POST', url: '/graphql', payload: { query } });
  expect(answer.json().errors[0].extensions.code).toBe('TIMEOUT');
  expect(opened.replicas.primaryReads.failed).toBe(failed);
});

test.each(['pg_cancel_backend', 'pg_terminate_backend'])(
  'a read that the standby ends by %s is answered by the primary',
  async (end) => {
    const opened = await open();
    await untilRead(opened);
    await lockOutfits();
    const asked = ask(opened, `{ outfits(page: 2) { results { likes } } }`);
    const endWaiting = async () => {
      const { rowCount } = await inside.query(
        `SELECT ${end}(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'`,
      );
      return rowCount;
    };
    await expect.poll(endWaiting, pollOptions).toBe(1);
    await expect.poll(() => opened.replicas.primaryReads.failed, pollOptions).toBe(1);
    await outside.query('ROLLBACK');
    expect((await asked).outfits.results).toHaveLength(20);
    await untilRead(opened);
  },
);

test.each([
  ['is stopped', () => standby.stop(), () => standby.start()],
  ['crashes', () => standby.crash(), () => standby.start()],
  ['is frozen', () => standby.freeze(), () => standby.thaw()],
] as const)(
  'a standby that %s is left out, and used again when it is back',
  async (_, begin, end) => {
    const opened = await open();
    await untilRead(opened);
    await begin();
    for (let round = 0; round < 5; round++) await seeWrite(opened);
    await expect.poll(() => opened.told.at(-1), pollOptions).toMatch(/^cannot be read from/);
    await seeWrite(opened);
    await end();
    await untilRead(opened);
    expect(opened.told.at(-1)).toBeUndefined();
  },
);

describe('at start', () => {
  const start = (urls: string) =>
    runServer({ DATABASE_URL: primary.url, DATABASE_READ_URLS: urls, METRICS_PORT: '0' });

  test('the log and the metrics say what is read from', async () => {
    const server = start(`${standby.url}, ${primary.url}`);
    const base = await baseOf(server);
    const [, metrics = ''] = await server.until(/Metrics: +(http:[^\s"]+)/);
    expect(server.output()).toMatch(/reading from the standby PostgreSQL database postgres on 127/);
    expect(server.output()).toMatch(/is no standby, or not any more: it is not read from/);
    expect(server.output()).not.toContain('postgres:postgres');
    const readNext = async () => {
      await outside.query(`UPDATE outfit_like_counts SET likes = likes + 1 WHERE id = ${id}`);
      await listing(base);
      return (await fetch(metrics)).text();
    };
    const read = `gateway_standby_reads_total{standby="127.0.0.1:${standby.port}"}`;
    await expect.poll(readNext, pollOptions).toMatch(new RegExp(`^${read} [1-9]`, 'm'));
    const text = await readNext();
    expect(text).toContain(`gateway_standby_used{standby="127.0.0.1:${standby.port}"} 1`);
    expect(text).toContain(`gateway_standby_used{standby="127.0.0.1:${primary.port}"} 0`);
    expect(await stop(server)).toBe(0);
  });

  test('a server of other data is refused with a sentence', async () => {
    expect(await failure(start(inject('postgresUrl')))).toMatch(
      /^The standby PostgreSQL database .* belongs to another primary server than DATABASE_URL: correct DATABASE_READ_URLS\.$/,
    );
  });

  test('the gateway does not wait for a standby that is away', async () => {
    const server = start('postgresql://127.0.0.1:1/outfits');
    expect((await listing(await baseOf(server))).count).toBe(rows.length);
    expect(server.output()).toMatch(
      /cannot be read from \(.*ECONNREFUSED.*\): it is not read from/,
    );
  });
});

describe.each(databaseKinds)('READ_MAX_STALENESS on %s', (kind) => {
  test('gives what was shown a while ago, but not to a viewer', async () => {
    const environment = { READ_MAX_STALENESS: '600000ms', AUTH_JWT_SECRET: secret };
    const { app, database, close } = await openGateway(kind, rows, environment);
    onTestFinished(close);
    const headers = await signIn(userId);
    const read = async (by = {}) => (await app.inject({ url: '/api/outfits/', headers: by })).body;
    const first = await read();
    await database.pool.query('UPDATE outfit_like_counts SET likes = likes + 1');
    expect(await read()).toBe(first);
    const second = await read(headers);
    expect(second).not.toBe(first);
    expect(await read()).toBe(second);
  });

  test('ends', async () => {
    const { app, database, close } = await openGateway(kind, rows, { READ_MAX_STALENESS: '50ms' });
    onTestFinished(close);
    const read = async () => (await app.inject('/api/outfits/')).body;
    const first = await read();
    await database.pool.query('UPDATE outfit_like_counts SET likes = likes + 1');
    await expect.poll(read, pollOptions).not.toBe(first);
  });
});

test('with READ_MAX_STALENESS, a standby may lack what a viewer is told', async () => {
  const opened = await open({ READ_MAX_STALENESS: '600000ms' });
  let turn = 0;
  const readNext = async () => {
    await ask(opened, `{ a${turn++}: outfits { count } }`);
    return opened.reads();
  };
  await expect.poll(readNext, pollOptions).toBe(1);
  await inside.query('SELECT pg_wal_replay_pause()');
  onTestFinished(async () => {
    await inside.query('SELECT pg_wal_replay_resume()');
  });
  const { rows: written } = await outside.query(
    `UPDATE outfit_like_counts SET likes = likes + 1 WHERE id = ${id} RETURNING likes`,
  );
  const reads = opened.reads();
  const query = `{ outfit(databaseId: ${id}) { likes id } }`;
  expect((await ask(opened, query)).outfit.likes).toBe(written[0].likes - 1);
  expect(opened.reads()).toBe(reads + 1);
  expect((await ask(opened, query, await signIn(userId))).outfit.likes).toBe(written[0].likes);
});

// The last one: the standby is none any more.
test('a standby that is promoted is not read from', async () => {
  const opened = await open();
  await untilRead(opened);
  await inside.query('SELECT pg_promote()');
  await inside.query(`UPDATE outfit_like_counts SET likes = 7 WHERE id = ${id}`);
  for (let round = 0; round < 10; round++) await seeWrite(opened);
  await expect.poll(() => opened.told.at(-1), pollOptions).toBe('is no standby, or not any more');
  const reads = opened.reads();
  for (let round = 0; round < 10; round++) await seeWrite(opened);
  expect(opened.reads()).toBe(reads);
});
