// Whether a text is a URL, and which.

/** Not `URL.canParse`: once optimised, Node.js 20 says no to each address with a letter such as ü. */
export function parseUrl(text: string, base?: string | URL): URL | undefined {
  try {
    return new URL(text, base);
  } catch {
    return undefined;
  }
}
