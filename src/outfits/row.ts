// Columns of the fields, the SELECT list of outfits, and the shape of a row.
// In SQL: the part that the statements of lists, of single outfits and of writes share.
import type { Outfit, User } from '../generated/prisma/client.ts';

/** The range of ids and of numbers of likes. */
export const int4 = { min: -2_147_483_648, max: 2_147_483_647 } as const;

/** The range of timestamps. */
export const int8 = { min: -(2n ** 63n), max: 2n ** 63n - 1n } as const;

/** Column and SQL type of each field of a model. A field added to schema.prisma does not compile until it is here. */
export type Columns<Row> = Readonly<Record<keyof Row, readonly [column: string, type: string]>>;

export const userColumns: Columns<User> = {
  id: ['id', 'int'],
  avatarKey: ['avatar_key', 'text'],
  username: ['username', 'text'],
  firstName: ['first_name', 'text'],
  lastName: ['last_name', 'text'],
};

export const outfitColumns: Columns<Outfit> = {
  id: ['id', 'int'],
  title: ['title', 'text'],
  description: ['description', 'text'],
  imageKey: ['image_key', 'text'],
  imageOriginalKey: ['image_original_key', 'text'],
  complete: ['complete', 'boolean'],
  userId: ['user_id', 'int'],
  quality: ['quality', 'int'],
  private: ['private', 'boolean'],
  backgroundColor: ['background_color', 'text'],
  videoKey: ['video_key', 'text'],
  playVideo: ['play_video', 'boolean'],
  created: ['created', 'bigint'],
  modified: ['modified', 'bigint'],
  creationDevice: ['creation_device', 'text'],
  modificationDevice: ['modification_device', 'text'],
};

/** An outfit with its number of likes, which is in another table. */
type LikedOutfit = Outfit & { likes: number };

/** An outfit as it is stored, with its likes and the user who published it. */
export type OutfitRow = LikedOutfit & { user: User };

/** The number of likes of an outfit, where they are joined. */
export const likesColumn = 'coalesce(l.likes, 0)';

/** SELECT list for outfits `o` with their likes `l` and users `u`; `rowOf` reads its rows. */
export const rowColumns = [
  ...Object.entries(outfitColumns).map(([field, [column]]) => `o.${column} AS "${field}"`),
  `${likesColumn} AS likes`,
  ...Object.entries(userColumns).map(([field, [column]]) => `u.${column} AS "user.${field}"`),
].join(', ');

/** Joins likes and users to outfits `o`, for `rowColumns`. */
export const joinedRow =
  'LEFT JOIN outfit_like_counts l ON l.id = o.id JOIN users u ON u.id = o.user_id';

type Prefixed<Fields> = { [Field in keyof Fields & string as `user.${Field}`]: Fields[Field] };

/** A result row of a statement that selects `rowColumns`. */
export type FlatRow = LikedOutfit & Prefixed<User>;

/** The shape of Prisma's `include: { user: true }`. Changes the row in place: a copy took longer than the query. */
export function rowOf(flat: FlatRow): OutfitRow {
  return Object.assign(flat, {
    user: {
      id: flat['user.id'],
      avatarKey: flat['user.avatarKey'],
      username: flat['user.username'],
      firstName: flat['user.firstName'],
      lastName: flat['user.lastName'],
    },
  });
}

interface NumberedText {
  readonly text: string;
  /** Of `$1`, `$2` and so on. */
  readonly names: readonly string[];
}

/** By the text with names. There are as many as kinds of statements: they contain no values. */
const numbered = new Map<string, NumberedText>();

/** The text of a statement with `:name` in place of a value, as PostgreSQL takes it: `$1`, `$2` and their values. */
export function named(
  text: string,
  values: Readonly<Record<string, unknown>>,
): { readonly text: string; readonly values: readonly unknown[] } {
  const statement = numbered.get(text) ?? numberNames(text);
  numbered.set(text, statement);
  return { text: statement.text, values: statement.names.map((name) => values[name] ?? null) };
}

function numberNames(given: string): NumberedText {
  const names: string[] = [];
  const text = given.replace(/(?<!:):([a-z]\w*)/gi, (_found, name: string) => {
    const index = names.indexOf(name);
    return `$${index < 0 ? names.push(name) : index + 1}`;
  });
  return { text, names };
}
