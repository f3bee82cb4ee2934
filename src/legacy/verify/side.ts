// One of the two services that are compared, asked over HTTP: in exactly the words that are given, and
// with what it answers left as it is.
import { setTimeout as sleep } from 'node:timers/promises';
import { type Answer, HttpClient } from '../../http/client.ts';
import { maxPageBytes, SourceError } from '../../transfer/source/batch.ts';
import { maxAttempts as patient, type RetryOptions, retry } from '../../transfer/source/retry.ts';
import type { Kind } from '../compare/difference.ts';
import { servedByHeader } from '../proxy/forwarded-headers.ts';

export interface Side {
  /** Scheme, host and port. */
  readonly base: string;
  readonly path: string;
  /** Asks for a target as it stands, and follows no redirect. @throws Error when there is no whole answer in time */
  ask(method: Method, target: string, signal: AbortSignal): Promise<Answer>;
  close(): unknown;
}

/** Nothing that compares may change anything. */
export type Method = 'GET' | 'HEAD' | 'OPTIONS';

interface HttpSideOptions {
  readonly url: string;
  readonly headers?: Headers;
  readonly timeout: number;
}

export function createHttpSide({ url, headers, timeout }: HttpSideOptions): Side {
  const { origin, pathname } = new URL(url);
  const client = new HttpClient();
  const accept = { accept: 'application/json', 'accept-encoding': 'identity' };
  const sent = { ...accept, ...Object.fromEntries(headers ?? []) };
  const limits = { timeout, maxBytes: maxPageBytes };
  return {
    base: origin,
    path: pathname,
    ask: (method, target, signal) =>
      client.ask(origin, { method, target, headers: sent, signal, ...limits }),
    close: () => client.close(),
  };
}

/** Nothing that was compared says anything. */
export class PassedOnError extends SourceError {}

/** This service. One that passes requests on would have the old service compared with itself: PassedOnError. */
export function createOwnSide(options: HttpSideOptions): Side {
  const side = createHttpSide(options);
  return {
    ...side,
    async ask(method, target, signal) {
      const answer = await side.ask(method, target, signal);
      if (answer.headers[servedByHeader] !== 'legacy') return answer;
      throw new PassedOnError(
        `${side.base} passes requests on to the old service, which would be compared with itself: give --against a gateway that has LEGACY_MODE=off (or mirror).`,
      );
    },
  };
}

/** Lets one request begin at a time, at equal distances. @param rate requests a second at most, retries included */
export function paceSide(side: Side, rate: number): Side {
  let next = 0;
  return {
    ...side,
    async ask(method, target, signal) {
      signal.throwIfAborted();
      const now = performance.now();
      const begin = Math.max(now, next);
      next = begin + 1000 / rate;
      if (begin > now) await sleep(begin - now, undefined, { signal });
      return side.ask(method, target, signal);
    },
  };
}

export interface AskAgainOptions extends RetryOptions {
  /** An error of the service is its answer in the end; otherwise NoAnswerError. */
  readonly allowErrors?: boolean;
}

export class NoAnswerError extends SourceError {
  constructor(
    sentence: string,
    readonly kind: Kind,
  ) {
    super(sentence);
  }
}

export async function askAgain(
  side: Side,
  method: Method,
  target: string,
  { allowErrors = false, ...options }: AskAgainOptions,
): Promise<Answer> {
  let last: Answer | undefined;
  const attempt = async () => {
    last = undefined;
    const answer = await side.ask(method, target, options.signal);
    const { status, headers } = answer;
    if (status !== 429 && status < 500) return { result: answer };
    last = answer;
    return {
      problem: `answered ${status}`,
      retryAfter: headers['retry-after'],
      // It is about the asking, not about the answer.
      ...(status === 429 ? { maxAttempts: patient } : {}),
    };
  };
  const outcome = await retry(`${side.base}${target}`, attempt, options);
  if ('result' in outcome) return outcome.result;
  if (last && allowErrors) return last;
  throw new NoAnswerError(outcome.sentence, last ? 'status' : 'unreachable');
}
