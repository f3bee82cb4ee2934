// The weights of an Accept header, and whether it prefers a page for people.

/**
 * The type with the greatest weight, the first of equals. Undefined: none has a weight over 0.
 * @param types what an answer may be, by the ranges that take it, such as `text/html`
 */
export function heaviest<Type>(accept: string, types: ReadonlyMap<string, Type>) {
  let best: { type: Type; weight: number } | undefined;
  for (const part of accept.toLowerCase().split(',')) {
    const [range = '', ...parameters] = part.split(';').map((piece) => piece.trim());
    const type = types.get(range);
    const weight = Number(parameters.find((piece) => piece.startsWith('q='))?.slice(2) ?? 1);
    if (type && weight > (best?.weight ?? 0)) best = { type, weight };
  }
  return best;
}

const html = new Map([['text/html', 'text/html']]);

/** The ranges of an `Accept` header that take JSON. */
export const json: ReadonlyMap<string, string> = new Map([
  ['*/*', 'application/json'],
  ['application/*', 'application/json'],
  ['application/json', 'application/json'],
]);

/** What programs in Java send that have asked for nothing in particular. */
const java = /^text\/html, image\/gif, image\/jpeg, (?:\*; q=\.2, )?\*\/\*; q=0?\.2$/;

/**
 * Whether an `Accept` header takes HTML rather than any other type of an answer, as browsers do.
 * @param others those types
 */
export function prefersHtml(accept = '', others: ReadonlyMap<string, unknown> = json): boolean {
  // Most requests come from programs, and this is asked for each.
  if (!/text\/html/i.test(accept) || java.test(accept)) return false;
  const page = heaviest(accept, html);
  return page !== undefined && page.weight > (heaviest(accept, others)?.weight ?? 0);
}
