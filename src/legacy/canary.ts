// Which clients this gateway answers in canary.
import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { groupAddress } from '../admission/admission.ts';
import type { Config } from '../config.ts';

/** Percent of clients to whom this gateway itself answers a method of one of its legacy paths. */
export function shareOf({ kind, percent }: Config['legacyMode'], method: string): number {
  if (kind === 'off' || kind === 'mirror') return 100;
  return method === 'GET' || method === 'HEAD' ? percent : 0;
}

/**
 * Whether a client is one of so many percent: the same ones in every process, and with a larger
 * number the same and more. A client is a user, or else an address.
 */
export function isAmong(percent: number, request: FastifyRequest): boolean {
  const digest = createHash('sha256').update(nameClient(request)).digest();
  return (digest.readUInt32BE() / 2 ** 32) * 100 < percent;
}

/**
 * By the user of a token, which is the same when the token is renewed. It is not verified, since
 * nothing depends on it but who answers.
 */
function nameClient({ headers: { authorization }, ip }: FastifyRequest): string {
  if (authorization === undefined) return `address ${groupAddress(ip)}`;
  const payload = /^bearer[ \t]+[\w-]+\.([\w-]+)\./i.exec(authorization)?.[1];
  return `user ${(payload && readSubject(payload)) ?? authorization}`;
}

function readSubject(payload: string): string | undefined {
  try {
    const { sub } = JSON.parse(Buffer.from(payload, 'base64url').toString()) as { sub?: unknown };
    return sub === undefined ? undefined : String(sub);
  } catch {
    return undefined;
  }
}
