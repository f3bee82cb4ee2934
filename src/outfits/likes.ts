import type { PrismaClient } from '../generated/prisma/client.ts';
import type { OutfitRow } from './row.ts';
import { type Visibility, whereVisible } from './visibility.ts';
import { NoSuchUserError, OutfitNotFoundError } from './writes.ts';

export interface Like {
  readonly id: number;
  readonly userId: number;
  /** Whether the user likes it from now on. */
  readonly liked: boolean;
}

/**
 * Sets whether a user likes an outfit, and gives the outfit with its count. Doing it again changes
 * nothing. Neither `modified` nor the device changes: those are about the owner's changes.
 * @throws OutfitNotFoundError, NoSuchUserError
 */
export async function setLike(
  prisma: PrismaClient,
  { id, userId, liked }: Like,
  visibility: Visibility,
): Promise<OutfitRow> {
  const where = { ...whereVisible(visibility), id };
  const visible = await prisma.outfit.count({ where });
  if (visible === 0) throw new OutfitNotFoundError(id);
  const [result] = await prisma.$queryRaw<[{ outcome: string }]>`
    SELECT set_outfit_like(${id}::int, ${userId}::int, ${liked}::boolean) AS outcome`;
  if (result.outcome === 'no such user') throw new NoSuchUserError();
  const row = await prisma.outfit.findFirst({ where, include: { user: true } });
  if (!row) throw new OutfitNotFoundError(id);
  return row;
}
