// Asks a service again that has failed, until it answers or has failed too often.
import { setTimeout as sleep } from 'node:timers/promises';
import { ConfigError } from '../../config.ts';
import { SourceError } from './batch.ts';

export const maxAttempts = 7;
const firstDelay = 500;
/** Milliseconds that a server may ask to be left alone with Retry-After. */
const maxDelay = 300_000;

export interface Failure {
  readonly problem: string;
  readonly retryAfter?: string | undefined;
  /** Undefined: as for all of the loop. */
  readonly maxAttempts?: number;
}

export interface RetryOptions {
  readonly signal: AbortSignal;
  readonly notify: (sentence: string) => void;
  readonly maxAttempts?: number;
}

/** @param attempt throws a SourceError when another attempt would be in vain */
export async function retry<Result>(
  url: string,
  attempt: () => Promise<{ readonly result: Result } | Failure>,
  { signal, notify, maxAttempts: most = maxAttempts }: RetryOptions,
): Promise<{ readonly result: Result } | { readonly sentence: string }> {
  for (let number = 1; ; number++) {
    const outcome = await attempt().catch((error: unknown): Failure => {
      signal.throwIfAborted();
      if (error instanceof SourceError || error instanceof ConfigError) throw error;
      return { problem: `did not answer (${explainFailure(error)})` };
    });
    if ('result' in outcome) return outcome;
    const { problem, retryAfter } = outcome;
    if (number >= (outcome.maxAttempts ?? most)) {
      const often = number === 1 ? '' : ` failed ${number} times; the last time it`;
      return { sentence: `${url}${often} ${problem}.` };
    }
    const backOff = firstDelay * 2 ** (number - 1) * (0.75 + Math.random() / 2);
    const delay = Math.min(Math.max(backOff, readRetryAfter(retryAfter)), maxDelay);
    notify(`${url} ${problem}; trying again in ${(delay / 1000).toFixed(1)} s.`);
    await sleep(delay, undefined, { signal });
  }
}

/** Milliseconds that the header asks for: it is seconds or an HTTP date. */
function readRetryAfter(header: string | undefined): number {
  if (!header) return 0;
  const delay = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return Number.isNaN(delay) ? 0 : delay;
}

/** The innermost cause; of several addresses of a host, that of the first. */
function explainFailure(error: unknown): string {
  if (error instanceof AggregateError) return explainFailure(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : explainFailure(error.cause);
}
