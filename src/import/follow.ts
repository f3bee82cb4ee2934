// The same work again and again, until it is told to end: a failure that may pass ends only its round.
import { setTimeout as sleep } from 'node:timers/promises';

export interface FollowOptions {
  /** Seconds from the end of a round to the start of the next one. */
  readonly seconds: number;
  readonly signal: AbortSignal;
  /** Whether a later round may succeed where this one has failed. */
  readonly mayPass: (error: unknown) => boolean;
  /** Told once when rounds begin to fail, with the first failure, and once when one succeeds again. */
  readonly onFailure: (error: unknown) => void;
  readonly onRecovery: () => void;
}

/**
 * @param round ends early, but without an error, when the signal comes
 * @throws what `round` throws, if that cannot pass
 */
export async function follow(
  round: () => Promise<void>,
  { seconds, signal, mayPass, onFailure, onRecovery }: FollowOptions,
): Promise<void> {
  let isFailing = false;
  while (!signal.aborted) {
    try {
      await round();
      if (isFailing && !signal.aborted) onRecovery();
      isFailing = false;
    } catch (error) {
      if (signal.aborted) return;
      if (!mayPass(error)) throw error;
      if (!isFailing) onFailure(error);
      isFailing = true;
    }
    // Ended by the signal, which the loop looks at.
    await sleep(seconds * 1_000, undefined, { signal }).catch(() => {});
  }
}
