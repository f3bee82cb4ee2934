// The validation of a record of a source, field by field, and its conversion to a row.
import { z } from 'zod';
import { cut } from '../../errors.ts';
import type { User } from '../../generated/prisma/client.ts';
import { readProperty } from '../../old-listing/page.ts';
import type { OutfitRow } from '../../outfits/row.ts';
import { parseTimestamp, parseWithOffset } from '../../outfits/timestamps.ts';
import { avatarKey, devices, imageKey, videoKey } from '../../outfits/writes/input.ts';
import type { LikeRow } from '../../outfits/writes/likes.ts';

/** Base URLs of the files of a source; undefined until a record has one. */
export interface Bases {
  readonly media?: string | undefined;
  readonly video?: string | undefined;
}

/** The row of a valid record, or the reasons against it: a clause for each field. */
export type CheckedRow<Row> =
  | { readonly row: Row; readonly reasons?: never }
  | { readonly row?: never; readonly reasons: readonly string[] };

const boolean = z.boolean('true or false');
const object = 'an object with the fields of the contract';

const integer = (min: number) => {
  const allowed = `a whole number from ${min} to 2147483647`;
  return z.int32(allowed).min(min, allowed);
};

const textLike = (pattern: RegExp, allowed: string) => z.string(allowed).regex(pattern, allowed);

// PostgreSQL refuses NUL, and a lone surrogate would become U+FFFD.
const text = textLike(/^[^\0\p{Surrogate}]*$/u, 'text without NUL characters and lone surrogates');

const timestampFormat = 'a timestamp such as "2024-02-29T12:34:56.123456Z"';
const timestamp = z.string(timestampFormat).transform((value, context) => {
  const micros = parseWithOffset(value);
  if (micros !== undefined) return micros;
  context.addIssue(timestampFormat);
  return z.NEVER;
});

const id = integer(-2147483648);

const user = z.object(
  {
    id,
    avatar_key: text,
    username: textLike(/^[^\0\p{Surrogate}]+$/u, 'a text that is not empty'),
    first_name: text,
    last_name: text,
  },
  object,
);

/** A URL below `base`: what is behind that is the key, and is served behind MEDIA_URL or VIDEO_URL. */
const urlOf = (base: string | undefined, or = '') => {
  const allowed = `${or}"${base ?? '<base>'}/<path of the file>"`;
  return z.string(allowed).transform((value, context) => {
    const key = base !== undefined && value.startsWith(`${base}/`) && value.slice(base.length + 1);
    if (key && /^[^\s\0\p{Surrogate}]+$/u.test(key)) return key;
    context.addIssue(allowed);
    return z.NEVER;
  });
};

/** Ids from `firstId` on are created here: a record of a source would overwrite another outfit. */
const below = (firstId: number) =>
  `below ${firstId}, where FIRST_ID says that ids of outfits made here begin`;

const outfit = (bases: Bases, firstId = Number.POSITIVE_INFINITY) =>
  z.object(
    {
      id: id.lt(firstId, below(firstId)),
      title: text,
      description: text,
      image_key: urlOf(bases.media),
      image_original_url: urlOf(bases.media),
      complete: boolean,
      likes: integer(0),
      user,
      quality: integer(-2147483648),
      private: boolean,
      background_image: z.null('null'),
      background_color: textLike(
        /^(?:|#(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8}))$/i,
        '"" or a hex colour such as "#rrggbb"',
      ),
      video: urlOf(bases.video, 'null or ').nullable(),
      play_video: boolean,
      created: timestamp,
      modified: timestamp,
      creation_device: text,
      modification_device: text,
    },
    object,
  );

const timestampPattern = { test: (value: string) => parseTimestamp(value) !== undefined };

/** What the contract says of texts that are stored and served as they are, also where they do not follow it. */
const contract: Readonly<Record<string, { test(value: string): boolean }>> = {
  image_key: new RegExp(`/${imageKey.source.slice(1)}`),
  image_original_url: new RegExp(`/${imageKey.source.slice(1)}`),
  'user.avatar_key': avatarKey,
  'user.username': /^[\p{L}\p{M}\p{N}_-]+$/u,
  background_color: /^(?:|#[0-9a-f]{3}|#[0-9a-f]{6})$/,
  video: new RegExp(`/${videoKey.source.slice(1)}`),
  created: timestampPattern,
  modified: timestampPattern,
  creation_device: new RegExp(`^(?:${devices.join('|')})$`),
  modification_device: new RegExp(`^(?:|${devices.join('|')})$`),
};

/** Fields of a valid record that the contract does not allow, with their values. */
export function findOutside(record: unknown): (readonly [name: string, value: string])[] {
  return Object.entries(contract).flatMap(([name, pattern]) => {
    const value = name.split('.').reduce<unknown>(readProperty, record);
    return typeof value === 'string' && !pattern.test(value) ? [[name, value] as const] : [];
  });
}

export const fieldNames: ReadonlySet<string> = new Set(Object.keys(outfit({}).shape));
export const userFieldNames: ReadonlySet<string> = new Set(Object.keys(user.shape));

/** @param firstId ids from this one on are refused */
export function createCheck(
  bases: Bases,
  firstId?: number,
): (record: unknown) => CheckedRow<OutfitRow> {
  const schema = outfit(bases, firstId);
  return (record) => check(schema, record, toRow);
}

/** Checks users: records of the contract's field `user`. */
export function checkUser(record: unknown): CheckedRow<User> {
  return check(user, record, toUser);
}

/** Checks likes, such as `{"outfit": 7, "user": 5}`. An outfit or user may be its number or a record with `id`. */
export function checkLike(record: unknown): CheckedRow<LikeRow> {
  const find = (name: string) => {
    const value = readProperty(record, name) ?? readProperty(record, `${name}_id`);
    return readProperty(value, 'id') ?? value;
  };
  const found = { outfit: find('outfit'), user: find('user') };
  return check(like, Object(record) === record ? found : record, (row) => row);
}

const like = z.object({ outfit: id, user: id }, 'an object with outfit and user');

function check<Output, Row>(
  schema: z.ZodType<Output>,
  record: unknown,
  toRow: (output: Output) => Row,
): CheckedRow<Row> {
  const { data, error } = schema.safeParse(record);
  if (!error) return { row: toRow(data) };
  return { reasons: error.issues.map((issue) => explain(record, issue)) };
}

function explain(record: unknown, { path, message }: z.core.$ZodIssue): string {
  const name = path.length === 0 ? 'the record' : path.join('.');
  const value = path.reduce(readProperty, record);
  if (value === undefined) return `${name} is missing, but must be ${message}`;
  return `${name} is ${shorten(value)}, but must be ${message}`;
}

/** A value of a record for a message: one line of at most 80 characters. */
export function shorten(value: unknown): string {
  // JSON.stringify would write null for a number that overflowed to Infinity.
  return cut(typeof value === 'number' ? String(value) : JSON.stringify(value));
}

function toRow(record: z.output<ReturnType<typeof outfit>>): OutfitRow {
  return {
    id: record.id,
    title: record.title,
    description: record.description,
    imageKey: record.image_key,
    imageOriginalKey: record.image_original_url,
    complete: record.complete,
    likes: record.likes,
    userId: record.user.id,
    quality: record.quality,
    private: record.private,
    backgroundColor: record.background_color,
    videoKey: record.video,
    playVideo: record.play_video,
    created: record.created,
    modified: record.modified,
    creationDevice: record.creation_device,
    modificationDevice: record.modification_device,
    user: toUser(record.user),
  };
}

function toUser({ id, avatar_key, username, first_name, last_name }: z.output<typeof user>): User {
  return { id, avatarKey: avatar_key, username, firstName: first_name, lastName: last_name };
}

/** Adds the missing bases: the most common ones, so that a broken first record does not decide. */
export function findBases(given: Bases, records: readonly unknown[]): Bases {
  const find = (place: string, fields: readonly string[]) => {
    const urls = fields.flatMap((field) => records.map((record) => readProperty(record, field)));
    // Before the place of the contract, or else of all that is behind the host.
    return (
      mostCommonBase(urls, new RegExp(`^((?:https?:/)?/[^\\s?#]*[^\\s?#/])/${place}/`)) ??
      mostCommonBase(urls, /^(https?:\/\/[^\s?#/]+|(?=\/))\//)
    );
  };
  return {
    media: given.media ?? find('outfits', ['image_key', 'image_original_url']),
    video: given.video ?? find('outfits_videos', ['video']),
  };
}

function mostCommonBase(urls: readonly unknown[], pattern: RegExp): string | undefined {
  const votes = new Map<string, number>();
  for (const url of urls) {
    const base = typeof url === 'string' ? pattern.exec(url)?.[1] : undefined;
    if (base !== undefined) votes.set(base, (votes.get(base) ?? 0) + 1);
  }
  return [...votes].sort(([, a], [, b]) => b - a)[0]?.[0];
}
