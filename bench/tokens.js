// Who writes: users with tokens, as the gateway and the hand-written service check them.
import { SignJWT } from 'jose';

export const secret = 'the secret that all systems of the benchmark share';

/** @param {number} userId @returns {Promise<string>} */
export function signToken(userId) {
  return new SignJWT()
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject(String(userId))
    .setExpirationTime('12h')
    .sign(new TextEncoder().encode(secret));
}
