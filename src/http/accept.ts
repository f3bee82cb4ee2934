// Proactive negotiation by the Accept header (RFC 9110 §12.5.1).

interface Range {
  /** Ends with a semicolon when the range has parameters other than `q`. */
  readonly name: string;
  readonly weight: number;
}

export function parseRanges(header: string): Range[] {
  return header.toLowerCase().split(',').map(parseRange);
}

function parseRange(text: string): Range {
  const [name = '', ...parameters] = text.split(';').map((piece) => piece.trim());
  const q = parameters.findIndex((parameter) => parameter.startsWith('q='));
  return {
    name: q > 0 || (q < 0 && parameters.length > 0) ? `${name};` : name,
    weight: q < 0 ? 1 : Number(parameters[q]?.slice(2)) || 0,
  };
}

/** By the most specific range that matches; of equals, the one whose range comes first, then the first of `types`. */
export function preferredType<Type extends string>(
  accept: string,
  types: readonly Type[],
): { readonly type: Type; readonly weight: number } | undefined {
  const ranges = parseRanges(accept);
  let best: { type: Type; weight: number; place: number } | undefined;
  for (const type of types) {
    const names = [type, `${type};`, `${type.split('/', 1)[0]}/*`, '*/*'];
    const name = names.find((one) => ranges.some((range) => range.name === one));
    for (const [place, range] of ranges.entries()) {
      if (range.name !== name || range.weight === 0) continue;
      const lead = range.weight - (best?.weight ?? 0) || (best?.place ?? 0) - place;
      if (lead > 0) best = { type, weight: range.weight, place };
    }
  }
  return best;
}

/** What programs in Java send that have asked for nothing in particular. */
const java = /^text\/html, image\/gif, image\/jpeg, (?:\*; q=\.2, )?\*\/\*; q=0?\.2$/;

/** Whether it names HTML and prefers it to the `others` that may answer, as browsers do. */
export function prefersHtml(
  accept = '',
  others: readonly string[] = ['application/json'],
): boolean {
  // Most requests come from programs, and this is asked for each.
  if (!/text\/html/i.test(accept) || java.test(accept)) return false;
  const page = preferredType(accept, ['text/html']);
  return page !== undefined && page.weight > (preferredType(accept, others)?.weight ?? 0);
}

const json = new Set(['*/*', 'application/*', 'application/json']);

/** Whether an `Accept` header takes JSON. Parameters do not count, not even `q=0`: as in DRF. */
export function acceptsJson(header: string | undefined): boolean {
  if (header === undefined || header.trim() === '' || json.has(header)) return true;
  return header
    .split(',')
    .some((part) => json.has((part.split(';')[0] ?? '').trim().toLowerCase()));
}
