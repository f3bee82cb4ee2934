// What a comparison has found: each kind in each place once, with how often, and a few examples.

import { type Accepted, type Difference, isAccepted, type Kind } from '../compare/difference.ts';

export interface Example {
  readonly sentence: string;
  readonly asked?: { readonly there: string; readonly here: string } | undefined;
}

export interface Group {
  readonly kind: Kind;
  readonly where: string | undefined;
  /** Answers that differ in this way; weighted by how often apps asked. */
  readonly times: number;
  /** A few; of records that only one side has, so many that a file with them is of use. */
  readonly examples: readonly Example[];
}

const maxExamples = 10;
/** Whoever mends a listing needs to know which records. */
const maxRecords = 10_000;
/** Groups that are told apart: a source may have another extra field in each record. */
const maxGroups = 1_000;

interface Collected extends Pick<Group, 'kind' | 'where'> {
  times: number;
  readonly examples: Map<string, Example>;
}

export class Report {
  readonly #groups = new Map<string, Collected>();
  readonly notes: string[] = [];

  /** @param hide takes secrets out of what is quoted: some services repeat credentials */
  constructor(
    private readonly accepting: Accepted,
    private readonly hide = (text: string) => text,
  ) {}

  note(sentence: string): void {
    if (!this.notes.includes(sentence)) this.notes.push(sentence);
  }

  isAccepted(difference: Pick<Group, 'kind' | 'where'> | Difference): boolean {
    return isAccepted(this.accepting, difference);
  }

  add({ kind, where, sentence }: Difference, asked?: Example['asked'], times = 1): void {
    const own = `${kind} ${where}`;
    // What is accepted in one place must not be among others.
    const hasOwn =
      this.#groups.has(own) ||
      this.#groups.size < maxGroups ||
      this.accepting.has(`${kind}:${where}`);
    const key = hasOwn ? own : kind;
    const group = this.#groups.get(key) ?? {
      kind,
      where: hasOwn ? where : 'others',
      times: 0,
      examples: new Map(),
    };
    this.#groups.set(key, group);
    group.times += times;
    const shown = this.hide(sentence);
    // The same record in another order is no other example.
    const most = kind === 'record-number' ? maxRecords : maxExamples;
    if (group.examples.has(shown) || group.examples.size >= most) return;
    group.examples.set(shown, { sentence: shown, asked });
  }

  get different(): Group[] {
    return this.#sorted().filter((group) => !this.isAccepted(group));
  }

  get accepted(): Group[] {
    return this.#sorted().filter((group) => this.isAccepted(group));
  }

  #sorted(): Group[] {
    return [...this.#groups.values()]
      .map((group) => ({ ...group, examples: [...group.examples.values()] }))
      .sort((a, b) => b.times - a.times);
  }
}

export const countTimes = (groups: readonly Group[]) =>
  groups.reduce((sum, { times }) => sum + times, 0);
