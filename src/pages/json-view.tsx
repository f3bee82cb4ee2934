// JSON as people read it: indented, and with addresses that can be followed.
import type { ComponentChildren } from 'preact';
import { shownJson, webAddressOf } from './text.tsx';

const strings = /"(?:[^"\\]|\\.)*"/g;
/** What can turn the direction of the text around it is beyond ASCII. */
const isPlain = /^[\x20-\x7e]*$/;

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
