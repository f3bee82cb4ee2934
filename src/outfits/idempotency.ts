// One creation per Idempotency-Key.
import { createHash } from 'node:crypto';
import type { ReadRows } from '../database/read.ts';
import {
  type Columns,
  type FlatRow,
  likesColumn,
  type OutfitRow,
  outfitColumns,
  rowColumns,
  rowOf,
  userColumns,
} from './row.ts';
import { takeTimestamp } from './timestamps.ts';

/** A request that its client may send again, with the key that it chose for it. */
export interface RepeatableRequest {
  readonly userId: number;
  readonly key: string;
  /** What the request asks for, as it came. */
  readonly input: unknown;
}

/** The key came with another input before. */
export class KeyReusedError extends Error {
  constructor() {
    super('This Idempotency-Key was used for another request: use a new key for a new request.');
  }
}

/** Microseconds for which an answer is kept. */
const keptFor = 24n * 3_600_000_000n;

/**
 * The answer that the request got when it came first; undefined when this is the first time.
 * Removes those of the user that are too old.
 * @throws KeyReusedError
 */
export async function findFirstAnswer(
  read: ReadRows,
  { userId, key, input }: RepeatableRequest,
): Promise<OutfitRow | undefined> {
  const values = [userId, key, takeTimestamp() - keptFor];
  const [first] = await read<FirstAnswer>(firstAnswerStatement, values);
  if (first && first.inputHash !== hash(input)) throw new KeyReusedError();
  return first && restoreRow(first);
}

/** An answer as it is stored, with the same outfit as it is now. */
type FirstAnswer = (FlatRow | Gone) & { readonly inputHash: string; readonly answer: StoredRow };
type Gone = { readonly [Field in keyof FlatRow]: FlatRow[Field] | null } & { readonly id: null };
type StoredRow = Stored & { readonly user?: Stored };
type Stored = Readonly<Record<string, unknown>>;

/** $1 user, $2 key, $3 the oldest moment that counts. */
const firstAnswerStatement = `
  WITH old AS (DELETE FROM idempotency_keys WHERE user_id = $1::int AND created < $3::bigint)
  SELECT k.input_hash AS "inputHash", k.answer, ${rowColumns}
  FROM idempotency_keys k JOIN users u ON u.id = k.user_id
  LEFT JOIN outfits o ON o.id = (k.answer ->> 'id')::int AND o.user_id = k.user_id
  LEFT JOIN outfit_like_counts l ON l.id = o.id
  WHERE k.user_id = $1::int AND k.key = $2::text AND k.created >= $3::bigint`;

/**
 * SQL that keeps the answer to a request: the outfit `o` with its likes `l` and user `u`, as they are now. Of two
 * requests that come at the same time, the second waits here for the first and then fails, because
 * their keys are the same row.
 * @param first placeholder: user, key, hash of the input and moment, from here on
 */
export function keepAnswerSql(first: number): string {
  const [userId, key, inputHash, created] = [0, 1, 2, 3].map((index) => `$${first + index}`);
  return `
    INSERT INTO idempotency_keys (user_id, key, input_hash, created, answer)
    SELECT ${userId}::int, ${key}::text, ${inputHash}::text, ${created}::bigint, ${answerColumn}`;
}

/** The values that `keepAnswerSql` needs. */
export function keyValues({ userId, key, input }: RepeatableRequest): unknown[] {
  return [userId, key, hash(input), takeTimestamp()];
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

/** A stored answer as a row of today. */
function restoreRow({ answer, inputHash: _, ...flat }: FirstAnswer): OutfitRow {
  const { user, ...now } = rowOf(flat as FlatRow);
  return {
    ...restore(
      { ...outfitColumns, likes: ['likes', 'int'] } as const,
      answer,
      flat.id === null ? undefined : now,
    ),
    user: restore(userColumns, answer.user ?? {}, user),
  };
}

/**
 * What has been added to the model since an answer was stored is taken from the record as it is now;
 * it is empty when the record has been deleted.
 */
function restore<Row extends object>(
  columns: Columns<Row>,
  stored: Stored,
  now: Row | undefined,
): Row {
  const entries = Object.entries<readonly [string, string]>(columns).map(([field, [, type]]) => {
    const value = stored[field];
    if (value === undefined) return [field, now ? now[field as keyof Row] : emptyOf(type)];
    return [field, type === 'bigint' ? BigInt(String(value)) : value];
  });
  return Object.fromEntries(entries) as Row;
}

function emptyOf(type: string): unknown {
  const values: Readonly<Record<string, unknown>> = {
    boolean: false,
    int: 0,
    text: '',
    bigint: 0n,
  };
  return values[type] ?? null;
}

function hash(input: unknown): string {
  return createHash('sha256').update(JSON.stringify(input)).digest('base64url');
}
