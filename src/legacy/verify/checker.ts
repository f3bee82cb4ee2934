// Sends a request to both services, compares the answers, and rechecks a difference before it is reported:
// both services may change during the comparison, and not at the same moment.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Answer } from '../../http/client.ts';
import { compareAnswers } from '../compare/compare.ts';
import { type Difference, transientKinds } from '../compare/difference.ts';
import type { ComparedRequest } from './compared-requests.ts';
import {
  type AskOptions,
  askWithRetry,
  type Both,
  type ComparedService,
  type Method,
  NoAnswerError,
  type Side,
} from './compared-service.ts';
import type { Report } from './report.ts';

interface Suspect {
  readonly request: ComparedRequest;
  readonly differences: readonly Difference[];
}

type AttemptLimits = Pick<AskOptions, 'maxAttempts' | 'allowErrors'>;

interface CheckerOptions extends Both<ComparedService> {
  /** Origin of a web app, which requests are sent with: the headers of CORS depend on it. */
  readonly origin: string;
  readonly report: Report;
  readonly signal: AbortSignal;
  readonly notify: (sentence: string) => void;
  /** Milliseconds before the last recheck of a difference; the first one comes after a quarter of it. */
  readonly wait: number;
}

/** Suspects that are collected before they are rechecked. */
const maxSuspects = 500;
/** Rechecks that confirmed a difference in one place: after so many, it is systematic and reported at once. */
const maxRechecked = 50;
/** Attempts of a request whose failure is a difference, and does not end the comparison. */
const maxAttempts = 2;
/** Consecutive failures after which a service counts as unreachable. */
const maxFailuresInRow = 50;

export class Checker {
  compared = 0;
  /** Why no more requests are sent: a service is unreachable. */
  unreachable: string | undefined;
  #failuresInRow = 0;
  readonly #confirmed = new Map<string, number>();
  #suspects: Suspect[] = [];

  constructor(readonly options: CheckerOptions) {}

  async ask(request: ComparedRequest, limits: AttemptLimits = {}): Promise<Both<Answer>> {
    const { method, targets, isConditional, comparesLength } = request;
    const options = { ...this.options, ...limits, headers: this.#headersOf(request) };
    const ask = async (side: Side) => {
      const [service, target] = [this.options[side], targets[side]];
      const answer = await askWithRetry(service, method, target, options);
      const { etag, 'content-length': length } = answer.headers;
      if (isConditional && etag !== undefined) {
        const headers = { ...options.headers, 'if-none-match': etag };
        return askWithRetry(service, method, target, { ...options, headers });
      }
      if (!comparesLength || length === undefined) return answer;
      return withLengthOfGet(answer, await askWithRetry(service, 'GET', target, options));
    };
    const [theirs, ours] = await Promise.all([ask('theirs'), ask('ours')]);
    return { theirs, ours };
  }

  /** All have an origin: the headers of CORS depend on it. */
  #headersOf = ({ headers }: ComparedRequest) => ({ origin: this.options.origin, ...headers });

  /** @param query of the listing */
  askOne(side: Side, query: string): Promise<Answer> {
    const service = this.options[side];
    return askWithRetry(service, 'GET', service.path + query, this.options);
  }

  /** Gives an empty answer of the source for a failure: a later comparison of the same request reports it. */
  askSource(target: string, method: Method = 'GET'): Promise<Answer> {
    const options = { ...this.options, maxAttempts, allowErrors: true };
    return askWithRetry(this.options.theirs, method, target, options).catch((error) => {
      if (!(error instanceof NoAnswerError)) throw error;
      return { status: 0, headers: {}, body: Buffer.alloc(0) };
    });
  }

  compare(request: ComparedRequest, answers: Both<Answer>): Difference[] {
    const { method, targets, select } = request;
    const { theirs, ours } = this.options;
    const bases = { theirs: theirs.linkBases ?? theirs.base, ours: ours.linkBases ?? ours.base };
    const compared = { method, target: targets.theirs, headers: this.#headersOf(request) };
    const found = compareAnswers(compared, answers.theirs, answers.ours, bases);
    return select ? select(found, answers) : found;
  }

  /** Compares a request; differences are reported at once, or after a recheck. */
  async check(request: ComparedRequest): Promise<Partial<Both<Answer>>> {
    const answers = await this.#askBoth(request);
    this.compared++;
    await this.settle(request, answers);
    return 'kind' in answers ? {} : answers;
  }

  /** Reports the differences of two answers, now or after a recheck. */
  async settle(request: ComparedRequest, answers: Both<Answer> | Difference): Promise<void> {
    const differences = this.#find(request, answers);
    if (!differences.some((difference) => this.#needsRecheck(difference))) {
      this.report(request, differences);
      return;
    }
    this.#suspects.push({ request, differences });
    if (this.#suspects.length >= maxSuspects) await this.recheck();
  }

  #needsRecheck(difference: Difference): boolean {
    if (!transientKinds.has(difference.kind) || this.options.report.isAccepted(difference))
      return false;
    return (this.#confirmed.get(keyOf(difference)) ?? 0) < maxRechecked;
  }

  report({ method, targets, times }: ComparedRequest, differences: readonly Difference[]): void {
    const { theirs, ours, report } = this.options;
    const asked = {
      there: `${method === 'GET' ? '' : `${method} `}${theirs.base}${targets.theirs}`,
      here: `${ours.base}${targets.ours}`,
    };
    for (const difference of differences) report.add(difference, asked, times);
  }

  /** Sends the requests of all suspects again, and reports what still differs. */
  async recheck(): Promise<void> {
    let suspects = this.#suspects;
    this.#suspects = [];
    const { wait, signal } = this.options;
    const delays = [wait / 4, wait];
    for (const [round, delay] of delays.entries()) {
      if (suspects.length === 0) return;
      if (this.unreachable === undefined) await sleep(delay, undefined, { signal });
      const left: Suspect[] = [];
      for (const [index, { request, differences: before }] of suspects.entries()) {
        if (this.unreachable !== undefined) {
          this.report(request, before);
          continue;
        }
        const answers = await this.#askBoth(request).catch((error: unknown) => {
          this.#suspects.push(...left, ...suspects.slice(index));
          throw error;
        });
        const differences = this.#find(request, answers);
        const isLast = round === delays.length - 1;
        if (!isLast && differences.some((found) => this.#needsRecheck(found))) {
          left.push({ request, differences });
        } else this.#confirm(request, differences);
      }
      suspects = left;
    }
  }

  reportUnconfirmed(): void {
    for (const { request, differences } of this.#suspects.splice(0))
      this.report(request, differences);
  }

  #confirm(request: ComparedRequest, differences: readonly Difference[]): void {
    for (const difference of differences) {
      const key = keyOf(difference);
      this.#confirmed.set(key, (this.#confirmed.get(key) ?? 0) + 1);
    }
    this.report(request, differences);
  }

  #find(request: ComparedRequest, answers: Both<Answer> | Difference): Difference[] {
    return 'kind' in answers ? [answers] : this.compare(request, answers);
  }

  /** A failure becomes a difference, and an error status an answer, unless the request is required. */
  async #askBoth(request: ComparedRequest): Promise<Both<Answer> | Difference> {
    if (request.isRequired) return this.ask(request);
    try {
      const answers = await this.ask(request, { maxAttempts, allowErrors: true });
      this.#failuresInRow = 0;
      return answers;
    } catch (error) {
      if (!(error instanceof NoAnswerError)) throw error;
      if (++this.#failuresInRow >= maxFailuresInRow) {
        this.unreachable = `${maxFailuresInRow} requests in a row had no answer. ${error.message}`;
      }
      return error.difference;
    }
  }
}

/** Links make `Content-Length` another at each service: compared is whether it is that of GET. @see RFC 9110 §9.3.2 */
function withLengthOfGet(head: Answer, { status, body }: Answer): Answer {
  const { 'content-length': given, 'content-encoding': encoding } = head.headers;
  if (encoding !== undefined || status !== head.status) return head;
  const length = Number(given) === body.length ? 'that of GET' : `${given}, not that of GET`;
  return { ...head, headers: { ...head.headers, 'content-length': length } };
}

function keyOf({ kind, where }: Difference): string {
  return `${kind} ${where}`;
}
