// One creation per Idempotency-Key.
import { createHash } from 'node:crypto';
import type { ReadRows } from '../../database/read.ts';
import type { Values } from '../filter.ts';
import { type Columns, likesColumn, type OutfitRow, outfitColumns, userColumns } from '../row.ts';
import { takeTimestamp } from '../timestamps.ts';

/** A request that its client may send again, with the key that it chose for it. */
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

/** Microseconds for which an answer is kept. */
const keptFor = 24n * 3_600_000_000n;

/** The answer that the request got when it came first, if it did; removes those that are too old. @throws KeyReusedError */
export async function findFirstAnswer(
  read: ReadRows,
  { userId, key, input }: RepeatableRequest,
): Promise<OutfitRow | undefined> {
  const values = [userId, key, takeTimestamp() - keptFor];
  const [first] = await read<{ inputHash: string; answer: Stored }>(firstAnswerStatement, values);
  if (!first) return undefined;
  if (first.inputHash !== hash(input)) throw new KeyReusedError();
  const { user } = first.answer;
  return { ...restore(answerColumns, first.answer), user: restore(userColumns, user as Stored) };
}

type Stored = Readonly<Record<string, unknown>>;

/** $1 user, $2 key, $3 the oldest moment that counts. */
const firstAnswerStatement = `
  WITH old AS (DELETE FROM idempotency_keys WHERE user_id = $1::int AND created < $3::bigint)
  SELECT input_hash AS "inputHash", answer FROM idempotency_keys
  WHERE user_id = $1::int AND key = $2::text AND created >= $3::bigint`;

/** SQL that keeps the answer (outfit `o`, likes `l`, user `u`). A second request waits for the same key, and fails. */
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

/** JSON numbers have no room for every moment. */
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

/** What has been added to the model since an answer was stored is empty. */
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
