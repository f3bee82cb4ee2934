// Fetches one page of a listing over HTTP, with the headers of the operator.
import { isUtf8 } from 'node:buffer';
import { parseUrl } from '../config/values.ts';
import { type ClientRequest, HttpClient, TooLargeError } from '../http/client.ts';
import { maxPageBytes, maxPageSize, SourceError } from './page.ts';

export type FetchPage = ReturnType<typeof createFetchPage>;

interface FetchOptions {
  /** Sent only to the host of `listing`: they may hold a secret. */
  readonly headers?: Headers;
  readonly listing: string;
  readonly method?: ClientRequest['method'];
  readonly timeout?: number;
}

const maxRedirects = 10;

/** The returned function throws SourceError when a retry would not help. */
export function createFetchPage({
  headers = new Headers(),
  listing,
  method = 'GET',
  timeout = 30_000,
}: FetchOptions) {
  const client = new HttpClient();
  const named = new URL(listing);

  const ask = async (url: URL, signal: AbortSignal) => {
    const own = isSameHost(named, url) ? Object.fromEntries(headers) : {};
    const request: ClientRequest = {
      method,
      target: url.pathname + url.search,
      headers: { ...defaultHeaders, ...own },
      signal,
      timeout,
      maxBytes: maxPageBytes,
    };
    try {
      return await client.ask(url.origin, request);
    } catch (error) {
      if (!(error instanceof TooLargeError)) throw error;
      throw new SourceError(`${url} answered more than ${maxPageSize} for one page.`);
    }
  };

  return async (start: string, signal: AbortSignal) => {
    let url = new URL(start);
    for (let redirects = 0; redirects <= maxRedirects; redirects++) {
      const { status, headers: given, body: bytes } = await ask(url, signal);
      const { location, 'retry-after': retryAfter } = given;
      if (![301, 302, 303, 307, 308].includes(status) || location === undefined) {
        if (!isUtf8(bytes)) {
          throw new SourceError(`${url} answered bytes that are not UTF-8, as JSON has to be.`);
        }
        const text = new TextDecoder().decode(bytes);
        const body = status === 200 ? text : hide(text, headers);
        return { status, body, retryAfter, url: url.href };
      }
      const target = parseUrl(location, url);
      if (!target || !/^https?:$/.test(target.protocol)) {
        throw new SourceError(`${url} redirects to an address that is not an http or https URL.`);
      }
      url = target;
    }
    throw new SourceError(`${start} redirects more than ${maxRedirects} times.`);
  };
}

const defaultHeaders = {
  accept: 'application/json',
  'accept-encoding': 'gzip, br',
  'user-agent': 'outfit-gateway',
};

/** The same scheme, host and port, or HTTPS instead of HTTP on their usual ports. */
export function isSameHost(named: URL, asked: URL): boolean {
  if (asked.origin === named.origin) return true;
  const isSecured = asked.protocol === 'https:' && asked.port === '' && named.port === '';
  return isSecured && asked.hostname === named.hostname;
}

/** Removes the values of headers from a text that is printed: some services repeat credentials in errors. */
export function hide(body: string, headers: Headers): string {
  const isAddress = /^(?:host|x-forwarded-\w+)$/;
  const values = [...headers].flatMap(([name, value]) => (isAddress.test(name) ? [] : value));
  const secrets = values.flatMap((value) => [value, ...value.split(/[\s,;]+/)]);
  return secrets
    .filter((secret) => secret.length > 3)
    .reduce((text, secret) => text.replaceAll(secret, '…'), body);
}

/** Headers of the connection, and those that the client sets. */
const reservedHeaders =
  /^(?:connection|content-length|expect|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/i;

/** @param defaults replaced by the lines @throws SourceError whose message does not repeat their values */
export function parseHeaders(
  lines: readonly string[],
  defaults: Readonly<Record<string, string>> = {},
): Headers {
  const headers = new Headers();
  for (const [index, line] of lines.entries()) {
    const [, name, value] =
      /^([\w!#$%&'*+.^`|~-]+):[ \t]*([\x21-\x7e](?:[\t\x20-\x7e]*))$/.exec(line) ?? [];
    const which = lines.length > 1 ? `--header number ${index + 1}` : '--header';
    if (name === undefined || value === undefined) {
      throw new SourceError(
        `${which} is not of the form "Name: value" in printable ASCII characters.`,
      );
    }
    if (reservedHeaders.test(name))
      throw new SourceError(`${which} must not be ${name}, which belongs to the connection.`);
    headers.append(name, value);
  }
  return new Headers({ ...defaults, ...Object.fromEntries(headers) });
}
