// Text of anyone, on a page: as it reads, and unable to touch what stands around it.
import type { ComponentChildren } from 'preact';
import { parseUrl } from '../../config.ts';

/** Controls, lone surrogates, line separators, and what turns the direction of the text that follows. */
const controls = /[^\P{Cc}\t\n]|\p{Cs}|[\u2028-\u202e\u2066-\u2069]/gu;

/** In a sentence: those that have a picture are shown by it, the others have nothing to show. */
export function shownText(text: string): string {
  return text.replace(controls, (character) =>
    character < ' ' ? String.fromCharCode(0x2400 + character.charCodeAt(0)) : '',
  );
}

/** Undefined for a text with nothing in it to see, which could name nothing. */
export function visibleText(text: string): string | undefined {
  const shown = shownText(text);
  return /[^\s\p{Cf}]/u.test(shown) ? shown : undefined;
}

/** In JSON: as an escape, which means the same. */
export function shownJson(json: string): string {
  return json.replace(
    controls,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Text in a language that is not known, read from the side that it begins at. */
export function Text({ children }: { readonly children: string }) {
  return <bdi dir="auto">{shownText(children)}</bdi>;
}

/** The address that a text is, as a browser would ask for it. Never `javascript:` or `data:`, which run in a page. */
export function webAddressOf(text: string): string | undefined {
  return /^https?:\/\/\S+$/i.test(text) ? parseUrl(text)?.href : undefined;
}

const strings = /"(?:[^"\\]|\\.)*"/g;
/** What can turn the direction of the text around it is beyond ASCII. */
const isPlain = /^[\x20-\x7e]*$/;

/** JSON as people read it: indented, and with addresses that can be followed. */
export function JsonView({ value }: { readonly value: unknown }) {
  const text = shownJson(JSON.stringify(value, null, 2));
  const parts: ComponentChildren[] = [];
  let end = 0;
  for (const match of text.matchAll(strings)) {
    const [token] = match;
    const address = webAddressOf(JSON.parse(token));
    const shown = address ? (
      <a href={address} rel="nofollow ugc noreferrer">
        {token}
      </a>
    ) : isPlain.test(token) ? undefined : (
      <bdi>{token}</bdi>
    );
    if (!shown) continue;
    parts.push(text.slice(end, match.index), shown);
    end = match.index + token.length;
  }
  return (
    <pre class="code">
      {parts}
      {text.slice(end)}
    </pre>
  );
}
