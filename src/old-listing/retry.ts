// Retries requests with exponential backoff, jitter and Retry-After.
import { setTimeout as sleep } from 'node:timers/promises';
import { ConfigError } from '../config/config.ts';
import { cut } from '../errors.ts';
import { UndecodableError } from '../http/client.ts';
import { SourceError } from './page.ts';

export const maxAttempts = 7;
const firstDelay = 500;
/** Milliseconds: the upper limit of backoff and Retry-After. */
const maxDelay = 300_000;

/** Whether a later attempt may have another status. */
export const isTemporary = (status: number) =>
  status >= 500 || status === 408 || status === 425 || status === 429;

export interface Failure {
  readonly problem: string;
  readonly retryAfter?: string | undefined;
  /** Overrides that of the options. */
  readonly maxAttempts?: number;
}

export interface RetryOptions {
  readonly signal: AbortSignal;
  readonly notify: (sentence: string) => void;
  readonly maxAttempts?: number;
}

/** @param attempt throws SourceError when a retry would not help */
export async function retry<Result>(
  url: string,
  attempt: () => Promise<{ readonly result: Result } | Failure>,
  { signal, notify, maxAttempts: limit = maxAttempts }: RetryOptions,
): Promise<{ readonly result: Result } | { readonly sentence: string }> {
  for (let number = 1; ; number++) {
    const outcome = await attempt().catch((error: unknown): Failure => {
      signal.throwIfAborted();
      if (error instanceof SourceError || error instanceof ConfigError) throw error;
      if (error instanceof UndecodableError) return { problem: error.message };
      return { problem: `did not answer (${explainFailure(error)})` };
    });
    if ('result' in outcome) return outcome;
    const { problem, retryAfter } = outcome;
    if (number >= (outcome.maxAttempts ?? limit)) {
      const often = number === 1 ? '' : ` failed ${number} times; the last time it`;
      return { sentence: `${cut(url, 300)}${often} ${problem}.` };
    }
    const backoff = firstDelay * 2 ** (number - 1) * (0.75 + Math.random() / 2);
    const delay = Math.min(Math.max(backoff, readRetryAfter(retryAfter)), maxDelay);
    notify(`${cut(url, 300)} ${problem}; trying again in ${(delay / 1000).toFixed(1)} s.`);
    await sleep(delay, undefined, { signal });
  }
}

/** Milliseconds of the header, which has seconds or an HTTP date. @see RFC 9110 §10.2.3 */
function readRetryAfter(header: string | undefined): number {
  if (!header) return 0;
  const delay = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return Number.isNaN(delay) ? 0 : delay;
}

/** The innermost cause; for several addresses of a host, that of the first one. */
function explainFailure(error: unknown): string {
  if (error instanceof AggregateError) return explainFailure(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : explainFailure(error.cause);
}
