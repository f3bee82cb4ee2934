// The kinds of differences between two answers, for reports, `--accept`, LEGACY_ACCEPT and metrics.

import { ConfigError } from '../../config/config.ts';

export const kindMeanings = {
  status: 'another status, or no complete answer of one side (its place: unreachable)',
  header: 'a header that apps see is missing, additional or another, such as those of CORS',
  value: 'a field has another value, or is on one side only; also `count`, `next` and `previous`',
  records: 'records are missing here, only here, or in another order; its place says which',
  body: 'another error, or a body that not all apps can read as JSON; its place says why',
  'bytes-only': 'the same JSON, written in another way (order of keys, escapes, spaces, numbers)',
  'previous-page-1': 'decided: `previous` of page 2 has `page=1` here',
  'unknown-ordering': 'decided: an unknown `ordering` is a 400 here, and the default order there',
  'several-orderings': 'an `ordering` of several fields that is a 400 here, and sorts there',
  fraction: 'decided: timestamps have six zeros of fraction here where the old service has none',
  'tie-order': 'decided: records with the same value to sort by come in the order of ids here',
} as const;

export type Kind = keyof typeof kindMeanings;
export const kinds = Object.keys(kindMeanings) as readonly Kind[];

/** Kinds that a change of the data between two answers can cause. */
export const transientKinds: ReadonlySet<Kind> = new Set([
  'status',
  'header',
  'value',
  'records',
  'body',
]);

export interface Difference {
  readonly kind: Kind;
  /** A header, or a path in the body such as `results.likes`; never a value, because it is logged. */
  readonly where?: string;
  /** One sentence for a person, not for logs: it may quote values of the body. */
  readonly sentence: string;
}

/** Accepted differences: a kind such as `fraction`, or a kind in one place such as `value:results.likes`. */
export type Accepted = ReadonlySet<string>;

export function isAcceptable(text: string): boolean {
  return kinds.includes(text.split(':', 1)[0] as Kind);
}

/** @throws ConfigError for a kind of LEGACY_ACCEPT that does not exist */
export function acceptedOf(names: readonly string[]): Accepted {
  const unknown = names.find((name) => !isAcceptable(name));
  if (unknown !== undefined) {
    throw new ConfigError(
      `LEGACY_ACCEPT names ${JSON.stringify(unknown)}, but the kinds of differences are ${kinds.join(', ')}.`,
    );
  }
  return new Set(names);
}

export function isAccepted(
  accepted: Accepted,
  { kind, where }: { readonly kind: Kind; readonly where?: string | undefined },
): boolean {
  return accepted.has(kind) || accepted.has(`${kind}:${where}`);
}

/** Collects the differences of two answers: each kind once per place, with a count. */
export class Findings {
  readonly #found = new Map<string, { difference: Difference; times: number }>();

  add(kind: Kind, where: string | undefined, sentence: string): void {
    const key = `${kind} ${where}`;
    const found = this.#found.get(key);
    if (found) found.times++;
    else {
      const difference = where === undefined ? { kind, sentence } : { kind, where, sentence };
      this.#found.set(key, { difference, times: 1 });
    }
  }

  list(): Difference[] {
    return [...this.#found.values()].map(({ difference, times }) => {
      if (times === 1) return difference;
      const more = ` (and ${times - 1} more such on this page)`;
      return { ...difference, sentence: difference.sentence.replace(/\.?$/, `${more}.`) };
    });
  }
}
