// The select list of a list, and the shape of a row.
import type { Outfit, User } from '../generated/prisma/client.ts';
import { outfitColumns, userColumns } from './columns.ts';

/** An outfit as it is stored, with the user who published it. */
export type OutfitRow = Outfit & { user: User };

/** The select list for `outfits o JOIN users u`; `rowOf` reads what it gives. */
export const rowColumns = [
  ...Object.entries(outfitColumns).map(([field, [column]]) => `o.${column} AS "${field}"`),
  ...Object.entries(userColumns).map(([field, [column]]) => `u.${column} AS "user.${field}"`),
].join(', ');

type Prefixed<Fields> = { [Field in keyof Fields & string as `user.${Field}`]: Fields[Field] };

/** A result row of a statement that selects `rowColumns`. */
export type FlatRow = Outfit & Prefixed<User>;

/**
 * Gives a flat result row the shape that Prisma gives `include: { user: true }`: the row itself, as
 * copying each took longer than reading them.
 */
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
