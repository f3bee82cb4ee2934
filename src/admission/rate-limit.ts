// Counts requests of a sender in the database, in leases that gateways share.
import { LRUCache } from 'lru-cache';
import type { RateLimit } from '../config.ts';
import type { ReadRows } from '../database/read.ts';
import { SharedTask, startOutside } from '../database/task.ts';
import { throttled } from '../errors.ts';

/**
 * Gives nothing when the database was not asked.
 * @throws HttpError 429 when the sender has used up its window, 503 when the database cannot say
 */
export type CountRequest = (sender: string) => Promise<void> | undefined;

/** The window of a sender: it begins with its first request, and is the same for all gateways on one database. */
class Window {
  /** Requests that were leased and may still be used here, as long as the window lasts. */
  left = 0;
  isUsedUp = false;
  /** By `performance.now()`, its end is between these two: the database took so long to answer. */
  endsAfter = 0;
  endsBefore = 0;
  isAsking = false;
  readonly waiting: { admit(): void; refuse(error: unknown): void }[] = [];
}

const maxSenders = 50_000;
const clearingInterval = 60_000;

/**
 * All gateways on a database share one limit. They lease several requests at a time: one write per request would cost
 * more than most answers. What is leased and never used is lost, so together they never admit more than the limit.
 * @param timeout seconds that a lease may take
 */
export function createRateLimiter(limit: RateLimit, read: ReadRows, timeout: number): CountRequest {
  const windows = new LRUCache<string, Window>({ max: maxSenders });
  const leaseNow = createLessor(limit, read);
  // Never aborted: a lease that one client waits for serves the next requests of its sender.
  const patience = new AbortController();
  const lease = (sender: string, wanted: number) =>
    new SharedTask(timeout, () => leaseNow(sender, wanted), sender).wait(patience);
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
        return undefined;
      }
      if (window.isUsedUp) throw throttledUntil(window.endsBefore, now);
    }
    return new Promise((admit, refuse) => {
      window.waiting.push({ admit, refuse });
      if (!window.isAsking) serveWaiting(window, (wanted) => lease(sender, wanted));
    });
  };
}

async function serveWaiting(
  window: Window,
  lease: (wanted: number) => Promise<Lease>,
): Promise<void> {
  window.isAsking = true;
  try {
    while (window.waiting.length > 0) {
      const sent = performance.now();
      const { leased, isUsedUp, milliseconds } = await lease(window.waiting.length);
      const now = performance.now();
      // Served even if the window has ended meanwhile: the lease was for them.
      const served = window.waiting.splice(0, leased);
      for (const { admit } of served) admit();
      window.left = leased - served.length;
      window.isUsedUp = isUsedUp;
      window.endsAfter = sent + milliseconds;
      window.endsBefore = now + milliseconds;
      if (!isUsedUp) continue;
      for (const { refuse } of window.waiting.splice(0)) {
        refuse(throttledUntil(window.endsBefore, now));
      }
    }
  } catch (error) {
    for (const { refuse } of window.waiting.splice(0)) refuse(error);
  } finally {
    window.isAsking = false;
  }
}

function throttledUntil(moment: number, now: number) {
  // What is below a microsecond comes from the arithmetic, and must not become a second.
  return throttled(Math.ceil(Math.round((moment - now) * 1000) / 1_000_000));
}

interface Lease {
  readonly leased: number;
  readonly isUsedUp: boolean;
  readonly milliseconds: number;
}

// One clock for all gateways. It stands still during a statement.
const now = '(extract(epoch FROM now()) * 1000000)::bigint';

// What was wanted, or else a tenth of what is left.
const leaseOf = (left: string) => `least(${left}, greatest($3, ${left} / 10))`;

const leaseStatement = `
  INSERT INTO rate_limits AS known (sender, ends, used, leased)
  SELECT $1, ${now} + $4 * 1000000::bigint, lease, lease FROM (SELECT ${leaseOf('$2::int')}) AS first (lease)
  ON CONFLICT (sender) DO UPDATE SET (ends, used, leased) = (
    SELECT w.ends, w.used + l.lease, l.lease
    FROM (
      SELECT known.ends, known.used WHERE known.ends > ${now}
      UNION ALL
      SELECT excluded.ends, 0 WHERE known.ends <= ${now}
    ) AS w (ends, used)
    CROSS JOIN LATERAL (SELECT ${leaseOf('($2 - w.used)')}) AS l (lease)
  )
  RETURNING leased, used = $2 AS "isUsedUp", (ends - ${now})::float8 / 1000 AS milliseconds`;

// Never waits for a window that is being leased from: that could become a circle.
const clearStatement = `
  DELETE FROM rate_limits WHERE sender IN (
    SELECT sender FROM rate_limits WHERE ends <= ${now} FOR UPDATE SKIP LOCKED
  )`;

function createLessor({ requests, seconds }: RateLimit, read: ReadRows) {
  let cleared = performance.now();
  return async (sender: string, wanted: number): Promise<Lease> => {
    if (performance.now() - cleared > clearingInterval) {
      cleared = performance.now();
      startOutside(() => read(clearStatement, [])).catch(() => {});
    }
    // With another limit every sender begins anew.
    const key = `${requests}/${seconds} ${sender}`;
    const [lease] = await read<Lease>(leaseStatement, [key, requests, wanted, seconds]);
    if (!lease) throw new Error('The rate limit gave no lease.');
    return lease;
  };
}
