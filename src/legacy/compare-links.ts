// When two links mean the same: those of `next`, `previous` and `Location`.

/** The base addresses that count as one, such as `https://old.example.com`. */
export interface Bases {
  /** Several: whichever of them a link begins with. */
  readonly theirs: string | readonly string[];
  readonly ours: string;
}

/**
 * @returns `same`, `page-1` where only ours names the first page, or `other`. All but the base must
 * be the same letter by letter: apps keep links, and compare them.
 */
export function compareLinks(
  theirs: string,
  ours: string,
  bases: Bases,
): 'same' | 'page-1' | 'other' {
  const [there, here] = [withoutBase(theirs, bases.theirs), withoutBase(ours, bases.ours)];
  if (there === here) return 'same';
  return there === withoutPage1(here) ? 'page-1' : 'other';
}

/** What follows the base; a link with another base stays whole. */
export function withoutBase(link: string, base: Bases['theirs']): string {
  const rests = [base]
    .flat()
    .filter((start) => link.startsWith(start))
    .map((start) => link.slice(start.length));
  const rest = rests.find((text) => /^(?:[/?#]|$)/.test(text));
  return rest === undefined ? link : `<base>${rest}`;
}

function withoutPage1(link: string): string {
  const [path = '', query] = link.split('?', 2);
  if (query === undefined) return link;
  const others = query.split('&').filter((part) => part !== 'page=1');
  return others.length > 0 ? `${path}?${others.join('&')}` : path;
}
