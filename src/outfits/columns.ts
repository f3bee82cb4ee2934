// The column and SQL type of each field.
import type { Outfit, User } from '../generated/prisma/client.ts';

// Lists are read and bulk data is written with SQL of our own: Prisma has no row-value comparison,
// and no way to read count, page and owner in one statement. The types keep these maps complete: a
// field added to schema.prisma does not compile until it is here too.

/** The column and SQL type of each field of a model. */
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
