// Erases a user with everything that belongs to them; numbers of likes and counts stay exact.
// In SQL: a function of the database, with locks in the order of all transactions.
import type pg from 'pg';
import { sqlStateOf } from '../../database/errors.ts';
import { retryDeadlocks } from '../../database/transaction.ts';
import { OperatorError } from '../../errors.ts';

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

/** What attached tables of an old service leave here of a user who is deleted there. */
export const forgetRest = (pool: Pick<pg.Pool, 'query'>, user: number) =>
  pool.query('DELETE FROM rate_limits WHERE sender LIKE $1', [`% user ${user}`]);

/** Retries deadlocks with an import, which locks users before outfits. @returns what there was to erase */
export async function forgetUser(pool: pg.Pool, user: number): Promise<UserData> {
  const found = await findUserData(pool, user);
  try {
    await retryDeadlocks(pool, async (client) => {
      await client.query('SELECT delete_user($1)', [user]);
      await forgetRest(client, user);
    });
  } catch (error) {
    if (!(error instanceof Error) || sqlStateOf(error) !== '42501') throw error;
    // Only to forget, so that `check` does not ask for it.
    const { rows } = await pool.query<{ role: string }>('SELECT quote_ident(current_user) AS role');
    const role = rows[0]?.role;
    throw new OperatorError(
      `The role of the database may not erase users (${error.message}): run "GRANT EXECUTE ON FUNCTION delete_user TO ${role}; GRANT UPDATE, DELETE ON users, outfit_like_counts TO ${role}".`,
      { cause: error },
    );
  }
  return found;
}
