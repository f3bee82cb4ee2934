// Asks a side until it answers, or has failed too often.
import { setTimeout as sleep } from 'node:timers/promises';
import { SourceError } from '../import/batch.ts';
import { delayAfter, explainFailure, tries as patient, readRetryAfter } from '../import/retry.ts';
import type { Answer } from './compare.ts';
import type { Kind } from './difference.ts';
import type { Method, Side } from './side.ts';

export interface AskAgainOptions {
  readonly signal: AbortSignal;
  readonly notify: (sentence: string) => void;
  /** How often a side is asked that fails. A 429 is asked again more often: it is about the asking. */
  readonly tries?: number;
  /** An error of the service is its answer in the end; otherwise NoAnswerError. */
  readonly allowErrors?: boolean;
}

/** A side that has failed too often. */
export class NoAnswerError extends SourceError {
  readonly kind: Kind;

  constructor(sentence: string, kind: Kind) {
    super(sentence);
    this.kind = kind;
  }
}

/** @throws NoAnswerError after all tries */
export async function askAgain(
  side: Side,
  method: Method,
  target: string,
  { signal, notify, tries = patient, allowErrors = false }: AskAgainOptions,
): Promise<Answer> {
  const url = `${side.base}${target}`;
  for (let attempt = 1; ; attempt++) {
    let problem: string;
    let kind: Kind = 'unreachable';
    let least = 0;
    let most = tries;
    try {
      const answer = await side.ask(method, target, signal);
      const { status, headers } = answer;
      if (status !== 429 && status < 500) return answer;
      if (status === 429) most = patient;
      if (attempt >= most && allowErrors) return answer;
      kind = 'status';
      problem = `answered ${status}`;
      least = readRetryAfter(headers['retry-after']);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof SourceError) throw error;
      problem = `did not answer (${explainFailure(error)})`;
    }
    if (attempt >= most) {
      const often = attempt === 1 ? '' : ` failed ${attempt} times; the last time it`;
      throw new NoAnswerError(`${url}${often} ${problem}.`, kind);
    }
    const delay = delayAfter(attempt, least);
    notify(`${url} ${problem}; trying again in ${(delay / 1000).toFixed(1)} s.`);
    await sleep(delay, undefined, { signal });
  }
}
