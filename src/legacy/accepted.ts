// Differences that an owner has accepted: `--accept` of the commands, LEGACY_ACCEPT of the gateway.
import { type Difference, type Kind, kinds } from './difference.ts';

/** `fraction`, or `value:results.likes` for a kind in one place. */
export type Accepted = ReadonlySet<string>;

/** Whether a text names a kind that there is. */
export function isAcceptable(text: string): boolean {
  return kinds.includes(text.split(':', 1)[0] as Kind);
}

export function isAccepted(
  accepted: Accepted,
  { kind, where }: Pick<Difference, 'kind' | 'where'>,
): boolean {
  return accepted.has(kind) || accepted.has(`${kind}:${where}`);
}
