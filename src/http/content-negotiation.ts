// Content negotiation by the headers Accept and Accept-Encoding.
import { LRUCache } from 'lru-cache';

interface Range {
  /** Ends with a semicolon when the range has parameters other than `q`. */
  readonly name: string;
  readonly weight: number;
}

/** Caches what `parse` returns for a header: clients send the same one with each request. */
export function memoizeHeader<Parsed extends object>(parse: (header: string) => Parsed) {
  const cache = new LRUCache<string, Parsed>({ max: 100 });
  return (header: string): Parsed => {
    const cached = cache.get(header);
    if (cached) return cached;
    const parsed = parse(header);
    if (header.length <= 200) cache.set(header, parsed);
    return parsed;
  };
}

/** Ranges with their weights. @see https://www.rfc-editor.org/rfc/rfc9110#section-12.4.2 */
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

/**
 * The type with the highest weight, by its most specific range. Of equals, the one whose range comes first, then the
 * first of `types`.
 * @see https://www.rfc-editor.org/rfc/rfc9110#section-12.5.1
 */
export function preferredType<Type extends string>(accept: string, types: readonly Type[]) {
  const ranges = parseRanges(accept);
  const placeOf = (name: string) => ranges.findIndex((range) => range.name === name);
  const [best] = types
    .map((type) => {
      const names = [type, `${type};`, `${type.split('/', 1)[0]}/*`, '*/*'];
      const place = names.map(placeOf).find((found) => found !== -1) ?? -1;
      return { type, place, weight: ranges[place]?.weight ?? 0 };
    })
    .sort((a, b) => b.weight - a.weight || a.place - b.place);
  return best && best.weight > 0 ? best : undefined;
}

/** Default header of HttpURLConnection in Java: no browser. */
const java = /^text\/html, image\/gif, image\/jpeg, (?:\*; q=\.2, )?\*\/\*; q=0?\.2$/;

/** Whether `accept` names HTML and prefers it to `others`, as browsers do. */
export function prefersHtml(
  accept = '',
  others: readonly string[] = ['application/json'],
): boolean {
  // Fast path: most requests come from programs.
  if (!/text\/html/i.test(accept) || java.test(accept)) return false;
  const page = preferredType(accept, ['text/html']);
  return page !== undefined && page.weight > (preferredType(accept, others)?.weight ?? 0);
}

const json = new Set(['*/*', 'application/*', 'application/json']);

/** Whether `Accept` allows JSON. Parameters are ignored, `q=0` included, as in Django REST Framework. */
export function acceptsJson(header: string | undefined): boolean {
  if (header === undefined || header.trim() === '' || json.has(header)) return true;
  return header
    .split(',')
    .some((part) => json.has((part.split(';')[0] ?? '').trim().toLowerCase()));
}
