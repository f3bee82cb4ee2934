// AUTH_WEBHOOK_URL: another service, such as the old one, verifies credentials and names their user.
import { hash } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { LRUCache } from 'lru-cache';
import { type Config, legacyHostFor } from '../config/config.ts';
import { Lane } from '../database/connection/lane.ts';
import { HttpError, unavailable } from '../errors.ts';
import { HttpClient } from '../http/client.ts';
import { bearerIn, decodeClaims, toUserId, type Viewer } from './viewer.ts';

export interface Credential {
  readonly authorization: string | undefined;
  /** Pairs of the header Cookie that AUTH_COOKIES names. */
  readonly cookie: string | undefined;
}

/**
 * Applies the rate limit before a request to the webhook, and returns the sender that is charged for it.
 * @param userId the user of the credential by the last decision, which has expired
 */
export type Charge = (userId: number | undefined) => Promise<string> | string;

interface Decision {
  /** Undefined: the credential is refused. */
  readonly userId: number | undefined;
  readonly isStaff?: boolean;
  /** Milliseconds, by `performance.now()`. */
  readonly expires: number;
}

interface AnsweredDecision extends Decision {
  readonly answer?: unknown;
}

/** Called with each user that the webhook names, before the decision is used. */
export type OnUser = (userId: number, answer: unknown) => Promise<void>;

/** `stale`: no request, an accepted credential went on while the webhook failed. */
type Outcome = 'accepted' | 'refused' | 'failed' | 'timeout' | 'stale';

/** Called with each request to the webhook, when it has ended. */
export type ObserveWebhook = (outcome: Outcome, seconds: number) => void;

export type WebhookConfig = Pick<
  Config,
  'authWebhookStale' | 'authWebhookTtl' | 'legacyHost' | 'legacyUrl' | 'requestTimeout'
>;

/** Concurrency limit of requests to the webhook, for all senders and for one. More wait: senders take turns. */
const limits = { slots: 32, perSender: 8 };
const maxWaiting = 1_000;
/** Cached decisions of each outcome: a flood of refused credentials does not evict accepted ones. */
const maxKept = 20_000;
const createCache = () => new LRUCache<string, Decision>({ max: maxKept });
const maxBytes = 65_536;
/** Most milliseconds of a request to the webhook, and of the wait before it. */
const maxTime = 5_000;

/** Milliseconds of a shutdown that they may still take: less than a request has then. */
const stopDelay = 1_500;

class ServerError extends Error {}

/** Whether the webhook itself failed: by a timeout, its connection, or a 5xx. Other answers are a mistake to mend. */
function isOutage(error: NodeJS.ErrnoException): boolean {
  const isConnection = /^(?:E[A-Z]+$|UND_ERR_)/.test(error.code ?? '');
  return isConnection || error.name === 'TimeoutError' || error instanceof ServerError;
}

/** Errors of a kept connection that the server closes just as it is used again. */
const staleConnection = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

export class Webhook {
  readonly #client = new HttpClient();
  readonly #origin: string;
  readonly #target: string;
  readonly #host: Readonly<Record<string, string>>;
  /** Milliseconds. */
  readonly #period: number;
  readonly #timeout: number;
  /** Milliseconds that an accepted credential goes on while the webhook fails. */
  readonly #stale: number;
  /** Whether the last request to the webhook failed: nobody waits for it whose credential goes on. */
  #isFailing = false;
  readonly #lane: Lane;
  /** By digest: no credential stays in memory. Expired entries stay, to charge their user for the next request. */
  readonly #decisions = { accepted: createCache(), refused: createCache() };
  readonly #underWay = new Map<string, Promise<Decision>>();
  readonly #stopped = new AbortController();

  constructor(
    url: string,
    config: WebhookConfig,
    private readonly onUser: OnUser | undefined,
    private readonly observe: ObserveWebhook | undefined,
  ) {
    const { authWebhookStale, authWebhookTtl, requestTimeout } = config;
    const { origin, pathname, search } = new URL(url);
    this.#origin = origin;
    this.#target = pathname + search;
    this.#host = legacyHostFor(url, config);
    this.#period = authWebhookTtl;
    this.#stale = authWebhookStale;
    this.#timeout = Math.min(maxTime, requestTimeout / 2);
    this.#lane = new Lane({ ...limits, maxWait: this.#timeout });
    this.#lane.limitWaiting(maxWaiting);
    setMaxListeners(0, this.#stopped.signal);
  }

  /** Undefined: the credential is refused. @throws HttpError 503 without an answer, or what `charge` throws */
  async authenticate(credential: Credential, charge: Charge): Promise<Viewer | undefined> {
    const key = digestOf(credential);
    let decision = this.#find(key);
    if (!decision) {
      const sender = await charge(this.#decisions.accepted.get(key)?.userId);
      decision = this.#find(key) ?? (await this.#askOrGoOn(key, credential, sender));
    }
    const { userId, isStaff = false, expires } = decision;
    if (userId === undefined) return undefined;
    return {
      userId,
      ...(isStaff ? { isStaff } : {}),
      expiresAt: (Date.now() + expires - performance.now()) / 1000,
      renewal: {
        grace: this.#period / 1000,
        renew: async () => {
          // One sender for all streams: requests do not wait behind them.
          const viewer = await this.authenticate(credential, () => 'streams');
          return viewer?.userId === userId ? viewer : undefined;
        },
      },
    };
  }

  /** At shutdown: requests that still wait are refused while they can be answered. */
  stopSoon(): void {
    setTimeout(() => this.#stopped.abort(unavailable()), stopDelay).unref();
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  #find(key: string): Decision | undefined {
    const kept = Object.values(this.#decisions).map((cache) => cache.get(key));
    return kept.find((one) => one !== undefined && performance.now() < one.expires);
  }

  /** While the webhook fails, a credential that it has accepted goes on; it is asked about all the same. */
  async #askOrGoOn(key: string, credential: Credential, sender: string): Promise<Decision> {
    const asking = this.#askOnce(key, credential, sender);
    const early = this.#goOn(key, credential);
    if (!early) {
      return asking.catch((error) => {
        const kept = this.#goOn(key, credential);
        if (kept) return kept;
        throw error;
      });
    }
    asking.catch(() => {});
    return early;
  }

  /** The last acceptance of a credential in an outage, if it is recent enough, and the token itself has not expired. */
  #goOn(key: string, { authorization }: Credential): Decision | undefined {
    const kept = this.#decisions.accepted.get(key);
    const now = performance.now();
    const until = (kept?.expires ?? 0) - this.#period + this.#stale;
    const { exp } = decodeClaims(bearerIn(authorization)) ?? {};
    const isOver = now >= until || (exp !== undefined && exp <= Date.now() / 1000);
    if (!this.#isFailing || !kept || isOver) return undefined;
    this.observe?.('stale', 0);
    return { ...kept, expires: Math.min(now + this.#period, until) };
  }

  #askOnce(key: string, credential: Credential, sender: string): Promise<Decision> {
    const pending = this.#underWay.get(key);
    if (pending) return pending;
    const asking = this.#askInTurn(credential, sender)
      .then(async ({ answer, ...decision }) => {
        const { userId } = decision;
        if (userId !== undefined) await this.onUser?.(userId, answer);
        for (const cache of Object.values(this.#decisions)) cache.delete(key);
        this.#decisions[userId === undefined ? 'refused' : 'accepted'].set(key, decision);
        return decision;
      })
      .finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, asking);
    return asking;
  }

  async #askInTurn(credential: Credential, sender: string): Promise<AnsweredDecision> {
    const origin = { sender };
    await this.#lane.enter(origin, this.#stopped.signal);
    const begin = performance.now();
    let outcome: Outcome = 'failed';
    try {
      const decision = await this.#ask(credential);
      outcome = decision.userId === undefined ? 'refused' : 'accepted';
      this.#isFailing = false;
      // Counted from before the request: the credential may be revoked right after the decision.
      return { ...decision, expires: begin + this.#period };
    } catch (cause) {
      if ((cause as Error).name === 'TimeoutError') outcome = 'timeout';
      this.#isFailing = isOutage(cause as Error);
      throw cause instanceof HttpError ? cause : unavailable({ cause });
    } finally {
      this.#lane.leave(origin);
      this.observe?.(outcome, (performance.now() - begin) / 1000);
    }
  }

  async #ask({ authorization, cookie }: Credential): Promise<Omit<AnsweredDecision, 'expires'>> {
    const question = {
      target: this.#target,
      headers: {
        ...this.#host,
        accept: 'application/json',
        ...(authorization === undefined ? {} : { authorization }),
        ...(cookie === undefined ? {} : { cookie }),
      },
      // Not that of the client: the decision serves the next request of one that has left.
      signal: this.#stopped.signal,
      timeout: this.#timeout,
      maxBytes,
    };
    const ask = () => this.#client.ask(this.#origin, question);
    const { status, body } = await ask().catch((error) => {
      if (!staleConnection.has(error.code)) throw error;
      return ask();
    });
    if (status === 401 || status === 403) return { userId: undefined };
    if (status !== 200) {
      const ErrorType = status >= 500 ? ServerError : Error;
      throw new ErrorType(`AUTH_WEBHOOK_URL was answered with status ${status}.`);
    }
    const answer = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
    const userId = toUserId(answer?.id);
    if (userId === undefined) {
      throw new Error('AUTH_WEBHOOK_URL was answered without the number of a user as "id".');
    }
    return { userId, isStaff: answer.is_staff === true, answer };
  }
}

function digestOf({ authorization, cookie }: Credential): string {
  return hash('sha256', JSON.stringify([authorization ?? null, cookie ?? null]), 'base64');
}
