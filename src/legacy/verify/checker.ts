// Asks both services the same, compares, and asks again before anything is called different: both may
// change while they are compared, and not at the same moment.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Answer } from '../../http/client.ts';
import { compareAnswers } from '../compare/compare.ts';
import type { Difference, Kind } from '../compare/difference.ts';
import type { Answers, Inquiry, Select, Sides } from './questions.ts';
import type { Report } from './report.ts';
import { type AskAgainOptions, askAgain, NoAnswerError } from './side.ts';

interface Doubt {
  readonly inquiry: Inquiry;
  readonly differences: readonly Difference[];
  readonly select: Select;
}

type Limits = Pick<AskAgainOptions, 'maxAttempts' | 'allowErrors'>;

interface CheckerOptions extends Sides {
  readonly report: Report;
  readonly signal: AbortSignal;
  readonly notify: (sentence: string) => void;
  /** Milliseconds before a difference is looked at for the last time; a quarter of it before. */
  readonly wait: number;
}

/** Doubts that are held before they are settled. */
const maxDoubts = 500;
/** A difference that so many answers still had when asked again is one of the rule, not of the moment. */
const maxSettled = 50;
/** How often a side is asked that fails, where that is a difference and not the end. */
const maxAttempts = 2;
/** After so many questions in a row without answer nobody answers any more. */
const maxUnreachable = 50;

/** The kinds that a change of the data can cause while both sides are asked. */
const passing: ReadonlySet<Kind> = new Set<Kind>([
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
  /** Why it is in vain to ask more, when it is. */
  dead: string | undefined;
  #unreachable = 0;
  readonly #settled = new Map<string, number>();
  #doubts: Doubt[] = [];

  constructor(readonly options: CheckerOptions) {}

  async ask({ method, there, here }: Inquiry, limits: Limits = {}): Promise<Answers> {
    const options = { ...this.options, ...limits };
    const [theirs, ours] = await Promise.all([
      askAgain(options.theirs, method, there, options),
      askAgain(options.ours, method, here, options),
    ]);
    return { theirs, ours };
  }

  askOne(side: 'theirs' | 'ours', target: string, limits: Limits = {}): Promise<Answer> {
    return askAgain(this.options[side], 'GET', target, { ...this.options, ...limits });
  }

  /** Nothing where it fails: that is found when it is compared. */
  async askBriefly(side: 'theirs' | 'ours', target: string): Promise<Answer> {
    try {
      return await this.askOne(side, target, { maxAttempts, allowErrors: true });
    } catch (error) {
      if (!(error instanceof NoAnswerError)) throw error;
      return { status: 0, headers: {}, body: Buffer.alloc(0) };
    }
  }

  compare({ method, there }: Inquiry, { theirs, ours }: Answers): Difference[] {
    const bases = { theirs: this.options.theirs.base, ours: this.options.ours.base };
    return compareAnswers({ method, target: there }, theirs, ours, bases);
  }

  /** Asks and compares; what differs is reported, at once or when it has been asked again. */
  async check(
    inquiry: Inquiry,
    select: Select = (differences) => differences,
  ): Promise<Partial<Answers>> {
    const answers = await this.#tryBoth(inquiry);
    this.compared++;
    const differences = this.#find(inquiry, answers, select);
    if (differences.some((difference) => this.isDoubtful(difference))) {
      await this.doubt(inquiry, differences, select);
    } else this.report(inquiry, differences);
    return 'kind' in answers ? {} : answers;
  }

  async doubt(inquiry: Inquiry, differences: readonly Difference[], select: Select): Promise<void> {
    this.#doubts.push({ inquiry, differences, select });
    if (this.#doubts.length >= maxDoubts) await this.settle();
  }

  isDoubtful(difference: Difference): boolean {
    if (!passing.has(difference.kind) || this.options.report.isAccepted(difference)) return false;
    return (this.#settled.get(keyOf(difference)) ?? 0) < maxSettled;
  }

  report(inquiry: Inquiry, differences: readonly Difference[]): void {
    const { theirs, ours, report } = this.options;
    const asked = {
      there: `${inquiry.method === 'GET' ? '' : `${inquiry.method} `}${theirs.base}${inquiry.there}`,
      here: `${ours.base}${inquiry.here}`,
    };
    for (const difference of differences) report.add(difference, asked, inquiry.times);
  }

  /** Asks again for all that is in doubt, and reports what differs still. */
  async settle(): Promise<void> {
    let doubts = this.#doubts;
    this.#doubts = [];
    const { wait, signal } = this.options;
    const delays = [wait / 4, wait];
    for (const [round, delay] of delays.entries()) {
      if (doubts.length === 0) return;
      if (this.dead === undefined) await sleep(delay, undefined, { signal });
      const left: Doubt[] = [];
      for (const [index, doubt] of doubts.entries()) {
        const { inquiry, select } = doubt;
        if (this.dead !== undefined) {
          this.report(inquiry, doubt.differences);
          continue;
        }
        const answers = await this.#tryBoth(inquiry).catch((error: unknown) => {
          this.#doubts.push(...left, ...doubts.slice(index));
          throw error;
        });
        const differences = this.#find(inquiry, answers, select);
        const isLast = round === delays.length - 1;
        if (!isLast && differences.some((found) => this.isDoubtful(found))) {
          left.push({ inquiry, differences, select });
        } else this.#confirm(inquiry, differences);
      }
      doubts = left;
    }
  }

  giveUp(): void {
    for (const { inquiry, differences } of this.#doubts.splice(0))
      this.report(inquiry, differences);
  }

  #confirm(inquiry: Inquiry, differences: readonly Difference[]): void {
    for (const difference of differences) {
      const key = keyOf(difference);
      this.#settled.set(key, (this.#settled.get(key) ?? 0) + 1);
    }
    this.report(inquiry, differences);
  }

  #find(inquiry: Inquiry, answers: Answers | Difference, select: Select): Difference[] {
    if ('kind' in answers) return [answers];
    return select(this.compare(inquiry, answers));
  }

  /** A side that does not answer is a difference, and an error of it is its answer. */
  async #tryBoth(inquiry: Inquiry): Promise<Answers | Difference> {
    if (inquiry.isPatient) return this.ask(inquiry);
    try {
      const answers = await this.ask(inquiry, { maxAttempts, allowErrors: true });
      this.#unreachable = 0;
      return answers;
    } catch (error) {
      if (!(error instanceof NoAnswerError)) throw error;
      if (++this.#unreachable >= maxUnreachable) {
        this.dead = `${maxUnreachable} requests in a row had no answer. ${error.message}`;
      }
      return { kind: error.kind, sentence: error.message };
    }
  }
}

function keyOf({ kind, where }: Difference): string {
  return `${kind} ${where}`;
}
