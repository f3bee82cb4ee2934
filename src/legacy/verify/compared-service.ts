// One of the two compared services, over HTTP: targets are sent unchanged, and answers are not interpreted.
import { setTimeout as sleep } from 'node:timers/promises';
import { ConfigError } from '../../config/config.ts';
import { type Answer, HttpClient, UndecodableError } from '../../http/client.ts';
import { maxPageBytes, SourceError } from '../../old-listing/page.ts';
import {
  isTemporary,
  type RetryOptions,
  maxAttempts as rateLimitedAttempts,
  retry,
} from '../../old-listing/retry.ts';
import { servedByHeader } from '../proxy/forwarded-headers.ts';

/** The old service, and this one. */
export const sides = ['theirs', 'ours'] as const;
export type Side = (typeof sides)[number];
export type Both<Value> = Readonly<Record<Side, Value>>;

export interface ComparedService {
  /** Scheme, host and port. */
  readonly base: string;
  /** Bases of its links; undefined: `base`. */
  readonly linkBases?: readonly string[];
  readonly path: string;
  /** Sends a target unchanged, and follows no redirect. @throws Error without a whole answer in time */
  ask(method: Method, target: string, signal: AbortSignal, headers?: SentHeaders): Promise<Answer>;
  close(): unknown;
}

/** Headers of one request, with names in lower case; they replace those of all requests. */
export type SentHeaders = Readonly<Record<string, string>>;

/** Read-only methods: a comparison changes nothing. */
export type Method = 'GET' | 'HEAD' | 'OPTIONS' | 'TRACE';

interface HttpServiceOptions {
  readonly url: string;
  readonly headers?: Headers;
  readonly timeout: number;
}

const noAnswer: Answer = { status: 0, headers: {}, body: Buffer.alloc(0) };

export function createHttpService({ url, headers, timeout }: HttpServiceOptions): ComparedService {
  const { origin, host, pathname, protocol } = new URL(url);
  const client = new HttpClient();
  const given: SentHeaders = Object.fromEntries(headers ?? []);
  const sent = { accept: 'application/json', 'accept-encoding': 'identity', ...given };
  const scheme = given['x-forwarded-proto'] ?? protocol.slice(0, -1);
  const limits = { timeout, maxBytes: maxPageBytes };
  return {
    base: origin,
    linkBases: [origin, `${scheme}://${given['host'] ?? host}`],
    path: pathname,
    async ask(method, target, signal, own = {}) {
      const request = { method, target, headers: { ...sent, ...own }, signal, ...limits };
      return client.ask(origin, request).catch((error) => {
        if (!(error instanceof UndecodableError)) throw error;
        return { ...noAnswer, undecodable: error.message };
      });
    },
    close: () => client.close(),
  };
}

/** Why a comparison has ended, which reports what was found before. @throws any other error */
export function readBreak(error: unknown): string {
  if (error instanceof SourceError) return error.message;
  throw error;
}

/** This gateway. @throws ConfigError where it forwards: the old service would be compared with itself */
export function createOwnService(options: HttpServiceOptions): ComparedService {
  const service = createHttpService(options);
  return {
    ...service,
    async ask(method, target, signal, headers) {
      const answer = await service.ask(method, target, signal, headers);
      if (answer.headers[servedByHeader] !== 'legacy') return answer;
      throw new ConfigError(
        `${service.base} passes requests on to the old service, which would be compared with itself: give --against a gateway that has LEGACY_MODE=off (or mirror).`,
      );
    },
  };
}

/** Rate limit: starts requests at equal intervals. @param rate requests a second at most, retries included */
export function limitRate(service: ComparedService, rate: number): ComparedService {
  let next = 0;
  return {
    ...service,
    async ask(method, target, signal, headers) {
      signal.throwIfAborted();
      const now = performance.now();
      const begin = Math.max(now, next);
      next = begin + 1000 / rate;
      if (begin > now) await sleep(begin - now, undefined, { signal });
      return service.ask(method, target, signal, headers);
    },
  };
}

/** An answer, or the last one of all attempts; status 0: none came. */
export interface Asked extends Answer {
  /** Why all attempts failed. */
  readonly failure?: string;
}

interface AskOptions extends RetryOptions {
  readonly headers?: SentHeaders;
}

/** @throws SourceError where another attempt is of no use */
export async function askWithRetry(
  service: ComparedService,
  method: Method,
  target: string,
  options: AskOptions,
): Promise<Asked> {
  let last = noAnswer;
  const attempt = async () => {
    last = noAnswer;
    const answer = await service.ask(method, target, options.signal, options.headers);
    const { status, headers } = answer;
    if (!isTemporary(status)) return { result: answer };
    last = answer;
    return {
      problem: `answered ${status}`,
      retryAfter: headers['retry-after'],
      // A rate limit says nothing about the answer, so it gets all attempts.
      ...(status === 429 ? { maxAttempts: rateLimitedAttempts } : {}),
    };
  };
  const outcome = await retry(`${service.base}${target}`, attempt, options);
  return 'result' in outcome ? outcome.result : { ...last, failure: outcome.sentence };
}
