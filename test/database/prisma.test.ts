// Prisma's client on the connections of the gateway: what it sends, and where; what invalidates what it has read.
import pg from 'pg';
import { expect, inject, onTestFinished, test, vi } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { readConfig } from '../../src/config/config.ts';
import { openDatabase } from '../../src/database/database.ts';
import { sqlStateOf } from '../../src/database/errors.ts';
import { dependenciesOf } from '../../src/database/prisma/dependencies.ts';
import { saveOutfits } from '../../src/outfits/writes/bulk.ts';
import { connectForTest, execute } from '../support/databases/connections.ts';
import { isSnapshot, statementsOf, textOf } from '../support/databases/statements.ts';
import { makeDatabase, migrateDatabase } from '../support/databases/test-database.ts';
import { countBlocked } from '../support/faults/clients.ts';
import { buildForTest, openForTest, outfitId, useGateway, userId } from '../support/gateway.ts';
import { extend } from '../support/graphql/schema-extension.ts';
import { postGraphql } from '../support/http/graphql.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const rows = [...generateOutfits({ outfits: 40, users: 5 })].map((row) => ({
  ...row,
  private: false,
}));
const [first, second] = rows as [(typeof rows)[0], (typeof rows)[0]];
const stranger = rows.find(({ userId }) => userId !== first.userId) ?? expect.fail();

test.each([
  ['of its own', 'ours', 'ours'],
  ['behind an empty one', 'ours', 'nothing, ours'],
  ['whose name must be quoted', '"Our ""own"" tables"', '"Our ""own"" tables"'],
])(
  'reads users in a schema %s, not those of another program in public',
  async (_name, schema, path) => {
    const { environment, name, remove } = await makeDatabase(inject('postgresUrl'));
    onTestFinished(remove);
    const { DATABASE_URL = '' } = environment;
    await execute(
      DATABASE_URL,
      `CREATE SCHEMA nothing; CREATE SCHEMA ${schema};
     CREATE TABLE public.users (id int PRIMARY KEY, avatar_key text, username text, first_name text, last_name text);
     INSERT INTO public.users SELECT id, '', 'decoy', '', '' FROM generate_series(1, 100) AS id;
     ALTER DATABASE ${name} SET search_path = ${schema}, public`,
    );
    await migrateDatabase(environment, (pool) => saveOutfits(pool, rows));
    await execute(DATABASE_URL, `ALTER DATABASE ${name} SET search_path = ${path}, public`);
    const config = readConfig(environment);
    const database = await openDatabase(config);
    onTestFinished(() => database.close());
    const app = await buildForTest(config, database);
    const { id, username } = first.user;
    const query = `{ number: user(databaseId: ${id}) { username } name: user(username: "${username}") { username } decoy: user(username: "decoy") { id } }`;
    const response = await postGraphql(app, { query });
    expect(response.json()).toEqual({
      data: { number: { username }, name: { username }, decoy: null },
    });
  },
);

const gateway = useGateway('PostgreSQL', rows, { AUTH_JWT_SECRET: secret, CACHE_MAX_SIZE: '0' });
const user = userId(first.userId);
const other = userId(stranger.userId);
const named = (id: number) => `id: "${outfitId(id)}"`;

test.each<[string, readonly RegExp[]]>([
  [`{ user(databaseId: ${first.userId}) { username } }`, [/^SELECT .*"users"/]],
  ['{ user(username: "nobody") { username } }', [/^SELECT .*"users".*"username" = .* LIMIT/]],
  ['{ viewer { user { username } } }', [/^SELECT .*"users"/]],
  [
    `{ nodes(ids: ["${user}", "${other}", "${user}"]) { ... on User { username } } }`,
    [/^SELECT .*"users".* IN \(\$1,\$2/],
  ],
  [
    `{ a: user(databaseId: ${first.userId}) { username } b: user(databaseId: ${stranger.userId}) { username } }`,
    [/^SELECT .*"users".* IN \(\$1,\$2\)/],
  ],
  [
    '{ outfits { results { viewerHasLiked user { username } } } }',
    [/outfits_by|FROM/, /^SELECT .*"outfit_likes".* IN \(\$2,/],
  ],
  [
    `mutation { updateOutfit(${named(first.id)}, input: { title: "New" }) { outfit { title likes user { username } } } }`,
    // Its likes and owner are read while Prisma updates it.
    [/FROM users u LEFT JOIN/, /^UPDATE .*"id" = \$\d+ AND .*"user_id" = \$\d+\) RETURNING/],
  ],
  [
    `mutation { updateOutfit(${named(stranger.id)}, input: { title: "New" }) { outfit { title } } }`,
    [/FROM users u LEFT JOIN/, /^UPDATE/, /FROM outfits s/],
  ],
  [
    `mutation { deleteOutfit(${named(stranger.id)}) { deletedOutfitId } }`,
    [/^DELETE/, /FROM outfits s/],
  ],
  [
    `mutation { deleteOutfit(${named(first.id)}) { deletedOutfitId } }`,
    [/^DELETE .*"id" = \$1 AND .*"user_id" = \$2\) RETURNING/],
  ],
])('Prisma sends for %s these statements, without a transaction', async (query, expected) => {
  const headers = await signIn(first.userId);
  // As often as it takes to know that the answer depends on the viewer.
  await gateway.post(
    '{ viewer { user { id } } outfits { results { viewerHasLiked } } }',
    {},
    headers,
  );
  if (query.startsWith('{')) await gateway.post(query, {}, headers);
  const sent = vi.spyOn(pg.Client.prototype, 'query');
  onTestFinished(() => sent.mockRestore());
  await gateway.post(query, {}, headers);
  const texts = sent.mock.calls
    .map(([statement]) => textOf(statement).trim().replaceAll(/\s+/g, ' '))
    .filter((text) => !isSnapshot(text) && !/^SET |outfit_counts_state|pg_control/.test(text));
  expect(texts).toEqual(expected.map((text) => expect.stringMatching(text)));
});

test('executions of one tick read from their own sources, and a mutation writes to the primary', async () => {
  const sources: string[][] = [];
  const readAt = () => {
    const sent: string[] = [];
    sources.push(sent);
    const send = (statement: pg.QueryConfig) => {
      sent.push(statement.text);
      return gateway.database.pool.query(statement);
    };
    return { query: send, queryInLane: send };
  };
  const gateway = await openForTest('PostgreSQL', rows, { AUTH_JWT_SECRET: secret }, {
    replicas: { readAt, standbys: [] },
  } as unknown as Parameters<typeof openForTest>[3]);
  const ids = [...new Set(rows.map(({ userId }) => userId))];
  const answers = await Promise.all(
    ids.map((id) => gateway.post(`{ user(databaseId: ${id}) { databaseId } }`)),
  );
  expect(answers.map(({ data }) => data)).toEqual(
    ids.map((databaseId) => ({ user: { databaseId } })),
  );
  expect(sources).toHaveLength(ids.length);
  for (const sent of sources) expect(sent).toEqual([expect.stringMatching(/^SELECT .*"users"/)]);
  sources.length = 0;
  const document = `mutation { deleteOutfit(id: "${outfitId(first.id)}") { deletedOutfitId } }`;
  expect(await gateway.post(document, {}, await signIn(first.userId))).not.toHaveProperty('errors');
  expect(sources).toEqual([]);
});

test.each([
  ['in a table that is missing', 'ALTER TABLE users RENAME TO others', ''],
  ['by the limit of the request', 'BEGIN; LOCK TABLE users', ''],
  ['by an operator who cancels it', 'BEGIN; LOCK TABLE users', 'pg_cancel_backend'],
  ['by an operator who ends its connection', 'BEGIN; LOCK TABLE users', 'pg_terminate_backend'],
])(
  'a statement of Prisma that fails %s is a 503, and leaves nothing running',
  async (_how, before, end) => {
    const gateway = await openForTest('PostgreSQL', rows, { REQUEST_TIMEOUT: end ? '30s' : '1s' });
    const client = await connectForTest(gateway.config.databaseUrl);
    await gateway.post('{ user(username: "a") { id } }');
    await client.query(before);
    const query = `{ user(databaseId: ${first.userId}) { username } }`;
    const answer = postGraphql(gateway.app, { query });
    const waiting = async () => {
      const found = await execute(
        gateway.config.databaseUrl ?? '',
        `SELECT pid FROM pg_locks WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
      );
      return found.rows.map(({ pid }) => pid);
    };
    if (end) {
      await expect.poll(waiting).toHaveLength(1);
      await client.query(`SELECT ${end}(${await waiting()})`);
    }
    expect((await answer).statusCode).toBe(503);
    await expect.poll(waiting).toEqual([]);
  },
);

test('a statement of Prisma that fails in a deadlock is sent again', async () => {
  const gateway = await openForTest('PostgreSQL', rows, { AUTH_JWT_SECRET: secret });
  const client = await connectForTest(gateway.config.databaseUrl);
  await client.query(`SET deadlock_timeout = '1min'; BEGIN`);
  await client.query(`UPDATE outfit_like_counts SET likes = likes + 1 WHERE id = ${second.id}`);
  const document = `mutation { updateOutfit(id: "${outfitId(second.id)}", input: { private: true }) { outfit { private } } }`;
  const answer = gateway.post(document, {}, await signIn(second.userId));
  await expect.poll(() => countBlocked(client)).toBeGreaterThan(0);
  await client.query(`UPDATE outfits SET quality = 5 WHERE id = ${second.id}`);
  await client.query('COMMIT');
  expect(await answer).toEqual({ data: { updateOutfit: { outfit: { private: true } } } });
});

test('a plan that is stale fails one transaction of each connection, which is closed', async () => {
  const { config, database } = await openForTest('PostgreSQL', rows);
  const url = config.databaseUrl ?? '';
  await execute(url, 'CREATE TABLE changing AS SELECT 1 AS value');
  const connectTwo = () => Promise.all([database.pool.connect(), database.pool.connect()]);
  /** Reads on both connections, each in a transaction of its own, as a caller does that knows of no plans. */
  const readOnTwo = async () => {
    const reading = (await connectTwo()).map(async (client) => {
      try {
        await client.query('BEGIN');
        return await client
          .query({ name: 'changing', text: 'SELECT * FROM changing' })
          .then(({ rows: [found] }) => found?.value, sqlStateOf);
      } finally {
        await client.query('ROLLBACK');
        client.release();
      }
    });
    return Promise.all(reading);
  };
  expect(await readOnTwo()).toEqual([1, 1]);
  await execute(url, 'ALTER TABLE changing ALTER COLUMN value TYPE text');
  expect(await readOnTwo()).toEqual(['0A000', '0A000']);
  expect(await readOnTwo()).toEqual(['1', '1']);
});

test('an answer that was read through Prisma is invalidated by what it read, and by nothing else', async () => {
  const schema = extend(
    'extend type Query { byKey: String, ownerByKey: String, ofOwner: String, byName: Int, raw: Int }',
    {
      'Query.byKey': async (_root, _args, { prisma }) =>
        (await prisma.user.findUnique({ where: { id: first.userId } }))?.username,
      'Query.ownerByKey': async (_root, _args, { prisma }) => {
        const found = { where: { id: first.id }, include: { user: true } };
        return (await prisma.outfit.findUnique(found))?.user.username;
      },
      'Query.ofOwner': async (_root, _args, { prisma }) =>
        (await prisma.outfit.findUnique({ where: { id: first.id } }).user())?.username,
      'Query.byName': async (_root, _args, { prisma }) =>
        prisma.user.count({ where: { username: { contains: 'x' } } }),
      'Query.raw': async (_root, _args, { prisma }) =>
        (await prisma.$queryRaw<object[]>`SELECT 1`).length,
    },
  );
  const gateway = await openForTest('embedded', rows, {}, { schema });
  const fields = ['byKey', 'ownerByKey', 'ofOwner', 'byName', 'raw'];
  const readAgain = async () => {
    const read: string[] = [];
    for (const field of fields) {
      const sent = await statementsOf(gateway, () => gateway.post(`{ ${field} }`));
      if (sent.length > 0) read.push(field);
    }
    return read;
  };
  await readAgain();
  expect(await readAgain()).toEqual([]);
  for (const [statement, invalidated] of [
    [`UPDATE users SET last_name = 'New' WHERE id = ${first.userId}`, fields],
    [
      `UPDATE users SET last_name = 'New' WHERE id = ${stranger.userId}`,
      ['ofOwner', 'byName', 'raw'],
    ],
    [`UPDATE outfits SET title = 'New' WHERE id = ${first.id}`, ['ownerByKey', 'ofOwner', 'raw']],
  ] as const) {
    await gateway.database.pool.query(statement);
    expect(await readAgain()).toEqual(invalidated);
  }
});

const outfit = { id: 5, userId: 7, title: 'x' };
const by = (where: object, more: object = {}) => ({ where, ...more });
const ofName = { user: { select: { username: true } } };
const unliked = { outfits: { none: { likedBy: { some: {} } } } };
// Keys that are texts: another spelling may be the same key.
const key = { userId_key: { userId: 7, key: 'x' } };
const countsOf = (count: unknown) => ({ _count: count });
test.each<[string, object | undefined, unknown, dependencies: string]>([
  ['User.findUnique', by({ id: 7 }), null, 'users 7'],
  ['User.findUnique', by({ id: 7, outfits: { some: {} } }), null, 'users 7, outfits'],
  ['User.findMany', by({ id: { in: [7, 8] } }), [], 'users 7 8'],
  ['User.findMany', by({ id: { gt: 7 } }), [], 'users'],
  ['User.findMany', by({ OR: [{ id: 7 }] }), [], 'users'],
  ['User.findMany', undefined, [], 'users'],
  ['User.findFirst', by({ username: 'x' }), null, 'users'],
  ['User.findMany', { orderBy: { outfits: countsOf('asc') } }, [], 'outfits, users'],
  ['User.count', by(unliked), 1, 'outfit_likes, outfits, users'],
  [
    'User.findUnique',
    by({ id: 7 }, { include: { outfits: true } }),
    { id: 7, outfits: [outfit] },
    'users 7, outfits',
  ],
  [
    'User.findUnique',
    by({ id: 7 }, { include: countsOf(true) }),
    { id: 7 },
    'users 7, idempotency_keys, outfit_likes, outfits',
  ],
  [
    'User.findUnique',
    by({ id: 7 }, { select: countsOf({ select: { likes: true } }) }),
    {},
    'users 7, outfit_likes',
  ],
  [
    'Outfit.findUnique',
    by({ id: 5 }, { include: { user: true } }),
    { ...outfit, user: { id: 7 } },
    'outfits 5, users 7',
  ],
  [
    'Outfit.findUnique',
    by({ id: 5 }, { include: { user: { where: { id: 8 } } } }),
    { ...outfit, user: null },
    'outfits 5, users',
  ],
  ['Outfit.findUnique', by({ id: 5 }, { select: ofName }), { user: {} }, 'outfits 5, users'],
  [
    'Outfit.findMany',
    { include: { user: { include: { likes: true } } } },
    [{ ...outfit, user: { id: 7, likes: [] } }],
    'users 7, outfit_likes, outfits',
  ],
  [
    'OutfitLike.findUnique',
    by({ outfitId_userId: { outfitId: 5, userId: 7 } }),
    null,
    'outfit_likes "5,7"',
  ],
  ['OutfitLike.findFirst', by({ userId: 7 }), null, 'outfit_likes'],
  ['IdempotencyKey.findUnique', by(key), null, 'idempotency_keys'],
])('%s(%j), which returns %j, depends on %s', (name, args, result, dependencies) => {
  const [model, operation = ''] = name.split('.');
  const { rows = {}, tables = [] } = dependenciesOf(model, operation, args, result) ?? {};
  const keys = Object.entries(rows).map(([table, ids]) =>
    [table, ...[...ids].map((id) => JSON.stringify(id))].join(' '),
  );
  expect([...keys, ...[...tables].toSorted()].join(', ')).toBe(dependencies);
});

test.each([
  ['User', 'update'],
  ['User', 'upsert'],
  [undefined, '$queryRaw'],
])('%s.%s depends on every commit', (model, operation) => {
  expect(dependenciesOf(model, operation, { where: { id: 1 } }, {})).toBeUndefined();
});
