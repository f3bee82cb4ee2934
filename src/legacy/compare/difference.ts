// The kinds of differences between two answers, for reports, `--accept`, LEGACY_ACCEPT and metrics.

import { ConfigError } from '../../config.ts';

export const kindMeanings = {
  status: 'another status',
  header: 'a header that apps see is missing, additional or another, such as those of CORS',
  count: 'another `count`',
  next: 'another `next` link',
  previous: 'another `previous` link',
  'key-order': 'the keys of an object come in another order',
  'missing-field': 'a field of the old service is missing here',
  'extra-field': 'a field is here that the old service does not have',
  value: 'a field has another value',
  'record-order': 'records come in another order',
  'record-number': 'a record is missing here, or is only here',
  'error-body': 'another body of an error',
  'not-json': 'one side is not JSON, or not in a way that all apps can read; its place says why',
  'bytes-only': 'the same JSON, written in another way (escapes, spaces, numbers)',
  'previous-page-1': 'decided: `previous` of page 2 has `page=1` here',
  'unknown-ordering': 'decided: an unknown `ordering` is a 400 here, and the default order there',
  'several-orderings': 'an `ordering` of several fields that is a 400 here, and sorts there',
  fraction: 'decided: timestamps have six zeros of fraction here where the old service has none',
  'ignored-ordering': 'an `ordering` that the old service passes over, and that sorts here',
  'tie-order': 'decided: records with the same value to sort by come in the order of ids here',
  unreachable: 'one side gave no whole answer, so nothing could be compared',
} as const;

export type Kind = keyof typeof kindMeanings;
export const kinds = Object.keys(kindMeanings) as readonly Kind[];

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
