// Creates, updates, deletes and likes outfits. Only owners update or delete; a like is idempotent for each user.
// In SQL: a create with its stored answer, and a like, which are one statement each.
import pg from 'pg';
import { sqlStateOf } from '../../database/errors.ts';
import type { Client } from '../../database/prisma/client.ts';
import type { ReadRows } from '../../database/read.ts';
import { FieldError, invalidToken, noSuchOutfit, notTheOwner } from '../../errors.ts';
import { type Outfit, Prisma, type User } from '../../generated/prisma/client.ts';
import {
  columnsOfUser,
  createLoaderInTurns,
  type Loader,
  type RecordLoaders,
} from '../lists/by-id.ts';
import {
  type FlatRow,
  joinedRow,
  likesColumn,
  named,
  type OutfitRow,
  outfitColumns,
  rowColumns,
  rowOf,
} from '../row.ts';
import { takeTimestamp } from '../timestamps.ts';
import type { Visibility } from '../visibility.ts';
import {
  findFirstAnswer,
  keepAnswer,
  keptValuesOf,
  type RepeatableRequest,
} from './idempotency.ts';
import type { CheckedInput } from './input.ts';

type NewOutfit = CheckedInput & { readonly imageKey: string };

export interface Creating {
  /** Whether outfits are written in attached tables: by functions, which carry them over. */
  readonly writesAttached: boolean;
  readonly read: ReadRows;
  /** Raises the id sequences to the highest ids in use. */
  readonly raiseSequences: () => Promise<void>;
}

/** Other clients may insert the next id again between raising the sequence and the retry. */
const maxAttempts = 5;

/** Creates an outfit, idempotently if there is a `request`. @throws HttpError, FieldError */
export async function createOutfit(
  { read, raiseSequences, writesAttached }: Creating,
  userId: number,
  values: NewOutfit,
  request: RepeatableRequest | undefined,
): Promise<OutfitRow> {
  const outfit = newOutfit(userId, values);
  for (let attempt = 1; ; attempt++) {
    try {
      return await insertOutfit(read, outfit, request, writesAttached);
    } catch (error) {
      if (attempt === maxAttempts) throw error;
      if (request && isKeyTaken(error)) {
        const first = await findFirstAnswer(read, request);
        if (first) return first;
      } else if (isIdMissing(error)) {
        await raiseSequences();
      } else throw error;
    }
  }
}

function newOutfit(userId: number, values: NewOutfit): Partial<Outfit> {
  const { device, ...columns } = toColumns(values);
  const now = takeTimestamp();
  const creationDevice = device ? { creationDevice: device } : {};
  return { ...columns, ...creationDevice, userId, created: now, modified: now };
}

/** One statement, so that the outfit and the stored answer of its request are atomic. */
async function insertOutfit(
  read: ReadRows,
  outfit: Partial<Outfit>,
  request: RepeatableRequest | undefined,
  writesAttached: boolean,
): Promise<OutfitRow> {
  const fields = givenFields(outfit);
  const insert = writesAttached
    ? 'SELECT * FROM save_outfit(:record::jsonb)'
    : `INSERT INTO outfits (${fields.map((field) => outfitColumns[field][0]).join(', ')})
      VALUES (${fields.map((field) => `:${field}::${outfitColumns[field][1]}`).join(', ')})
      RETURNING *`;
  const { text, values } = named(
    `
    WITH o AS (
      ${insert}
    )${request ? `, first AS (${keepAnswer} FROM o ${joinedRow})` : ''}
    SELECT ${rowColumns} FROM o ${joinedRow}`,
    { ...outfit, record: recordOf(outfit), ...(request && keptValuesOf(request)) },
  );
  const [row] = await read<FlatRow>(text, values).catch((error) => refuse(error, writesAttached));
  // The foreign key guarantees the user, so there is a row.
  return rowOf(row as FlatRow);
}

/** How outfits that exist are written. */
export interface Writing {
  readonly writesAttached: boolean;
  readonly prisma: Client;
  readonly read: ReadRows;
  /** Of the visible outfits. */
  readonly records: Pick<RecordLoaders, 'outfits'>;
}

export interface OwnOutfit {
  readonly id: number;
  readonly userId: number;
  /** Staff may change and delete what others own, private outfits too. */
  readonly isStaff?: boolean | undefined;
}

/** Compared in the statement that writes: an outfit may change hands at any time before it. */
function owned({ id, userId, isStaff }: OwnOutfit) {
  return isStaff ? { id } : { id, userId };
}

/** Updates the given fields, `modified` and the device. @throws FieldError */
export async function updateOutfit(
  writing: Writing,
  own: OwnOutfit,
  values: CheckedInput,
): Promise<OutfitRow> {
  const { device, ...columns } = toColumns(values);
  const data = { ...columns, modified: takeTimestamp(), modificationDevice: device ?? 'web' };
  if (writing.writesAttached) {
    const given = [recordOf({ ...data, id: own.id }), own.isStaff ? null : own.userId];
    const [row] = await writing.read<FlatRow>(saveAttached, given).catch((e) => refuse(e, true));
    if (!row) throw await refusalOf(writing, own);
    return rowOf(row);
  }
  const join = (userId: number) => writing.read<Joined>(joinedStatement, [own.id, userId]);
  // Not `update` with the user: Prisma would send it as a transaction of four statements. What an owner's outfit has in
  // other tables is read meanwhile; whose outfit staff changes is known after the update only.
  const [[outfit], known] = await Promise.all([
    writing.prisma.outfit.updateManyAndReturn({ where: owned(own), data }),
    own.isStaff ? undefined : join(own.userId),
  ]);
  if (!outfit) throw await refusalOf(writing, own);
  const [joined] = known ?? (await join(outfit.userId));
  // The user was erased meanwhile, with the outfit.
  if (!joined) throw noSuchOutfit(own.id);
  const { likes, ...user } = joined;
  return { ...outfit, likes, user };
}

/** $1 the given columns and the id, $2 the owner. */
const saveAttached = `SELECT ${rowColumns} FROM save_outfit($1::jsonb, $2::int) o ${joinedRow}`;

/** By column; numbers as text, as JSON cannot represent every bigint. */
function recordOf(outfit: Partial<Outfit>): string {
  const entries = givenFields(outfit).map((field) => [outfitColumns[field][0], outfit[field]]);
  return JSON.stringify(Object.fromEntries(entries), (_key, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  );
}

type Joined = User & Pick<OutfitRow, 'likes'>;

/** $1 outfit, $2 its user: what an outfit has in other tables. */
const joinedStatement = `
  SELECT ${likesColumn} AS likes, ${columnsOfUser}
  FROM users u LEFT JOIN outfit_like_counts l ON l.id = $1::int WHERE u.id = $2::int`;

/** @throws FieldError */
export async function deleteOutfit(
  writing: Writing,
  own: OwnOutfit,
): Promise<{ readonly userId: number }> {
  if (writing.writesAttached) return deleteAttached(writing, own);
  try {
    return await writing.prisma.outfit.delete({ where: owned(own), select: { userId: true } });
  } catch (error) {
    throw isRowMissing(error) ? await refusalOf(writing, own) : error;
  }
}

/** $1 outfit, $2 the owner. The user is read before. */
const deleteAttachedStatement = `
  SELECT (SELECT user_id FROM outfits WHERE id = $1::int) AS "userId", delete_outfit($1::int, $2::int) AS "isDeleted"`;

async function deleteAttached(
  writing: Writing,
  own: OwnOutfit,
): Promise<{ readonly userId: number }> {
  const owner = own.isStaff ? null : own.userId;
  const [row] = await writing
    .read<{ userId: number; isDeleted: boolean }>(deleteAttachedStatement, [own.id, owner])
    .catch((error) => {
      if (sqlStateOf(error) !== foreignKeyFailed) return refuse(error, true);
      const message = `Outfit ${own.id} cannot be deleted: the old service refers to it.`;
      throw new FieldError('FORBIDDEN', message, { cause: error });
    });
  if (!row?.isDeleted) throw await refusalOf(writing, own);
  return row;
}

/** Why nothing was written. */
async function refusalOf({ records }: Writing, { id, isStaff }: OwnOutfit): Promise<Error> {
  const isAnothers = !isStaff && (await records.outfits.load(id)) !== undefined;
  return isAnothers ? notTheOwner(id) : noSuchOutfit(id);
}

/** @see https://www.prisma.io/docs/orm/reference/error-reference#p2025 */
function isRowMissing(error: unknown): boolean {
  return error instanceof Prisma.PrismaClientKnownRequestError && error.code === 'P2025';
}

export interface Like {
  readonly id: number;
  readonly userId: number;
  readonly liked: boolean;
}

/** Likes or unlikes; does not change `modified`. @throws FieldError, HttpError */
export async function setLike(
  { read, writesAttached }: Pick<Writing, 'read' | 'writesAttached'>,
  { id, userId, liked }: Like,
  visibility: Visibility,
): Promise<OutfitRow> {
  const values = [id, userId, liked, visibility.private === 'all'];
  const [row] = await read<FlatRow>(likeStatement, values).catch(async (error) => {
    const isLost = writesAttached && sqlStateOf(error) === foreignKeyFailed;
    const found = isLost && (await read('SELECT id FROM outfits WHERE id = $1::int', [id]));
    // The old service has deleted it meanwhile.
    return found && found.length === 0 ? [] : refuse(error, writesAttached);
  });
  if (!row) throw noSuchOutfit(id);
  return rowOf(row);
}

/** $1 outfit, $2 user, $3 liked, $4 whether private outfits of others are visible. */
const likeStatement = `
  SELECT ${rowColumns}
  FROM like_outfit($1::int, $2::int, $3::boolean, $4::boolean) l
  CROSS JOIN LATERAL (SELECT (l.outfit).*) o
  CROSS JOIN LATERAL (SELECT (l.owner).*) u`;

export type ViewerLikes = Loader<number, boolean>;

/** Loader of one user's likes: one statement for all outfits of a page. */
export function createViewerLikes(prisma: Client, userId: number): ViewerLikes {
  const load = async (ids: readonly number[]) => {
    const where = { userId, outfitId: { in: [...ids] } };
    const rows = await prisma.outfitLike.findMany({ where, select: { outfitId: true } });
    const liked = new Set(rows.map(({ outfitId }) => outfitId));
    return ids.map((id) => liked.has(id));
  };
  return createLoaderInTurns(load);
}

/** The original image defaults to the image. */
function toColumns({ imageOriginalUrl, video, ...values }: CheckedInput) {
  const imageOriginalKey = imageOriginalUrl ?? values.imageKey;
  return {
    ...values,
    ...(imageOriginalKey === undefined ? {} : { imageOriginalKey }),
    ...(video === undefined ? {} : { videoKey: video, playVideo: video !== null }),
  };
}

const foreignKeyFailed = '23503';
/** There is no such user: by functions of the database, `like_outfit` and those of attach. */
const noUser = 'OG001';
const notUnique = '23505';
const sequenceEnded = '2200H';

/** @throws HttpError 401 without the user; in attached tables, FieldError for wrong data, constraints and what a function raises */
function refuse(error: unknown, writesAttached: boolean): never {
  const state = sqlStateOf(error) ?? '';
  // A foreign key of attached tables may be any.
  if (state === noUser || (state === foreignKeyFailed && !writesAttached)) {
    throw invalidToken();
  }
  const isRule = writesAttached && /^(?:2[23]|44|P0)/.test(state) && !isKeyTaken(error);
  if (!isRule) throw error;
  const message = 'A rule of the tables of the old service forbids this.';
  throw new FieldError('FORBIDDEN', message, { cause: error });
}

/** A concurrent request with the same key was first. */
function isKeyTaken(error: unknown): boolean {
  return isTaken(error, 'idempotency_keys_pkey');
}

/** The sequence returned an id in use, or is exhausted. */
function isIdMissing(error: unknown): boolean {
  return isTaken(error, 'outfits_pkey') || sqlStateOf(error) === sequenceEnded;
}

function isTaken(error: unknown, constraint: string): boolean {
  return (
    error instanceof pg.DatabaseError && error.code === notUnique && error.constraint === constraint
  );
}

function givenFields(outfit: Partial<Outfit>): (keyof Outfit)[] {
  const fields = Object.keys(outfitColumns) as (keyof Outfit)[];
  return fields.filter((field) => outfit[field] !== undefined);
}
