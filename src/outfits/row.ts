import type { Outfit, User } from '../generated/prisma/client.ts';

/** An outfit as it is stored, with the user who published it. */
export type OutfitRow = Outfit & { user: User };

// Lists are read with SQL of our own, since Prisma has no row-value comparison and no way to read
// count, page and owner in one statement. `satisfies` keeps these complete: a field added to
// schema.prisma does not compile until it is here too.
const outfitColumns = {
  id: 'id',
  title: 'title',
  description: 'description',
  imageKey: 'image_key',
  imageOriginalKey: 'image_original_key',
  complete: 'complete',
  likes: 'likes',
  userId: 'user_id',
  quality: 'quality',
  private: 'private',
  backgroundColor: 'background_color',
  videoKey: 'video_key',
  playVideo: 'play_video',
  created: 'created',
  modified: 'modified',
  creationDevice: 'creation_device',
  modificationDevice: 'modification_device',
} satisfies Record<keyof Outfit, string>;

const userColumns = {
  id: 'id',
  avatarKey: 'avatar_key',
  username: 'username',
  firstName: 'first_name',
  lastName: 'last_name',
} satisfies Record<keyof User, string>;

/** The select list for `outfits o JOIN users u`; `rowOf` reads what it gives. */
export const rowColumns = [
  ...Object.entries(outfitColumns).map(([field, column]) => `o.${column} AS "${field}"`),
  ...Object.entries(userColumns).map(([field, column]) => `u.${column} AS "user.${field}"`),
].join(', ');

type Prefixed<Fields> = { [Field in keyof Fields & string as `user.${Field}`]: Fields[Field] };

/** A result row of a statement that selects `rowColumns`. */
export type FlatRow = Outfit & Prefixed<User>;

/** Gives a flat result row the shape that Prisma gives `include: { user: true }`. */
export function rowOf(flat: FlatRow): OutfitRow {
  return {
    ...flat,
    user: {
      id: flat['user.id'],
      avatarKey: flat['user.avatarKey'],
      username: flat['user.username'],
      firstName: flat['user.firstName'],
      lastName: flat['user.lastName'],
    },
  };
}
