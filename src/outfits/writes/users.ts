// Users that another service knows: their names follow from what AUTH_WEBHOOK_URL answers.
import type pg from 'pg';
import { z } from 'zod';
import { avatarKey } from './input.ts';

const text = z
  .string()
  .max(255)
  .regex(/^[^\0\p{Cs}]*$/u);

/** A user as the listing writes one. Fields that are missing or invalid are left as they are. */
const userFields = z.object({
  username: text.regex(/^[\p{L}\p{M}\p{N}_-]+$/u),
  first_name: text.optional().catch(undefined),
  last_name: text.optional().catch(undefined),
  avatar_key: z.string().regex(avatarKey).optional().catch(undefined),
});

/** Writes only if something differs: each write invalidates the cached answers with the user. */
const upsertUser = `
  INSERT INTO users AS old (id, username, first_name, last_name, avatar_key)
  SELECT $1::int, $2::text, coalesce($3::text, ''), coalesce($4::text, ''), coalesce($5::text, '')
  WHERE NOT EXISTS (
    SELECT FROM users WHERE id = $1::int AND username = $2::text AND first_name = coalesce($3::text, first_name)
      AND last_name = coalesce($4::text, last_name) AND avatar_key = coalesce($5::text, avatar_key))
  ON CONFLICT (id) DO UPDATE SET username = excluded.username, first_name = coalesce($3::text, old.first_name),
    last_name = coalesce($4::text, old.last_name), avatar_key = coalesce($5::text, old.avatar_key)`;

/** Creates or renames a user. Does nothing without a valid `username`. @param answer `{ id, username, ... }` */
export async function followUser(
  pool: Pick<pg.Pool, 'query'>,
  id: number,
  answer: unknown,
): Promise<void> {
  const { data } = userFields.safeParse(answer);
  if (!data) return;
  const { username, first_name, last_name, avatar_key } = data;
  await pool.query(upsertUser, [id, username, first_name, last_name, avatar_key]);
}
