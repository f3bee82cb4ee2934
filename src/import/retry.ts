// How often, and how long after, what a service did not answer is asked again.

export const tries = 7;
/** Milliseconds before the second try; doubles with each further one. */
const firstDelay = 500;
/** Milliseconds that a server may ask to be left alone with Retry-After. */
const maxDelay = 300_000;

/** Milliseconds before the next try, no fewer than `least` up to a limit; spread, so that many do not come at once. */
export function delayAfter(attempt: number, least: number): number {
  const backOff = firstDelay * 2 ** (attempt - 1) * (0.75 + Math.random() / 2);
  return Math.min(Math.max(backOff, least), maxDelay);
}

/** Milliseconds that the header asks for: it is seconds or an HTTP date. */
export function readRetryAfter(header: string | null | undefined): number {
  if (!header) return 0;
  const delay = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return Number.isNaN(delay) ? 0 : delay;
}

/** Why there was no answer: `fetch` hides it in the cause, and several addresses of a host in that. */
export function explainFailure(error: unknown): string {
  if (error instanceof AggregateError) return explainFailure(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : explainFailure(error.cause);
}
