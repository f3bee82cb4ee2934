// Sends a request to both services, compares the answers, and rechecks a difference before it is reported:
// both services may change during the comparison, and not at the same moment.
import { setTimeout as sleep } from 'node:timers/promises';
import { SourceError } from '../../old-listing/page.ts';
import { compareAnswers } from '../compare/compare.ts';
import { type Difference, transientKinds } from '../compare/difference.ts';
import type { ComparedRequest } from './compared-requests.ts';
import {
  type Asked,
  askWithRetry,
  type Both,
  type ComparedService,
  type SentHeaders,
  type Side,
} from './compared-service.ts';
import type { Report } from './report.ts';

interface Suspect {
  readonly request: ComparedRequest;
  readonly differences: readonly Difference[];
}

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
  #failuresInRow = 0;
  readonly #confirmed = new Map<string, number>();
  #suspects: Suspect[] = [];

  constructor(readonly options: CheckerOptions) {}

  /** @param query of the listing @throws SourceError without an answer */
  async askOne(side: Side, query: string): Promise<Asked> {
    const service = this.options[side];
    const answer = await askWithRetry(service, 'GET', service.path + query, this.options);
    if (answer.failure !== undefined) throw new SourceError(answer.failure);
    return answer;
  }

  /**
   * Compares a request; differences are reported at once, or after a recheck.
   * @throws SourceError when a required request fails, or a service is unreachable
   */
  async check(request: ComparedRequest): Promise<Both<Asked>> {
    const answers = await this.#ask(request);
    this.compared++;
    const differences = this.#compare(request, answers);
    if (!differences.some((difference) => this.#needsRecheck(difference))) {
      this.report(request, differences);
    } else if (this.#suspects.push({ request, differences }) >= maxSuspects) {
      await this.recheck();
    }
    return answers;
  }

  async #ask(request: ComparedRequest): Promise<Both<Asked>> {
    const { method, targets, isConditional, comparesLength, isRequired } = request;
    const limits = isRequired ? {} : { maxAttempts };
    const headers = this.#headersOf(request);
    const ask = async (side: Side) => {
      const send = (own: SentHeaders, as = method) =>
        askWithRetry(this.options[side], as, targets[side], {
          ...{ ...this.options, ...limits },
          headers: own,
        });
      const answer = await send(headers);
      const { etag, 'content-length': length } = answer.headers;
      if (isConditional && etag !== undefined) return send({ ...headers, 'if-none-match': etag });
      const isMeasured = comparesLength && length !== undefined;
      return isMeasured ? withLengthOfGet(answer, await send(headers, 'GET')) : answer;
    };
    const [theirs, ours] = await Promise.all([ask('theirs'), ask('ours')]);
    const failure = theirs.failure ?? ours.failure;
    if (isRequired && failure !== undefined) {
      const found = this.#compare(request, { theirs, ours });
      this.report(
        request,
        found.filter(({ kind }) => kind === 'status'),
      );
      throw new SourceError(failure);
    }
    this.#failuresInRow = findSilent({ theirs, ours }) === undefined ? 0 : this.#failuresInRow + 1;
    if (this.#failuresInRow >= maxFailuresInRow) {
      throw new SourceError(`${maxFailuresInRow} requests in a row had no answer. ${failure}`);
    }
    return { theirs, ours };
  }

  /** All have an origin: the headers of CORS depend on it. */
  #headersOf = ({ headers }: ComparedRequest) => ({ origin: this.options.origin, ...headers });

  #compare(request: ComparedRequest, answers: Both<Asked>): Difference[] {
    const { method, targets, select } = request;
    const { theirs, ours } = this.options;
    const silent = findSilent(answers);
    // A proxy that ends the connection of TRACE says nothing about the service.
    if (method === 'TRACE' && answers.theirs.status === 0) return [];
    if (silent !== undefined) return [{ kind: 'status', where: 'unreachable', sentence: silent }];
    const bases = { theirs: theirs.linkBases ?? theirs.base, ours: ours.linkBases ?? ours.base };
    const compared = { method, target: targets.theirs, headers: this.#headersOf(request) };
    const found = compareAnswers(compared, answers.theirs, answers.ours, bases);
    return select ? select(found, answers) : found;
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
    let suspects = this.#suspects.splice(0);
    const { wait, signal } = this.options;
    for (const [isLast, delay] of [[false, wait / 4] as const, [true, wait] as const]) {
      if (suspects.length === 0) return;
      const left: Suspect[] = [];
      try {
        await sleep(delay, undefined, { signal });
        for (; suspects[0]; suspects.shift()) {
          const [{ request }] = suspects as [Suspect];
          const differences = this.#compare(request, await this.#ask(request));
          const isOpen = differences.some((found) => this.#needsRecheck(found));
          if (!isLast && isOpen) left.push({ request, differences });
          else this.#confirm(request, differences);
        }
      } catch (error) {
        this.#suspects.push(...left, ...suspects);
        throw error;
      }
      suspects = left;
    }
  }

  /** Reports what was not rechecked, since the comparison has ended before. */
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
}

/** Links make `Content-Length` another at each service: compared is whether it is that of GET. @see RFC 9110 §9.3.2 */
function withLengthOfGet(head: Asked, { status, body }: Asked): Asked {
  const { 'content-length': given, 'content-encoding': encoding } = head.headers;
  if (encoding !== undefined || status !== head.status) return head;
  const length = Number(given) === body.length ? 'that of GET' : `${given}, not that of GET`;
  return { ...head, headers: { ...head.headers, 'content-length': length } };
}

/** Why a service has given no answer at all. */
const findSilent = ({ theirs, ours }: Both<Asked>) =>
  [theirs, ours].find(({ status, failure }) => status === 0 && failure !== undefined)?.failure;

const keyOf = ({ kind, where }: Difference) => `${kind} ${where}`;
