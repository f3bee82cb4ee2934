// Users that another service knows: their names follow from what AUTH_WEBHOOK_URL answers.
import { z } from 'zod';
import type { Client } from '../../database/prisma/client.ts';
import type { User } from '../../generated/prisma/client.ts';
import { avatarKey } from './input.ts';

const text = z
  .string()
  .max(255)
  .regex(/^[^\0\p{Cs}]*$/u);

/** A user as the listing writes one. Fields that are missing or invalid are left as they are. */
const userFields = z.object({
  username: text.min(1),
  first_name: text.optional().catch(undefined),
  last_name: text.optional().catch(undefined),
  avatar_key: z.string().regex(avatarKey).optional().catch(undefined),
});

/** Creates or renames a user. Does nothing without a valid `username`. @param answer `{ id, username, ... }` */
export async function followUser(prisma: Client, id: number, answer: unknown): Promise<void> {
  const { data } = userFields.safeParse(answer);
  if (!data) return;
  const { username, first_name: firstName, last_name: lastName, avatar_key: avatarKey } = data;
  const names = {
    username,
    ...(firstName !== undefined && { firstName }),
    ...(lastName !== undefined && { lastName }),
    ...(avatarKey !== undefined && { avatarKey }),
  };
  const old = await prisma.user.findUnique({ where: { id } });
  // Each write invalidates the cached answers with the user.
  if (old && Object.entries(names).every(([name, value]) => old[name as keyof User] === value))
    return;
  await prisma.user.upsert({ where: { id }, create: { id, ...names }, update: names });
}
