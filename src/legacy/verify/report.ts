// The report of a comparison: differences grouped by kind and place, with counts and a few examples.

import { type Accepted, type Difference, isAccepted, type Kind } from '../compare/difference.ts';

export interface Example {
  readonly sentence: string;
  readonly asked: { readonly there: string; readonly here: string };
}

export interface Group {
  readonly kind: Kind;
  readonly where: string | undefined;
  /** Answers that differ in this way, weighted by how often apps sent the request. */
  readonly times: number;
  /** A few; for `records` up to 10,000, since a file of them is useful. */
  readonly examples: readonly Example[];
}

const maxExamples = 10;
/** An operator who repairs a listing needs the ids. */
const maxRecords = 10_000;
/** Groups before the rest is counted by kind only: a source may have another extra field in each record. */
const maxGroups = 1_000;

interface Collected extends Pick<Group, 'kind' | 'where'> {
  times: number;
  readonly examples: Map<string, Example>;
}

export class Report {
  readonly #groups = new Map<string, Collected>();
  readonly notes: string[] = [];

  /** @param hide removes secrets from quoted text: some services repeat credentials */
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

  add({ kind, where, sentence }: Difference, asked: Example['asked'], times = 1): void {
    const own = `${kind} ${where}`;
    // A place that is accepted is never merged with other places.
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
    // The same sentence from another ordering is no new example.
    const most = kind === 'records' ? maxRecords : maxExamples;
    if (group.examples.has(shown) || group.examples.size >= most) return;
    group.examples.set(shown, { sentence: shown, asked });
  }

  /** The most frequent first. */
  groups(): Readonly<Record<'different' | 'accepted', readonly Group[]>> {
    const groups = [...this.#groups.values()]
      .map((group) => ({ ...group, examples: [...group.examples.values()] }))
      .sort((a, b) => b.times - a.times);
    const accepted = groups.filter((group) => this.isAccepted(group));
    return { different: groups.filter((group) => !accepted.includes(group)), accepted };
  }
}

export const countTimes = (groups: readonly Group[]) =>
  groups.reduce((sum, { times }) => sum + times, 0);
