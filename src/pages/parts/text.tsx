// Untrusted text on a page: visible, and without effect on the text around it.
import type { ComponentChildren } from 'preact';
import { parseUrl } from '../../config/values.ts';

/** Control characters, lone surrogates, line separators, bidirectional overrides. */
const controls = /[^\P{Cc}\t\n]|\p{Cs}|[\u2028-\u202e\u2066-\u2069]/gu;

/** In a sentence: control characters as their pictures; the others are removed. */
export function shownText(text: string): string {
  return text.replace(controls, (character) =>
    character < ' ' ? String.fromCharCode(0x2400 + character.charCodeAt(0)) : '',
  );
}

/** Undefined for text without visible characters, which cannot be a name. */
export function visibleText(text: string): string | undefined {
  const shown = shownText(text);
  return /[^\s\p{Cf}]/u.test(shown) ? shown : undefined;
}

/** In JSON: as escapes, which keep the value. */
function shownJson(json: string): string {
  return json.replace(
    controls,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Text in an unknown language; its first strong character sets the direction. */
export function Text({ children }: { readonly children: string }) {
  return <bdi dir="auto">{shownText(children)}</bdi>;
}

/** Text whose hashtags are links. A hashtag has the characters that the filter takes. */
export function Hashtags({ children, root }: { readonly children: string; readonly root: string }) {
  return shownText(children)
    .split(/([#\uff03][\p{L}\p{N}\p{M}_]{1,100})/u)
    .map((part, index) => {
      if (index % 2 === 0) return part;
      return <a href={`${root}/outfits/?hashtag=${encodeURIComponent(part.slice(1))}`}>{part}</a>;
    });
}

/** The URL of text that is an http or https address. Never `javascript:` or `data:`, which run in the page. */
export function webAddressOf(text: string): string | undefined {
  return /^https?:\/\/\S+$/i.test(text) ? parseUrl(text)?.href : undefined;
}

const strings = /"(?:[^"\\]|\\.)*"/g;
/** Only non-ASCII text can change the direction of the text around it. */
const isPlain = /^[\x20-\x7e]*$/;

/** Indented JSON with links. */
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
