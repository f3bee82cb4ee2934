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
  vi,
} from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { readConfig } from '../../src/config/config.ts';
import { openDatabase } from '../../src/database/database.ts';
import { Replicas } from '../../src/database/standby/replicas.ts';
import { baseOf, failure, listing, runServer, stop } from '../support/cli/process.ts';
import { connectForTest, connectTo } from '../support/databases/connections.ts';
import { startDemoPostgres, throughPort } from '../support/databases/demo-postgres.ts';
import { buildForTest, databaseKinds, openForTest, outfitId } from '../support/gateway.ts';
import { postGraphql } from '../support/http/graphql.ts';
import { secret, signIn } from '../support/http/tokens.ts';
import { attach, equal, makeOldTables } from '../support/legacy/old-tables.ts';

const [id, userId] = [1, 1];
const document = `{ outfit(databaseId: ${id}) { likes } outfits { results { id: databaseId likes } } }`;

type Postgres = Awaited<ReturnType<typeof startDemoPostgres>>;
let primary: Postgres;
let standby: Awaited<ReturnType<Postgres['addStandby']>>;
let outside: pg.Client;
let inside: pg.Client;

beforeAll(async () => {
  primary = await startDemoPostgres();
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
  onTestFinished(async () => {
    await replicas.close();
    await database.close();
  });
  const app = await buildForTest(config, database, { replicas });
  return {
    app,
    replicas,
    told,
    reads: () => replicas.standbys.reduce((sum, { reads }) => sum + reads, 0),
  };
}

const send = ({ app }: Opened, query: string, headers = {}) => postGraphql(app, { query }, headers);

async function ask(opened: Opened, query = document, headers = {}) {
  const response = await send(opened, query, headers);
  expect(response.statusCode).toBe(200);
  return response.json().data;
}

/** Writes beside the gateway: likes of the outfit. */
async function addLike(): Promise<number> {
  const { rows } = await outside.query(
    `UPDATE outfit_like_counts SET likes = likes + 1 WHERE id = ${id} RETURNING likes`,
  );
  return rows[0].likes;
}

/** Writes beside the gateway, and expects that to be read at once. */
async function seeWrite(opened: Opened): Promise<void> {
  const likes = await addLike();
  expect((await ask(opened)).outfit.likes).toBe(likes);
}

/** Until a write has been read from the standby. */
async function untilRead(opened: Opened): Promise<void> {
  const before = opened.reads();
  const readNext = async () => {
    await seeWrite(opened);
    return opened.reads();
  };
  await expect.poll(readNext).toBeGreaterThan(before);
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
  await expect.poll(async () => (await inside.query(locks)).rowCount).toBe(1);
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

test('what an old service commits in attached tables is in the next read, by the standby too', async () => {
  const { old, environment } = await makeOldTables(primary.url);
  expect(await attach(environment)).toEqual(equal);
  const DATABASE_READ_URLS = throughPort(environment.DATABASE_URL, standby.port);
  const opened = await open({ ...environment, DATABASE_READ_URLS });
  for (let round = 1; opened.reads() < 20; round++) {
    const title = `title ${round}`;
    const likes = round % 20;
    await old.query(
      `BEGIN; UPDATE shop.outfit SET title = '${title}' WHERE id = 1; DELETE FROM shop.likes WHERE outfit_id = 1;
       INSERT INTO shop.likes SELECT 1, id FROM shop.person WHERE id <= ${likes}; COMMIT`,
    );
    const read = await ask(opened, '{ outfit(databaseId: 1) { title likes } }');
    expect(read).toEqual({ outfit: { title, likes } });
  }
});

test('the standby answers at the start of a segment of the log, where a primary reports the place behind its header', async () => {
  const opened = await open({ CACHE_MAX_SIZE: '0' });
  await untilRead(opened);
  const isAtStart = `SELECT FROM pg_current_wal_insert_lsn() place WHERE (place - '0/0') % 1048576 = 40`;
  const readAtStart = async () => {
    const before = opened.reads();
    const likes = await addLike();
    await outside.query('SELECT pg_switch_wal()');
    expect((await ask(opened)).outfit.likes).toBe(likes);
    // Or else something was written meanwhile.
    const { rowCount } = await outside.query(isAtStart);
    return rowCount === 1 && opened.reads() > before;
  };
  await expect.poll(readAtStart).toBe(true);
  const [used] = opened.replicas.standbys;
  const { server = '', timeline = 0, replayed: bytes = 0n } = used?.state ?? {};
  expect(used?.hasReplayed({ server, timeline, bytes })).toBe(true);
  // The log of another promotion has other commits at this place.
  expect(used?.hasReplayed({ server, timeline: timeline + 1, bytes })).toBe(false);
});

test('a list that was too expensive for the standby is not read once more from the primary', async () => {
  const opened = await open({ EXPENSIVE_QUERY_TIMEOUT: '1s', CACHE_MAX_SIZE: '0' });
  await untilRead(opened);
  const { failed } = opened.replicas.primaryReads;
  await lockOutfits();
  const query = '{ outfits(filter: { hasVideo: true }) { count } }';
  const answer = await send(opened, query);
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
    const waiting = `SELECT ${end}(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'`;
    await expect.poll(async () => (await inside.query(waiting)).rowCount).toBe(1);
    await expect.poll(() => opened.replicas.primaryReads.failed).toBe(1);
    await outside.query('ROLLBACK');
    expect((await asked).outfits.results).toHaveLength(20);
    await untilRead(opened);
  },
);

const start = (urls: string) =>
  runServer({ DATABASE_URL: primary.url, DATABASE_READ_URLS: urls, METRICS_PORT: '0' });

test('the log and the metrics say at the start what is read from', async () => {
  const server = start(`${standby.url}, ${primary.url}`);
  const base = await baseOf(server);
  const [, metrics = ''] = await server.until(/Metrics: +(http:[^\s"]+)/);
  expect(server.output()).toMatch(/reading from the standby PostgreSQL database postgres on 127/);
  expect(server.output()).toMatch(/is not a standby, or not any more: it is not read from/);
  expect(server.output()).not.toContain('postgres:postgres');
  const readNext = async () => {
    await addLike();
    await listing(base);
    return (await fetch(metrics)).text();
  };
  const read = `gateway_standby_reads_total{standby="127.0.0.1:${standby.port}"}`;
  await expect.poll(readNext).toMatch(new RegExp(`^${read} [1-9]`, 'm'));
  const text = await readNext();
  expect(text).toContain(`gateway_standby_used{standby="127.0.0.1:${standby.port}"} 1`);
  expect(text).toContain(`gateway_standby_used{standby="127.0.0.1:${primary.port}"} 0`);
  expect(await stop(server)).toBe(0);
});

test('a standby of other data is refused at the start with a sentence', async () => {
  expect(await failure(start(inject('postgresUrl')))).toMatch(
    /^The standby PostgreSQL database .* belongs to another primary server than DATABASE_URL: correct DATABASE_READ_URLS\.$/,
  );
});

test('a start does not wait for a standby that is away', async () => {
  const server = start('postgresql://127.0.0.1:1/outfits');
  expect((await listing(await baseOf(server))).count).toBe(2_400);
  expect(server.output()).toMatch(/cannot be read from \(.*ECONNREFUSED.*\): it is not read from/);
});

test.each(databaseKinds)(
  'READ_MAX_STALENESS gives what was shown a while ago, but not to a viewer, nor for longer: on %s',
  async (kind) => {
    const rows = [...generateOutfits({ outfits: 45, users: 9 })];
    const environment = { READ_MAX_STALENESS: '600s', AUTH_JWT_SECRET: secret };
    const { app, database } = await openForTest(kind, rows, environment);
    const headers = await signIn(rows[0]?.userId ?? 0);
    const read = async (by = {}) => (await app.inject({ url: '/api/outfits/', headers: by })).body;
    const write = () => database.pool.query('UPDATE outfit_like_counts SET likes = likes + 1');
    const first = await read();
    await write();
    expect(await read()).toBe(first);
    const second = await read(headers);
    expect(second).not.toBe(first);
    expect(await read()).toBe(second);
    await write();
    expect(await read()).toBe(second);
    const now = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => now() + 600_000);
    onTestFinished(() => void vi.restoreAllMocks());
    await expect.poll(read).not.toBe(second);
  },
);

test('with READ_MAX_STALENESS, a standby may lack what a viewer is told', async () => {
  const opened = await open({ READ_MAX_STALENESS: '600000ms' });
  let turn = 0;
  const readNext = async () => {
    await ask(opened, `{ a${turn++}: outfits { count } }`);
    return opened.reads();
  };
  await expect.poll(readNext).toBe(1);
  await inside.query('SELECT pg_wal_replay_pause()');
  onTestFinished(async () => {
    await inside.query('SELECT pg_wal_replay_resume()');
  });
  const likes = await addLike();
  const reads = opened.reads();
  const query = `{ outfit(databaseId: ${id}) { likes id } }`;
  expect((await ask(opened, query)).outfit.likes).toBe(likes - 1);
  expect(opened.reads()).toBe(reads + 1);
  expect((await ask(opened, query, await signIn(userId))).outfit.likes).toBe(likes);
});

// The last one: the standby is none any more.
test('a standby that is promoted is not read from', async () => {
  const opened = await open();
  await untilRead(opened);
  await inside.query('SELECT pg_promote()');
  await inside.query(`UPDATE outfit_like_counts SET likes = 7 WHERE id = ${id}`);
  for (let round = 0; round < 10; round++) await seeWrite(opened);
  await expect.poll(() => opened.told.at(-1)).toBe('is not a standby, or not any more');
  const reads = opened.reads();
  for (let round = 0; round < 10; round++) await seeWrite(opened);
  expect(opened.reads()).toBe(reads);
});

test('a standby of another database of that server is not read from', async () => {
  const url = new URL('/template1', standby.url);
  const opened = await open({ DATABASE_READ_URLS: url.href });
  expect(opened.replicas.standbys[0]?.problem).toBe(
    'is not of the database that DATABASE_URL names',
  );
  await seeWrite(opened);
  expect(opened.reads()).toBe(0);
});
