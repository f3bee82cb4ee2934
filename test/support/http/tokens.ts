// Bearer tokens for the tests.
import { SignJWT } from 'jose';

export const secret = 'a secret of the tests, and of nothing else';

/**
 * The headers of a request by a user; none for an anonymous one.
 * @param seconds that the token holds
 */
export async function signIn(
  userId: number | undefined,
  seconds = 3600,
  claims: Record<string, unknown> = {},
): Promise<Record<string, string>> {
  if (userId === undefined) return {};
  const token = await new SignJWT(claims)
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject(String(userId))
    .setExpirationTime(`${seconds} seconds`)
    .sign(new TextEncoder().encode(secret));
  return { authorization: `Bearer ${token}` };
}
