// Count and any page from the bucket counts, against count(*) and ORDER BY ... OFFSET.
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as countsCommand from '../../src/commands/counts.ts';
import { countStatement, pageStatement, type Scope } from '../../src/outfits/lists/statements.ts';
import { callCommand } from '../support/cli/commands.ts';
import { connectTo, databaseUrlOf } from '../support/databases/connections.ts';
import { applyAll, setBucketSize, tooLarge } from '../support/databases/small-buckets.ts';
import { openGateway, type TestGateway } from '../support/gateway.ts';
import { type Random, randomOf } from '../support/models/dice.ts';

/** Statements of the storm; more by hand: STORM=100000 and --testTimeout. */
const stormSize = Number(process.env['STORM'] ?? 1_500);
/** Another one makes other writes. */
const seed = Number(process.env['SEED'] ?? 100);

const fields = ['created', 'id', 'likes', 'modified'] as const;
const users = 20;
const columns = 'id, image_key, image_original_key, user_id, private, created, modified, title';
/** The outfits as a list shows them. One without its row of likes would be in none by likes. */
const outfits = '(SELECT o.*, l.likes FROM outfits o LEFT JOIN outfit_like_counts l USING (id)) o';

/** So small that buckets are cut, merged and grouped all the time. */
const bucketSize = 8;

/** What statements are sent to: a connection, or a pool. */
type Queryable = Pick<pg.Client, 'query'>;

/** One of `choices`, each as likely as its weight says. */
function pick<Choice>(random: Random, choices: readonly (readonly [number, Choice])[]): Choice {
  let left = random(choices.reduce((sum, [weight]) => sum + weight, 0));
  for (const [weight, choice] of choices) {
    left -= weight;
    if (left < 0) return choice;
  }
  throw new Error('There is nothing to pick from.');
}

// Random values: dense, spread out, and at the ends of what the columns hold.

const drawId = (random: Random): number =>
  pick(random, [
    [85, 1 + random(6000)],
    [9, -1 - random(3000)],
    [3, 2_147_483_600 + random(48)],
    [3, -2_147_483_648 + random(48)],
  ]);

const drawLikes = (random: Random): number =>
  pick(random, [
    [50, random(12)],
    [30, random(400)],
    [12, random(70_000)],
    [5, 2_147_483_647 - random(3)],
    [3, -1 - random(3)],
  ]);

const drawMoment = (random: Random): bigint =>
  pick(random, [
    [45, 1_700_000_000_000_000n + BigInt(random(1_000_000)) * 61_000_000n],
    [20, 1_700_000_000_000_000n + BigInt(random(3))],
    [15, 1_700_000_000_000_000n + BigInt(random(10_000_000_000))],
    [10, -BigInt(random(2 ** 50))],
    [4, 2n ** 62n + BigInt(random(100)) - 50n],
    [4, -(2n ** 62n) + BigInt(random(100)) - 50n],
    [2, random(2) ? 2n ** 63n - 1n : -(2n ** 63n)],
  ]);

/** A user that none of the writes takes away. */
const drawUser = (random: Random): number => 1 + random(users - 1);

function drawRow(
  random: Random,
  id: number | string = drawId(random),
  user = drawUser(random),
): string {
  return `(${id}, 'k', 'k', ${user}, ${random(3) === 0}, ${drawMoment(random)}, ${drawMoment(random)}, '')`;
}

/** Sorted, so that two statements at the same time never wait for each other's rows. */
function drawIds(random: Random, most: number): number[] {
  const ids = new Set(Array.from({ length: 1 + random(most) }, () => drawId(random)));
  return [...ids].sort((a, b) => a - b);
}

function drawRows(random: Random, most: number, user?: number): string {
  return drawIds(random, most)
    .map((id) => drawRow(random, id, user))
    .join(', ');
}

/** Outfits with their likes, old and new ones, in one statement, as an import writes them. */
function drawImport(random: Random, most: number): string {
  const ids = drawIds(random, most);
  const rows = ids.map((id) => drawRow(random, id)).join(', ');
  const likes = ids.map((id) => `(${id}, ${drawLikes(random)})`).join(', ');
  return `WITH given (${columns}) AS (VALUES ${rows}), outfit AS (
      INSERT INTO outfits AS old (${columns}) SELECT * FROM given ORDER BY id
      ON CONFLICT (id) DO UPDATE SET user_id = excluded.user_id, private = excluded.private, created = excluded.created
      WHERE (old.user_id, old.private, old.created) <> (excluded.user_id, excluded.private, excluded.created) RETURNING 1
    )
    INSERT INTO outfit_like_counts AS old (id, private, user_id, likes)
    SELECT n.id, n.private, n.user_id, l.likes
    FROM (SELECT count(*) FROM outfit) written
    CROSS JOIN given n JOIN (VALUES ${likes}) l (id, likes) USING (id)
    ORDER BY n.id
    ON CONFLICT (id) DO UPDATE SET likes = excluded.likes WHERE old.likes <> excluded.likes`;
}

const anyOutfit = (random: Random) =>
  `id = (SELECT id FROM outfits WHERE id >= ${drawId(random)} ORDER BY id LIMIT 1)`;

/** A few hundred neighbours at most, locked in the order of ids, for the same reason. */
const anyRange = (random: Random, width: number, table = 'outfits') => {
  const low = 1 + random(6000);
  return `id IN (SELECT id FROM ${table} WHERE id BETWEEN ${low} AND ${low + random(width)} ORDER BY id FOR UPDATE)`;
};

const someLikes = (random: Random, width: number) => anyRange(random, width, 'outfit_like_counts');

/** Writes of one kind: one statement that fires the triggers of one command. */
const plainWrites: readonly (readonly [number, (random: Random) => string])[] = [
  [18, (random) => `INSERT INTO outfits (${columns}) VALUES ${drawRow(random)} ON CONFLICT DO NOTHING`],
  [2, (random) => `INSERT INTO outfits (${columns}) VALUES ${drawRow(random, 'DEFAULT')} ON CONFLICT DO NOTHING`],
  [5, (random) => `INSERT INTO outfits (${columns}) VALUES ${drawRows(random, 6)} ON CONFLICT DO NOTHING`],
  [16, (random) => `DELETE FROM outfits WHERE ${anyOutfit(random)}`],
  [10, (random) => `UPDATE outfit_like_counts SET likes = likes + 1 WHERE ${anyOutfit(random)} AND likes < 2147483647`],
  [10, (random) => `SELECT FROM like_outfit((SELECT id FROM outfits WHERE ${anyOutfit(random)}), ${drawUser(random)}, ${random(3) > 0}, ${random(2) > 0})`],
  [8, (random) => `UPDATE outfit_like_counts SET likes = greatest(likes - ${1 + random(5)}, 0) WHERE ${anyOutfit(random)} AND likes > 0`],
  [6, (random) => `UPDATE outfit_like_counts SET likes = ${drawLikes(random)} WHERE ${anyOutfit(random)}`],
  [2, (random) => `UPDATE outfit_like_counts SET likes = likes WHERE ${anyOutfit(random)}`],
  [8, (random) => `UPDATE outfits SET private = NOT private WHERE ${anyOutfit(random)}`],
  [4, (random) => `UPDATE outfits SET user_id = ${drawUser(random)} WHERE ${anyOutfit(random)}`],
  [5, (random) => `UPDATE outfits SET created = ${drawMoment(random)} WHERE ${anyOutfit(random)}`],
  [5, (random) => `UPDATE outfits SET modified = ${drawMoment(random)}, title = 'edited' WHERE ${anyOutfit(random)}`],
  [2, (random) => `UPDATE outfits SET title = 'the same place' WHERE ${anyOutfit(random)}`],
  [1, (random) => `UPDATE outfits SET private = id % 3 = ${random(3)} WHERE ${anyRange(random, 40)}`],
  [1, (random) => `UPDATE outfits SET modified = modified / 2 + created / 2 WHERE ${anyRange(random, 40)}`],
  [1, (random) => `DELETE FROM outfits WHERE ${anyRange(random, 8)}`],
  [1, (random) => drawImport(random, 6)],
]; // biome-ignore format: one write, one line

/**
 * Writes that fire the triggers of several commands, that may break the primary key, that reach outfits by another
 * way than a statement on them, or that lock several rows of likes and not their outfits: an UPDATE of several outfits
 * locks those rows too, in the order of its plan, so the two may deadlock as any two of several rows.
 */
const compoundWrites: readonly (readonly [number, (random: Random) => string])[] = [
  [2, (random) => `UPDATE outfit_like_counts SET likes = likes + 1 WHERE ${someLikes(random, 40)} AND likes < 2147483647`],
  [1, (random) => `UPDATE outfit_like_counts SET likes = id % ${1 + random(9)} WHERE ${someLikes(random, 300)}`],
  [4, (random) => `INSERT INTO outfits (${columns}) VALUES ${drawRows(random, 5)} ON CONFLICT (id) DO UPDATE SET user_id = excluded.user_id, private = excluded.private, modified = excluded.modified`],
  [4, (random) => `UPDATE outfits o SET id = n FROM (VALUES (${drawId(random)})) given (n) WHERE ${anyOutfit(random)} AND NOT EXISTS (SELECT FROM outfits WHERE id = n)`],
  [1, (random) => `INSERT INTO outfits (${columns}) SELECT id + 6000, 'k', 'k', user_id, NOT private, modified, created, '' FROM outfits WHERE ${anyRange(random, 12)} ON CONFLICT DO NOTHING`],
  [1, (random) => `WITH gone AS (DELETE FROM outfits WHERE ${anyRange(random, 4)} RETURNING *) INSERT INTO outfits (${columns}) SELECT -id - ${random(9)}, image_key, image_original_key, user_id, private, created, modified, title FROM gone ON CONFLICT DO NOTHING`],
  [2, () => `UPDATE users SET id = -id WHERE abs(id) = ${users}`],
  [2, (random) => `UPDATE outfits SET user_id = (SELECT id FROM users WHERE abs(id) = ${users}) WHERE ${anyRange(random, 5)}`],
  [
    3,
    (random) =>
      `MERGE INTO outfits o USING (VALUES ${drawRows(random, 5)}) AS n (${columns}) ON o.id = n.id
       WHEN MATCHED AND n.id % 3 = 0 THEN DELETE
       WHEN MATCHED THEN UPDATE SET private = n.private, created = n.created
       WHEN NOT MATCHED THEN INSERT (${columns}) VALUES (n.id, 'k', 'k', n.user_id, n.private, n.created, n.modified, '')`,
  ],
  [
    2,
    (random) =>
      `MERGE INTO outfit_like_counts l USING (VALUES ${drawIds(random, 5).map((id) => `(${id}, ${drawLikes(random)})`).join(', ')}) AS n (id, likes) ON l.id = n.id
       WHEN MATCHED AND n.id % 3 = 0 THEN DO NOTHING WHEN MATCHED THEN UPDATE SET likes = n.likes`,
  ],
  [
    2,
    (random) =>
      `WITH changed AS (UPDATE outfit_like_counts SET likes = likes / 2 WHERE ${someLikes(random, 4)} RETURNING 1),
       gone AS (DELETE FROM outfits WHERE id = ${drawId(random)} RETURNING 1),
       made AS (INSERT INTO outfits (${columns}) VALUES ${drawRows(random, 3)} ON CONFLICT (id) DO UPDATE SET private = NOT outfits.private RETURNING 1)
       UPDATE outfits SET modified = modified / 2 WHERE id = ${drawId(random)}`,
  ],
  // The triggers fire in another order than the rows went and came.
  [
    2,
    (random) =>
      `WITH gone AS (DELETE FROM outfits WHERE ${anyOutfit(random)} RETURNING *)
       INSERT INTO outfits (${columns}) SELECT id, 'k', 'k', ${drawUser(random)}, ${random(2) > 0}, modified, created, '' FROM gone LIMIT 1`,
  ],
  [
    2,
    (random) =>
      `WITH gone AS (DELETE FROM outfits WHERE ${anyOutfit(random)} RETURNING id)
       UPDATE outfits o SET id = gone.id, private = ${random(2) > 0} FROM gone WHERE o.id = ${1 + random(6000)} AND o.id <> gone.id`,
  ],
  // A user whose trees go, and come.
  [1, (random) => `DELETE FROM outfits WHERE user_id = ${drawUser(random)}`],
  [2, (random) => `INSERT INTO outfits (${columns}) VALUES ${drawRows(random, 60, drawUser(random))} ON CONFLICT DO NOTHING`],
  [1, (random) => `UPDATE outfits SET private = NOT private WHERE user_id = ${drawUser(random)}`],
  [
    1,
    (random) =>
      `DO $$ BEGIN ${drawUpsert(random)}; BEGIN ${drawUpsert(random)}; RAISE 'taken back'; EXCEPTION WHEN raise_exception THEN ${drawUpsert(random)}; END; END $$`,
  ],
]; // biome-ignore format: one write, one line

const drawUpsert = (random: Random) =>
  `INSERT INTO outfits (${columns}) VALUES ${drawRow(random)} ON CONFLICT (id) DO UPDATE SET private = excluded.private, created = excluded.created`;

/** What a publisher sends after its outfits, which the triggers of a subscriber do not do: the rows of likes. */
const changedHere = 'SELECT outfit_id FROM outfit_changes WHERE xid = pg_current_xact_id()';
const replicatedLikes = [
  `DELETE FROM outfit_like_counts WHERE id IN (${changedHere}) AND id NOT IN (SELECT id FROM outfits)`,
  `INSERT INTO outfit_like_counts SELECT id, private, user_id, abs(id % 50) FROM outfits WHERE id IN (${changedHere}) ORDER BY id
   ON CONFLICT (id) DO UPDATE SET private = excluded.private, user_id = excluded.user_id`,
];

/** As a gateway calls it, or with batches so small that there are many. */
const drawFold = (random: Random) =>
  `SELECT * FROM apply_pending_outfit_changes(${pick(random, [
    [2, '1'],
    [2, '7'],
    [1, '100'],
    [3, ''],
  ])})`;

/**
 * A transaction of a few writes, some of them taken back, some of the transactions too, at any isolation
 * level, with any role, and with pending changes applied between its writes.
 * @param prepares name of a transaction that may be prepared; undefined where none can be
 */
function drawTransaction(random: Random, prepares?: string): { statements: number; text: string } {
  const kinds = [...plainWrites, ...compoundWrites];
  const writes = Array.from({ length: 1 + random(8) }, () => pick(random, kinds)(random));
  const statements = writes.length;
  const isReplicated = random(10) === 0;
  // An older snapshot would show a subscriber's SELECT the outfit that was in the place of a new one.
  const isolation = pick(random, [
    [8, 'READ COMMITTED'],
    [isReplicated ? 0 : 2, 'REPEATABLE READ'],
    [isReplicated ? 0 : 1, 'SERIALIZABLE'],
  ]);
  if (writes.length > 3 && random(4) === 0) {
    writes.splice(1, 0, 'SAVEPOINT a');
    writes.splice(3, 0, 'ROLLBACK TO a');
  }
  if (isolation === 'READ COMMITTED' && random(8) === 0) {
    writes.splice(random(writes.length + 1), 0, drawFold(random));
  }
  if (isReplicated) {
    writes.unshift('SET LOCAL session_replication_role = replica');
    writes.push(...replicatedLikes);
  }
  const isPrepared = prepares !== undefined && random(12) === 0;
  const end =
    random(6) === 0 ? 'ROLLBACK' : isPrepared ? `PREPARE TRANSACTION '${prepares}'` : 'COMMIT';
  return { statements, text: [`BEGIN ISOLATION LEVEL ${isolation}`, ...writes, end].join('; ') };
}

/** Sends a transaction; gives whether PostgreSQL took it, and not what writers do to each other. */
async function send(client: Queryable, text: string): Promise<boolean> {
  try {
    await client.query(text);
    return true;
  } catch (error) {
    await client.query('ROLLBACK');
    // Deadlocks, rows that a snapshot does not show, taken ids, a user that has gone, a role that lacks
    // checks (and so a row in two places): all are the writers' own doing.
    const own = ['40P01', '40001', '23505', '23503', '21000'];
    if (error instanceof pg.DatabaseError && own.includes(error.code ?? '')) return false;
    throw new Error(`${text}: ${String(error)}`);
  }
}

/** Compares counts and pages inside one snapshot; gives how many pages were compared. */
async function compare(client: Queryable, random: Random, pages: number): Promise<number> {
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
  try {
    // Before the snapshot is taken: TRUNCATE empties a table for older snapshots too.
    await client.query('LOCK TABLE outfits IN ACCESS SHARE MODE');
    const { rows: counts } = await client.query('SELECT count(*)::int AS all FROM outfits');
    for (let done = 0; done < pages; done++) {
      const field = fields[random(4)] ?? 'id';
      const direction = random(3) === 0 ? 'desc' : 'asc';
      const { scope, condition } = drawList(random, field, counts[0].all);
      const all = `${outfits} WHERE ${condition}`;
      const { rows: totals } = await client.query(`SELECT count(*)::int AS count FROM ${all}`);
      const { count } = totals[0];
      const take = 1 + random(20);
      const skip = pick(random, [
        [6, random(count + 1)],
        [1, 0],
        [1, Math.max(0, count - take)],
        [1, count + random(100)],
      ]);
      const page = pageStatement(scope, {
        ordering: { field, direction },
        offset: skip,
        pageSize: take,
      });
      const { rows: found } = await client.query(page.text, [...page.values]);
      const { rows: expected } = await client.query(
        // A replica does not check foreign keys: the user of an outfit may be missing.
        `SELECT id FROM (
           SELECT * FROM ${all} ORDER BY ${field} ${direction}, id ${direction} OFFSET ${skip} LIMIT ${take}
         ) page
         WHERE user_id IN (SELECT id FROM users) ORDER BY ${field} ${direction}, id ${direction}`,
      );
      const total = countStatement(scope);
      const { rows: counted } = await client.query(total.text, [...total.values]);
      const asked = { condition, field, direction, skip };
      const ids = found.filter(({ id }) => id !== null).map(({ id }) => ({ id }));
      expect({ ...asked, ids, count: found[0].count, counted }).toEqual({
        ...{ ...asked, ids: expected, count },
        counted: [scope.users ? { ownerId: scope.users[0], count } : { count }],
      });
    }
    expect((await client.query('SELECT check_outfit_likes()')).rows).toEqual([]);
    expect((await client.query('SELECT * FROM check_outfit_counts(1)')).rows).toEqual([]);
    if (random(10) === 0) await expectRightCounts(client);
    return pages;
  } finally {
    await client.query('ROLLBACK');
  }
}

/** A list of all users or of one, as a viewer sees it, or a range of all by `field`; and the same in SQL. */
function drawList(
  random: Random,
  field: (typeof fields)[number],
  outfits: number,
): { scope: Scope; condition: string } {
  const user = pick(random, [
    [20, 1 + random(users + 2)],
    [1, -users],
  ]);
  const [visibility, visible] = pick<readonly [Scope['visibility'], string]>(random, [
    [2, [{ private: 'all' }, 'true']],
    [2, [{ private: 'none' }, 'NOT private']],
    [4, [{ private: 'own', userId: user }, `(NOT private OR user_id = ${user})`]],
  ]);
  if (random(4) === 0) {
    const owner = random(3) === 0 ? user : 1 + random(users);
    const condition = `user_id = ${owner} AND ${visible}`;
    return { scope: { visibility, filter: {}, users: [owner] }, condition };
  }
  if (outfits === 0 || random(3) > 0 || !(field === 'created' || field === 'likes')) {
    return { scope: { visibility, filter: {} }, condition: visible };
  }
  const [from, below] = field === 'created' ? [drawMoment, drawMoment] : [drawLikes, drawLikes];
  const ends = [random(3) ? from(random) : undefined, random(3) ? below(random) : undefined];
  const filter =
    field === 'created'
      ? { createdFrom: ends[0] as bigint, createdBefore: ends[1] as bigint }
      : { likesFrom: ends[0] as number, likesBelow: ends[1] as number };
  const range = [
    ...(ends[0] === undefined ? [] : [`${field} >= ${ends[0]}`]),
    ...(ends[1] === undefined ? [] : [`${field} < ${ends[1]}`]),
  ];
  if (range.length === 0) return { scope: { visibility, filter: {} }, condition: visible };
  return { scope: { visibility, filter }, condition: [visible, ...range].join(' AND ') };
}

async function expectRightCounts(client: Queryable): Promise<void> {
  const { rows } = await client.query('SELECT * FROM check_outfit_counts()');
  expect(rows).toEqual([]);
  expect((await client.query('SELECT check_outfit_likes()')).rows).toEqual([]);
}

const addUsers = `INSERT INTO users (id, username) SELECT n, 'user' || n FROM generate_series(1, ${users}) n`;
const addOutfits = (random: Random) =>
  `INSERT INTO outfits (${columns}) VALUES ${drawRows(random, 2000)} ON CONFLICT DO NOTHING`;
const addLikes = (random: Random) =>
  `UPDATE outfit_like_counts SET likes = CASE WHEN id % 7 = ${random(7)} THEN 2147483647 - abs(id % 90) WHEN id % 5 = 0 THEN 3 ELSE id % 4000 END`;

describe('on PostgreSQL', () => {
  let gateway: TestGateway;
  const clients: pg.Client[] = [];
  const connect = async () => {
    const client = await connectTo(databaseUrlOf(gateway.database.pool));
    // Transactions of several writes may cross; a second of waiting for each would be most of the test.
    await client.query("SET deadlock_timeout = '10ms'");
    clients.push(client);
    return client;
  };
  beforeAll(async () => {
    gateway = await openGateway('PostgreSQL');
    await gateway.database.pool.query(addUsers);
    await setBucketSize(gateway.database.pool, bucketSize);
    await gateway.database.pool.query(addOutfits(randomOf(1)));
    await gateway.database.pool.query(addLikes(randomOf(1)));
  });
  afterAll(async () => {
    await Promise.all(clients.map((client) => client.end()));
    await gateway.close();
  });

  test(`${stormSize} random writes by five writers at once never lead to another count or page`, async () => {
    let [statements, taken, refused, applied, pages] = [0, 0, 0, 0, 0];
    const wanted = stormSize;
    const keeper = await connect();
    const { rows } = await keeper.query(
      `SELECT current_setting('max_prepared_transactions')::int AS most`,
    );
    const canPrepare = rows[0].most > 0;
    const writers = Array.from({ length: 5 }, async (_, index) => {
      const client = await connect();
      const random = randomOf(seed + index);
      const prepared = canPrepare ? `storm ${index}` : undefined;
      let truncatedAt = 0;
      while (statements < wanted) {
        const transaction = drawTransaction(random, prepared);
        const isTaken = await send(client, transaction.text);
        if (isTaken) statements += transaction.statements;
        if (isTaken) taken++;
        else refused++;
        if (transaction.text.endsWith(`PREPARE TRANSACTION 'storm ${index}'`)) {
          const end = random(3) === 0 ? 'ROLLBACK' : 'COMMIT';
          // It fails where preparing did.
          await client.query(`${end} PREPARED 'storm ${index}'`).catch(() => {});
        }
        if (index === 0 && statements - truncatedAt > Math.min(wanted / 2, 10_000)) {
          truncatedAt = statements;
          const truncate = `BEGIN; ${drawUpsert(random)}; TRUNCATE outfits CASCADE; ${drawUpsert(random)}`;
          await send(client, `${truncate}; ROLLBACK`);
          await send(client, `${truncate}; COMMIT`);
          await send(client, addOutfits(random));
          await send(client, addLikes(random));
        }
      }
    });
    const upkeep = (async () => {
      const random = randomOf(seed + 50);
      for (let round = 1; statements < wanted; round++) {
        await send(keeper, drawFold(random));
        applied++;
        // So that changes are cleared away all the time, too.
        if (round % 10 === 0)
          await send(keeper, `UPDATE outfit_counts_state SET prune_snapshot_at = 'epoch'`);
        if (round % 100 === 0) await send(keeper, 'SELECT rebuild_outfit_counts()');
        if (round % 50 === 0) {
          await keeper.query('VACUUM outfits, outfit_like_counts, outfit_changes, outfit_buckets');
        }
        await sleep(5);
      }
    })();
    const reader = (async () => {
      const client = await connect();
      const random = randomOf(seed + 60);
      while (statements < wanted) {
        pages += await compare(client, random, 20);
      }
    })();
    await Promise.all([...writers, upkeep, reader]);
    const client = await connect();
    pages += await compare(client, randomOf(8), 100);
    await expectRightCounts(client);
    for (const seed of [11, 12, 13]) await send(client, addOutfits(randomOf(seed)));
    await applyAll(client);
    for (const left of ['pending_outfit_changes()', tooLarge]) {
      expect((await client.query(`SELECT FROM ${left}`)).rowCount).toBe(0);
    }
    const { rowCount: groups } = await client.query('SELECT FROM outfit_buckets WHERE is_group');
    expect(groups).toBeGreaterThan(4 * 5);
    await compare(client, randomOf(9), 100);
    await expectRightCounts(client);
    expect(statements).toBeGreaterThanOrEqual(wanted);
    expect(pages).toBeGreaterThan(100);
    if (process.env['SHOW_FIGURES'])
      console.info({ seed, statements, taken, refused, applied, pages });
  });

  test('buckets and groups become fewer when outfits are deleted', async () => {
    const client = await connect();
    const sizes = async () => {
      const { rows } = await client.query(
        'SELECT count(*)::int AS buckets, sum(public + private)::int AS outfits FROM outfit_buckets WHERE NOT is_group',
      );
      return rows[0];
    };
    await client.query(`INSERT INTO users (id, username) VALUES (${users + 1}, 'new')`);
    await client.query(`INSERT INTO outfits (${columns})
      SELECT 20000000 + n, 'k', 'k', ${users + 1}, n % 3 = 0, n % 7, n, '' FROM generate_series(1, 5000) n`);
    await applyAll(client);
    const { buckets } = await sizes();
    expect(buckets).toBeGreaterThan((4 * 5000) / (2 * bucketSize));
    await client.query(`DELETE FROM outfits WHERE user_id = ${users + 1}`);
    await applyAll(client, 700);
    await expectRightCounts(client);
    expect((await sizes()).buckets).toBeLessThan(buckets / 2);
    await compare(client, randomOf(5), 20);
    await client.query('DELETE FROM outfits');
    await applyAll(client);
    expect(await sizes()).toEqual({ buckets: expect.any(Number), outfits: 0 });
    expect((await sizes()).buckets).toBeLessThan(100);
    await expectRightCounts(client);
    await send(client, addOutfits(randomOf(14)));
  });

  test('the command finds counts and texts that were kept from following, and mends them', async () => {
    const environment = { DATABASE_URL: databaseUrlOf(gateway.database.pool) };
    const counts = (task: string) => callCommand(countsCommand, [task], environment);
    const client = await connect();
    expect(await counts('check')).toMatchObject({ code: 0 });
    const likes = 'SELECT id, likes FROM outfit_like_counts WHERE id < 1000000000 ORDER BY id';
    const { rows: before } = await client.query(likes);
    const triggers = ['record_inserted', 'text_inserted', 'text_updated', 'likes_inserted'];
    const turn = async (how: string) => {
      for (const name of triggers) await client.query(`ALTER TABLE outfits ${how} TRIGGER ${name}`);
    };
    await turn('DISABLE');
    await client.query(
      `INSERT INTO outfits (${columns}) VALUES ${drawRow(randomOf(9), 1_000_000_001)}`,
    );
    await client.query(`INSERT INTO outfit_texts VALUES (1000000002, 'of no outfit', '{}')`);
    await client.query(`INSERT INTO outfit_like_counts VALUES (1000000003, false, 1, 5);
        UPDATE outfit_like_counts SET private = NOT private WHERE id = (SELECT max(id) FROM outfits WHERE id < 1000000000)`);
    // As a restore does.
    await turn('ENABLE');
    const wrong = await counts('check');
    expect(wrong.code).toBe(1);
    expect(wrong.stdout).toContain(
      'the trigger text_updated on outfits does not fire when it should',
    );
    expect(wrong.stdout).toMatch(/: 3 row\(s\) of likes differ .*\n.* bucket\(s\) differ /s);
    expect(wrong.stdout).toMatch(
      /: 2 text\(s\) differ .* run "outfit-gateway counts rebuild" \(in a checkout "npm run counts -- rebuild"\)\.$/m,
    );
    expect(await counts('rebuild')).toMatchObject({ code: 0 });
    const right = await counts('check');
    expect(right.code).toBe(0);
    expect(right.stdout).toMatch(
      /: all likes are right .*: all counts are right .*: all texts are right /s,
    );
    await expectRightCounts(client);
    await compare(client, randomOf(10), 100);
    expect((await client.query(likes)).rows).toEqual(before);
  });

  test('eight clients that write one statement per transaction never deadlock', async () => {
    // So few that they meet all the time.
    await (await connect()).query('DELETE FROM outfits WHERE id NOT BETWEEN 2000 AND 2060');
    const taken = await Promise.all(
      Array.from({ length: 8 }, async (_, index) => {
        const client = await connect();
        const random = randomOf(400 + index);
        const results: boolean[] = [];
        for (let done = 0; done < 60; done++) {
          results.push(await send(client, pick(random, plainWrites)(random)));
        }
        return results;
      }),
    );
    expect(taken.flat().filter((wasTaken) => !wasTaken)).toEqual([]);
    await expectRightCounts(await connect());
  });
});
