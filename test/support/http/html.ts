// Reads the pages of this service: strictly, so that markup from data could not hide in them.
/** What Chrome sends. */
export const accept =
  'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8';

const tag = /<(\/?)([a-z][a-z0-9]*)((?: [a-zA-Z-]+(?:="[^"<]*")?)*)(\/?)>/g;

export interface Element {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
}

/** The elements of a page, in their order. Throws for anything that is neither text nor a plain tag. */
export function elementsOf(html: string): Element[] {
  const body = html.replace(/^<!DOCTYPE html>/, '');
  const rest = body.replace(tag, '');
  if (rest.includes('<')) throw new Error(`No tag: ${rest.slice(rest.indexOf('<')).slice(0, 100)}`);
  return [...body.matchAll(tag)]
    .filter(([, slash]) => slash === '')
    .map(([, , name = '', attributes = '']) => ({
      name,
      attributes: Object.fromEntries(
        [...attributes.matchAll(/ ([a-zA-Z-]+)(?:="([^"]*)")?/g)].map(
          ([, key = '', value = '']) => [key, decode(value)],
        ),
      ),
    }));
}

/** The texts of all elements of a kind, without what is inside them. */
export function textsOf(html: string, name: string): string[] {
  const whole = new RegExp(`<${name}(?: [^>]*)?>(.*?)</${name}>`, 'gs');
  return [...html.matchAll(whole)].map(([, inner = '']) => decode(inner.replace(tag, '')));
}

/** Addresses that a page leads to. */
export function hrefsOf(html: string): string[] {
  return elementsOf(html).flatMap(({ attributes: { href } }) => (href === undefined ? [] : [href]));
}

function decode(text: string): string {
  return text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&');
}
