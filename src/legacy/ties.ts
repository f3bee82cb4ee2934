// Records that share what they are sorted by: a source may give them in any order, and ours gives them
// in the order of their ids.
import type { Difference } from './difference.ts';
import { readListingPage } from './listing-page.ts';

interface Page {
  readonly status: number;
  readonly body: Buffer;
}

/** Gives differences in the records of a page another kind where ties explain them all. */
export function nameTies(
  target: string,
  theirs: Page,
  ours: Page,
  differences: readonly Difference[],
): Difference[] {
  const isOfTies = ({ kind, where }: Difference) =>
    where === 'results' && (kind === 'record-number' || kind === 'record-order');
  if (!differences.some(isOfTies) || !areTied(theirs, ours, fieldOf(target))) {
    return [...differences];
  }
  const sentence =
    'Records with the same value to sort by come in another order among themselves in the source.';
  const tied: Difference = { kind: 'tie-order', where: 'results', sentence };
  return [...differences.filter((difference) => !isOfTies(difference)), tied];
}

/** The field of a record that a request sorts by. */
function fieldOf(target: string): string {
  const query = target.split('?').slice(1).join('?');
  const ordering = new URLSearchParams(query).getAll('ordering').at(-1) || 'created';
  const field = ordering.replace(/^-/, '');
  return field === 'like_count' ? 'likes' : field;
}

/**
 * Whether both pages have the same values to sort by, and records that only one of them has share
 * theirs with the first or last one: then it is open which of them comes first.
 */
function areTied(theirs: Page, ours: Page, field: string): boolean {
  const [there, here] = [theirs, ours].map((page) => readListingPage(page, field)?.records ?? []);
  if (!there || !here || there.length !== here.length) return false;
  if (there.some(({ key }, index) => key !== here[index]?.key)) return false;
  const [first, last] = [there[0]?.key, there.at(-1)?.key];
  const keys = new Map(there.map(({ id, key }) => [id, key]));
  return here.every(({ id, key }) => {
    const other = keys.get(id);
    return other === undefined ? key === first || key === last : other === key;
  });
}
