// Rate limit: counts the requests of each sender in the database, in leases, for all gateways together.
// In SQL: a lease is one upsert that computes, and by the clock of the database.
import { LRUCache } from 'lru-cache';
import type { RateLimit } from '../config/values.ts';
import type { ReadRows } from '../database/read.ts';
import { runOutsideTask, SharedTask } from '../database/task.ts';
import { throttled } from '../errors.ts';

/**
 * The headers `RateLimit-Policy` and `RateLimit`: the limit, the requests that are left, the seconds until there are more.
 * @see https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers
 */
export type QuotaHeaders = Readonly<Record<string, string>>;

/**
 * At once when a local lease covers the request.
 * @throws HttpError 429 when the sender is over its rate limit, 503 when the database is unavailable
 */
export type CountRequest = (sender: string) => Promise<QuotaHeaders> | QuotaHeaders;

/** The window of a sender: starts with its first request, and is shared by all gateways on one database. */
class Window {
  /** Leased requests that this process may still admit within the window. */
  left = 0;
  /** Requests that no process has leased. */
  unleased = 0;
  /** Bounds of the end of the window, by `performance.now()`: the round trip to the database lies between them. */
  endsAfter = 0;
  endsBefore = 0;
  isLeasing = false;
  readonly waiting: { admit(quota: QuotaHeaders): void; refuse(error: unknown): void }[] = [];
}

const maxSenders = 50_000;
const clearingInterval = 60_000;

/**
 * All gateways on a database share one rate limit. Each leases several requests at a time: one write per request would
 * cost more than most answers. Unused leases are lost, so together they never admit more than the limit.
 * @param timeout milliseconds that a lease may take
 */
export function createRateLimiter(limit: RateLimit, read: ReadRows, timeout: number): CountRequest {
  const windows = new LRUCache<string, Window>({ max: maxSenders });
  const leaseNow = createLessor(limit, read);
  const policy = `"default";q=${limit.requests};w=${limit.seconds}`;
  const quotaOf: QuotaOf = ({ left, unleased, endsBefore }, now) => ({
    'RateLimit-Policy': policy,
    RateLimit: `"default";r=${left + unleased};t=${secondsUntil(endsBefore, now)}`,
  });
  // Never aborted: a lease also serves later requests of the sender, when its first client has left.
  const neverAborted = new AbortController();
  const lease = (sender: string, wanted: number) =>
    new SharedTask(timeout, () => leaseNow(sender, wanted), sender).wait(neverAborted);
  return (sender) => {
    let window = windows.get(sender);
    if (!window) {
      window = new Window();
      windows.set(sender, window);
    }
    const now = performance.now();
    if (now < window.endsAfter) {
      if (window.left > 0) {
        window.left--;
        return quotaOf(window, now);
      }
      if (window.unleased === 0) throw refusal(window, now, quotaOf);
    }
    return new Promise((admit, refuse) => {
      window.waiting.push({ admit, refuse });
      if (!window.isLeasing) {
        void serveWaiting(window, (wanted) => lease(sender, wanted), quotaOf);
      }
    });
  };
}

type QuotaOf = (window: Window, now: number) => QuotaHeaders;

async function serveWaiting(
  window: Window,
  lease: (wanted: number) => Promise<Lease>,
  quotaOf: QuotaOf,
): Promise<void> {
  window.isLeasing = true;
  try {
    while (window.waiting.length > 0) {
      const sent = performance.now();
      const { leased, unleased, milliseconds } = await lease(window.waiting.length);
      const now = performance.now();
      window.left = leased;
      window.unleased = unleased;
      window.endsAfter = sent + milliseconds;
      window.endsBefore = now + milliseconds;
      // Admitted even if the window has ended meanwhile: the lease was taken for them.
      for (const { admit } of window.waiting.splice(0, leased)) {
        window.left--;
        admit(quotaOf(window, now));
      }
      if (unleased > 0) continue;
      for (const { refuse } of window.waiting.splice(0)) refuse(refusal(window, now, quotaOf));
    }
  } catch (error) {
    for (const { refuse } of window.waiting.splice(0)) refuse(error);
  } finally {
    window.isLeasing = false;
  }
}

function secondsUntil(end: number, now: number): number {
  // Rounded to microseconds first: an error of floating point must not become a second.
  return Math.ceil(Math.round((end - now) * 1000) / 1_000_000);
}

const refusal = (window: Window, now: number, quotaOf: QuotaOf) =>
  throttled(secondsUntil(window.endsBefore, now), quotaOf(window, now));

interface Lease {
  readonly leased: number;
  readonly unleased: number;
  readonly milliseconds: number;
}

// The clock of the database, for all gateways. Constant within a statement.
const now = '(extract(epoch FROM now()) * 1000000)::bigint';

// The requests that wait, or a tenth of what is left, whichever is more.
const leaseOf = (left: string) => `least(${left}, greatest($3, ${left} / 10))`;

const leaseStatement = `
  INSERT INTO rate_limits AS current (sender, ends, used, leased)
  SELECT $1, ${now} + $4 * 1000000::bigint, lease, lease FROM (SELECT ${leaseOf('$2::int')}) AS first (lease)
  ON CONFLICT (sender) DO UPDATE SET (ends, used, leased) = (
    SELECT w.ends, w.used + l.lease, l.lease
    FROM (
      SELECT current.ends, current.used WHERE current.ends > ${now}
      UNION ALL
      SELECT excluded.ends, 0 WHERE current.ends <= ${now}
    ) AS w (ends, used)
    CROSS JOIN LATERAL (SELECT ${leaseOf('($2 - w.used)')}) AS l (lease)
  )
  RETURNING leased, $2 - used AS unleased, (ends - ${now})::float8 / 1000 AS milliseconds`;

// Skips windows that are being leased from: waiting for them could deadlock.
const clearStatement = `
  DELETE FROM rate_limits WHERE sender IN (
    SELECT sender FROM rate_limits WHERE ends <= ${now} FOR UPDATE SKIP LOCKED
  )`;

function createLessor({ requests, seconds }: RateLimit, read: ReadRows) {
  let cleared = performance.now();
  return async (sender: string, wanted: number): Promise<Lease> => {
    if (performance.now() - cleared > clearingInterval) {
      cleared = performance.now();
      runOutsideTask(() => read(clearStatement, [])).catch(() => {});
    }
    // The limit is part of the key: changing it starts new windows.
    const key = `${requests}/${seconds} ${sender}`;
    const [lease] = await read<Lease>(leaseStatement, [key, requests, wanted, seconds]);
    if (!lease) throw new Error('The rate limit gave no lease.');
    return lease;
  };
}
