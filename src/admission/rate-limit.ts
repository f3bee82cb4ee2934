// Rate limit: counts the requests of each sender in the database, in leases, for all gateways together.
// In SQL: a lease is one upsert that computes, and by the clock of the database.
import { LRUCache } from 'lru-cache';
import type { RateLimit } from '../config/values.ts';
import { isWriteRefused } from '../database/errors.ts';
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
  /** Requests that wait for a lease. */
  waiting = 0;
  leasing: Promise<void> | undefined;
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
  const quotaOf = ({ left, unleased, endsBefore }: Window, now: number): QuotaHeaders => ({
    'RateLimit-Policy': policy,
    RateLimit: `"default";r=${left + unleased};t=${secondsUntil(endsBefore, now)}`,
  });
  /** Takes a leased request; undefined: there is none, but there may be. @throws HttpError 429 when none is left */
  const take = (window: Window, now: number) => {
    if (window.left > 0) {
      window.left--;
      return quotaOf(window, now);
    }
    if (window.unleased > 0) return undefined;
    throw throttled(secondsUntil(window.endsBefore, now), quotaOf(window, now));
  };
  // Never aborted: a lease also serves later requests of the sender, when its first client has left.
  const neverAborted = new AbortController();
  const lease = async (sender: string, window: Window) => {
    const sent = performance.now();
    const task = new SharedTask(timeout, () => leaseNow(sender, window.waiting), sender);
    const { leased, unleased, milliseconds } = await task.wait(neverAborted);
    window.left = leased;
    window.unleased = unleased;
    window.endsAfter = sent + milliseconds;
    window.endsBefore = performance.now() + milliseconds;
  };
  const wait = async (sender: string, window: Window): Promise<QuotaHeaders> => {
    window.waiting++;
    try {
      for (;;) {
        window.leasing ??= lease(sender, window).finally(() => {
          window.leasing = undefined;
        });
        await window.leasing;
        // Admitted even if the window has ended meanwhile: the lease was taken for it.
        const quota = take(window, performance.now());
        if (quota) return quota;
      }
    } finally {
      window.waiting--;
    }
  };
  return (sender) => {
    let window = windows.get(sender);
    if (!window) {
      window = new Window();
      windows.set(sender, window);
    }
    const now = performance.now();
    const quota = now < window.endsAfter ? take(window, now) : undefined;
    return quota ?? wait(sender, window);
  };
}

function secondsUntil(end: number, now: number): number {
  // Rounded to microseconds first: an error of floating point must not become a second.
  return Math.ceil(Math.round((end - now) * 1000) / 1_000_000);
}

interface Lease {
  readonly leased: number;
  readonly unleased: number;
  readonly milliseconds: number;
}

// The clock of the database, for all gateways. Constant within a statement.
const now = '(extract(epoch FROM now()) * 1000000)::bigint';

// The requests that wait, or a tenth of what is left, whichever is more.
const leaseOf = (left: string) => `least(${left}, greatest($3, ${left} / 10))`;

// Who has waited for the row of another began before its window: it lasts no longer for that.
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
  RETURNING leased, $2 - used AS unleased, least(ends - ${now}, $4 * 1000000::bigint)::float8 / 1000 AS milliseconds`;

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
    const leasing = read<Lease>(leaseStatement, [key, requests, wanted, seconds]);
    const [lease] = await leasing.catch((error) => {
      if (!isWriteRefused(error)) throw error;
      // What only reads is served: each process counts by itself.
      return [{ leased: requests, unleased: 0, milliseconds: seconds * 1000 }];
    });
    if (!lease) throw new Error('The rate limit gave no lease.');
    return lease;
  };
}
