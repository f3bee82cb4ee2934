// Idempotent creation: stores the first answer of each Idempotency-Key and returns it for repeated requests.
// @see https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/
// In SQL: the answer is stored by the statement that creates the outfit.
import { createHash } from 'node:crypto';
import type pg from 'pg';
import type { ReadRows } from '../../database/read.ts';
import type { Values } from '../filter.ts';
import { type Columns, likesColumn, type OutfitRow, outfitColumns, userColumns } from '../row.ts';
import { takeTimestamp } from '../timestamps.ts';

/** A request with the Idempotency-Key that its client chose. */
export interface RepeatableRequest {
  readonly userId: number;
  readonly key: string;
  readonly input: unknown;
}

export class KeyReusedError extends Error {
  constructor() {
    super('This Idempotency-Key was used for another request: use a new key for a new request.');
  }
}

/** Retention of answers, in microseconds. */
const retention = 24n * 3_600_000_000n;

/** The stored answer of the request, if there is one; deletes expired answers. @throws KeyReusedError */
export async function findFirstAnswer(
  read: ReadRows,
  { userId, key, input }: RepeatableRequest,
): Promise<OutfitRow | undefined> {
  const values = [userId, key, takeTimestamp() - retention];
  const [first] = await read<{ inputHash: string; answer: Stored }>(firstAnswerStatement, values);
  if (!first) return undefined;
  if (first.inputHash !== hash(input)) throw new KeyReusedError();
  const { user } = first.answer;
  return { ...restore(answerColumns, first.answer), user: restore(userColumns, user as Stored) };
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

type Stored = Readonly<Record<string, unknown>>;

/** $1 user, $2 key, $3 the oldest timestamp that is still valid. */
const firstAnswerStatement = `
  WITH old AS (DELETE FROM idempotency_keys WHERE user_id = $1::int AND created < $3::bigint)
  SELECT input_hash AS "inputHash", answer FROM idempotency_keys
  WHERE user_id = $1::int AND key = $2::text AND created >= $3::bigint`;

/** SQL to store the answer (outfit `o`, likes `l`, user `u`). A concurrent request with the key waits, then fails. */
export function keepAnswerSql(
  { userId, key, input }: RepeatableRequest,
  add: Values['add'],
): string {
  return `
    INSERT INTO idempotency_keys (user_id, key, input_hash, created, answer)
    SELECT ${add(userId)}::int, ${add(key)}::text, ${add(hash(input))}::text, ${add(takeTimestamp())}::bigint, ${answerColumn}`;
}

const answerColumn = `jsonb_build_object(${[
  ...jsonEntries('o', outfitColumns),
  `'likes', ${likesColumn}`,
  `'user', jsonb_build_object(${jsonEntries('u', userColumns)})`,
]})`;

/** As text: a JSON number cannot represent every bigint. */
function jsonEntries<Row>(alias: string, columns: Columns<Row>): string[] {
  return Object.entries<readonly [string, string]>(columns).map(
    ([field, [column, type]]) =>
      `'${field}', ${alias}.${column}${type === 'bigint' ? '::text' : ''}`,
  );
}

const answerColumns: Columns<Omit<OutfitRow, 'user'>> = {
  ...outfitColumns,
  likes: ['likes', 'int'],
};

/** Fields added to the model after the answer was stored are empty. */
function restore<Row extends object>(columns: Columns<Row>, stored: Stored): Row {
  const entries = Object.entries<readonly [string, string]>(columns).map(([field, [, type]]) => {
    const value = stored[field];
    if (value === undefined) return [field, emptyOf(type)];
    return [field, type === 'bigint' ? BigInt(String(value)) : value];
  });
  return Object.fromEntries(entries) as Row;
}

function emptyOf(type: string): unknown {
  const values: Stored = { boolean: false, int: 0, text: '', bigint: 0n };
  return values[type] ?? null;
}

function hash(input: unknown): string {
  return createHash('sha256').update(JSON.stringify(input)).digest('base64url');
}
