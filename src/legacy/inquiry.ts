// A question that both services are asked, and what they answer.
import type { Answer } from './compare.ts';
import type { Difference } from './difference.ts';
import type { Method } from './side.ts';

/** The same question to both. */
export interface Inquiry {
  readonly method: Method;
  /** Path and query on the side of the source, and on ours. */
  readonly there: string;
  readonly here: string;
  /** How often it was asked by apps. */
  readonly times?: number;
  /** A page of many: a side that fails is given longer, and then it is the end. */
  readonly isPatient?: boolean;
}

export interface Answers {
  readonly theirs: Answer;
  readonly ours: Answer;
}

/** Leaves out what is no difference, or is reported in another way. */
export type Select = (differences: Difference[], answers: Answers) => Difference[];
