// Bearer tokens for the tests.
import { SignJWT } from 'jose';

export const secret = 'a secret of the tests, and of nothing else';

/** The headers of a request by a user; none for nobody. */
export async function signIn(userId: number | undefined): Promise<Record<string, string>> {
  if (userId === undefined) return {};
  const token = await new SignJWT()
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject(String(userId))
    .setExpirationTime('1 hour')
    .sign(new TextEncoder().encode(secret));
  return { authorization: `Bearer ${token}` };
}
