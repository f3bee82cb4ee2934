// Whether a text is a URL, and which.

/**
 * Undefined for what is none. Not `URL.canParse`: in Node.js 20 it says no to each address with a letter such
 * as ü, once it has been called often enough to be optimised.
 */
export function parseUrl(text: string, base?: string | URL): URL | undefined {
  try {
    return new URL(text, base);
  } catch {
    return undefined;
  }
}
