// Erases a user with everything that belongs to them; numbers of likes and counts stay exact.
// In SQL: locks, in the order of all transactions.
import type pg from 'pg';
import { retryDeadlocks } from '../../database/transaction.ts';

export interface UserData {
  /** Undefined: there is no such user. */
  readonly username: string | undefined;
  readonly outfits: number;
  /** Likes of the user, on outfits of others too. */
  readonly likes: number;
  readonly answers: number;
  readonly rateLimits: number;
}

/** $1 user, $2 the end of the keys of their rate limits. */
const findStatement = `
  SELECT (SELECT username FROM users WHERE id = $1::int) AS username,
    (SELECT count(*) FROM outfits WHERE user_id = $1::int)::int AS outfits,
    (SELECT count(*) FROM outfit_likes WHERE user_id = $1::int)::int AS likes,
    (SELECT count(*) FROM idempotency_keys WHERE user_id = $1::int)::int AS answers,
    (SELECT count(*) FROM rate_limits WHERE sender LIKE $2)::int AS "rateLimits"`;

export async function findUserData(pool: Pick<pg.Pool, 'query'>, user: number): Promise<UserData> {
  const { rows } = await pool.query<UserData>(findStatement, [user, `% user ${user}`]);
  const [found] = rows as [UserData];
  return { ...found, username: found.username ?? undefined };
}

const forgetRateLimits = 'DELETE FROM rate_limits WHERE sender LIKE $1';

/** What attached tables of an old service leave here of a user who is deleted there. */
export const forgetRest = (pool: pg.Pool, user: number) =>
  pool.query(forgetRateLimits, [`% user ${user}`]);

/** Retries deadlocks with an import, which locks users before outfits. @returns what there was to erase */
export async function forgetUser(pool: pg.Pool, user: number): Promise<UserData> {
  const found = await findUserData(pool, user);
  while (!(await retryDeadlocks(pool, (client) => eraseOnce(client, user))));
  return found;
}

/**
 * Outfits, likes, then the user: the lock order of all transactions.
 * @returns false: concurrent writes of the user need another round
 */
async function eraseOnce(client: pg.PoolClient, user: number): Promise<boolean> {
  await client.query('SELECT FROM outfits WHERE user_id = $1 ORDER BY id FOR UPDATE', [user]);
  const { rows } = await client.query<{ id: number }>(
    `SELECT id FROM outfit_like_counts WHERE id IN (SELECT outfit_id FROM outfit_likes WHERE user_id = $1)
     ORDER BY id FOR NO KEY UPDATE`,
    [user],
  );
  await client.query(
    `WITH gone AS (DELETE FROM outfit_likes WHERE user_id = $1 AND outfit_id = ANY($2::int[]) RETURNING outfit_id)
     UPDATE outfit_like_counts c SET likes = greatest(c.likes - 1, 0) FROM gone WHERE c.id = gone.outfit_id`,
    [user, rows.map(({ id }) => id)],
  );
  await client.query('DELETE FROM outfits WHERE user_id = $1', [user]);
  await client.query(forgetRateLimits, [`% user ${user}`]);
  await client.query('SELECT FROM users WHERE id = $1 FOR UPDATE', [user]);
  // The lock blocks new writes of the user: their foreign keys wait for this transaction, and then fail.
  const left = await findUserData(client, user);
  const isDone = left.outfits === 0 && left.likes === 0;
  if (isDone) await client.query('DELETE FROM users WHERE id = $1', [user]);
  return isDone;
}
