// Sends a request to both services, compares the answers, and rechecks a difference before it is reported:
// both services may change during the comparison, and not at the same moment.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Answer } from '../../http/client.ts';
import { compareAnswers } from '../compare/compare.ts';
import type { Difference, Kind } from '../compare/difference.ts';
import type { Answers, ComparedRequest, ComparedServices, Select } from './compared-requests.ts';
import { type AskOptions, askWithRetry, NoAnswerError } from './compared-service.ts';
import type { Report } from './report.ts';

interface Suspect {
  readonly request: ComparedRequest;
  readonly differences: readonly Difference[];
  readonly select: Select;
}

type AttemptLimits = Pick<AskOptions, 'maxAttempts' | 'allowErrors'>;

interface CheckerOptions extends ComparedServices {
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

/** Kinds of difference that a change of the data during the comparison can cause. */
const transientKinds: ReadonlySet<Kind> = new Set<Kind>([
  'status',
  'count',
  'next',
  'previous',
  'value',
  'record-order',
  'record-number',
  'error-body',
  'unreachable',
]);

export class Checker {
  compared = 0;
  /** Why no more requests are sent: a service is unreachable. */
  unreachable: string | undefined;
  #failuresInRow = 0;
  readonly #confirmed = new Map<string, number>();
  #suspects: Suspect[] = [];

  constructor(readonly options: CheckerOptions) {}

  async ask(
    { method, legacyTarget, ownTarget }: ComparedRequest,
    limits: AttemptLimits = {},
  ): Promise<Answers> {
    const options = { ...this.options, ...limits };
    const [theirs, ours] = await Promise.all([
      askWithRetry(options.theirs, method, legacyTarget, options),
      askWithRetry(options.ours, method, ownTarget, options),
    ]);
    return { theirs, ours };
  }

  askOne(side: 'theirs' | 'ours', target: string, limits: AttemptLimits = {}): Promise<Answer> {
    return askWithRetry(this.options[side], 'GET', target, { ...this.options, ...limits });
  }

  /** Gives an empty answer for a failure: a later comparison of the same request reports it. */
  async askOrEmpty(side: 'theirs' | 'ours', target: string): Promise<Answer> {
    try {
      return await this.askOne(side, target, { maxAttempts, allowErrors: true });
    } catch (error) {
      if (!(error instanceof NoAnswerError)) throw error;
      return { status: 0, headers: {}, body: Buffer.alloc(0) };
    }
  }

  compare({ method, legacyTarget }: ComparedRequest, { theirs, ours }: Answers): Difference[] {
    const bases = { theirs: this.options.theirs.base, ours: this.options.ours.base };
    return compareAnswers({ method, target: legacyTarget }, theirs, ours, bases);
  }

  /** Compares a request; differences are reported at once, or after a recheck. */
  async check(
    request: ComparedRequest,
    select: Select = (differences) => differences,
  ): Promise<Partial<Answers>> {
    const answers = await this.#askBoth(request);
    this.compared++;
    const differences = this.#find(request, answers, select);
    if (differences.some((difference) => this.needsRecheck(difference))) {
      await this.suspect(request, differences, select);
    } else this.report(request, differences);
    return 'kind' in answers ? {} : answers;
  }

  async suspect(
    request: ComparedRequest,
    differences: readonly Difference[],
    select: Select,
  ): Promise<void> {
    this.#suspects.push({ request, differences, select });
    if (this.#suspects.length >= maxSuspects) await this.recheck();
  }

  needsRecheck(difference: Difference): boolean {
    if (!transientKinds.has(difference.kind) || this.options.report.isAccepted(difference))
      return false;
    return (this.#confirmed.get(keyOf(difference)) ?? 0) < maxRechecked;
  }

  report(request: ComparedRequest, differences: readonly Difference[]): void {
    const { theirs, ours, report } = this.options;
    const asked = {
      there: `${request.method === 'GET' ? '' : `${request.method} `}${theirs.base}${request.legacyTarget}`,
      here: `${ours.base}${request.ownTarget}`,
    };
    for (const difference of differences) report.add(difference, asked, request.times);
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
      for (const [index, suspect] of suspects.entries()) {
        const { request, select } = suspect;
        if (this.unreachable !== undefined) {
          this.report(request, suspect.differences);
          continue;
        }
        const answers = await this.#askBoth(request).catch((error: unknown) => {
          this.#suspects.push(...left, ...suspects.slice(index));
          throw error;
        });
        const differences = this.#find(request, answers, select);
        const isLast = round === delays.length - 1;
        if (!isLast && differences.some((found) => this.needsRecheck(found))) {
          left.push({ request, differences, select });
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

  #find(request: ComparedRequest, answers: Answers | Difference, select: Select): Difference[] {
    if ('kind' in answers) return [answers];
    return select(this.compare(request, answers));
  }

  /** A failure becomes a difference, and an error status an answer, unless the request is required. */
  async #askBoth(request: ComparedRequest): Promise<Answers | Difference> {
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
      return { kind: error.kind, sentence: error.message };
    }
  }
}

function keyOf({ kind, where }: Difference): string {
  return `${kind} ${where}`;
}
