// Idempotent creation: stores the first answer of each Idempotency-Key and returns it for repeated requests.
// @see https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/
// In SQL: the answer is stored by the statement that creates the outfit.
import { createHash } from 'node:crypto';
import type pg from 'pg';
import type { ReadRows } from '../../database/read.ts';
import { keyReused } from '../../errors.ts';
import {
  type FlatRow,
  likesColumn,
  type OutfitRow,
  outfitColumns,
  rowColumns,
  rowOf,
  userColumns,
} from '../row.ts';
import { takeTimestamp } from '../timestamps.ts';

/** A request with the Idempotency-Key that its client chose. */
export interface RepeatableRequest {
  readonly userId: number;
  readonly key: string;
  readonly input: unknown;
}

/** Retention of answers, in microseconds. */
const retention = 24n * 3_600_000_000n;

/** The stored answer of the request, if there is one; deletes expired answers. @throws HttpError 422 for another request */
export async function findFirstAnswer(
  read: ReadRows,
  { userId, key, input }: RepeatableRequest,
): Promise<OutfitRow | undefined> {
  const values = [userId, key, takeTimestamp() - retention];
  const [first] = await read<FlatRow & { inputHash: string }>(firstAnswerStatement, values);
  if (!first) return undefined;
  const { inputHash, ...row } = first;
  if (inputHash !== hash(input)) throw keyReused();
  return rowOf(row);
}

/** Deletes the expired answers of all users, who may never come back. Those that a request deletes are skipped. */
export async function deleteExpiredAnswers(pool: Pick<pg.Pool, 'query'>): Promise<void> {
  await pool.query(
    `DELETE FROM idempotency_keys WHERE (user_id, key) IN (
       SELECT user_id, key FROM idempotency_keys WHERE created < $1::bigint FOR UPDATE SKIP LOCKED
     )`,
    [takeTimestamp() - retention],
  );
}

/** Of columns that were added to the model after an answer was stored. */
const empty = JSON.stringify(
  Object.fromEntries(
    [...Object.values(outfitColumns), ...Object.values(userColumns)].map(([column, type]) => [
      column,
      { boolean: false, int: 0, bigint: 0 }[type] ?? '',
    ]),
  ),
);

/** $1 user, $2 key, $3 the oldest timestamp that is still valid. */
const firstAnswerStatement = `
  WITH old AS (DELETE FROM idempotency_keys WHERE user_id = $1::int AND created < $3::bigint)
  SELECT k.input_hash AS "inputHash", ${rowColumns}
  FROM idempotency_keys k
  CROSS JOIN LATERAL jsonb_populate_record(NULL::outfits, '${empty}' || (k.answer->'outfit')) o
  CROSS JOIN LATERAL jsonb_populate_record(NULL::users, '${empty}' || (k.answer->'user')) u
  CROSS JOIN LATERAL (SELECT (k.answer->>'likes')::int AS likes) l
  WHERE k.user_id = $1::int AND k.key = $2::text AND k.created >= $3::bigint`;

/** Stores the answer (outfit `o`, likes `l`, user `u`). A concurrent request with the key waits, then fails. */
export const keepAnswer = `
    INSERT INTO idempotency_keys (user_id, key, input_hash, created, answer)
    SELECT :keeper::int, :key::text, :inputHash::text, :now::bigint,
      jsonb_build_object('outfit', to_jsonb(o), 'likes', ${likesColumn}, 'user', to_jsonb(u))`;

export function keptValuesOf({ userId, key, input }: RepeatableRequest) {
  return { keeper: userId, key, inputHash: hash(input), now: takeTimestamp() };
}

function hash(input: unknown): string {
  return createHash('sha256').update(JSON.stringify(input)).digest('base64url');
}
