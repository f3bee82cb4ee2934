// Gets one page of a listing over HTTP: in pieces, up to a limit, with the headers of the operator.
import { readAtMost } from '../http/read-at-most.ts';
import { parseUrl } from '../http/url.ts';
import { maxPageBytes, maxPageSize, SourceError } from './batch.ts';

/** The answer to a request for a page. */
export interface PageAnswer {
  readonly status: number;
  readonly body: string;
  /** The header, when there is one: seconds or an HTTP date. */
  readonly retryAfter?: string | null | undefined;
  /** The URL that answered, after redirects. */
  readonly url?: string;
}

/**
 * Gets one page; throws on a network error, a time-out or text that is not UTF-8, and a SourceError
 * when another try would be in vain.
 */
export type FetchPage = (url: string, signal: AbortSignal) => Promise<PageAnswer>;

export interface FetchOptions {
  /** Sent to the host of `listing` only: they may hold a secret. */
  readonly headers?: Headers;
  readonly listing: string;
  /** Milliseconds that a whole answer may take. */
  readonly timeout?: number;
}

const maxRedirects = 10;

export function createFetchPage({
  headers = new Headers(),
  listing,
  timeout = 30_000,
}: FetchOptions): FetchPage {
  return async (url, signal) => {
    signal.throwIfAborted();
    // Not AbortSignal.any with AbortSignal.timeout: on Node 20 the pair never fired on a silent server.
    const stop = new AbortController();
    const timer = setTimeout(
      () => stop.abort(new Error(`no whole answer in ${timeout / 1000} s`)),
      timeout,
    );
    const passOn = () => stop.abort(signal.reason);
    signal.addEventListener('abort', passOn);
    try {
      const response = await follow(url, listing, headers, stop.signal);
      const bytes = await readBytes(response);
      const body = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
      return {
        status: response.status,
        body: response.ok ? body : hide(body, headers),
        retryAfter: response.headers.get('retry-after'),
        url: response.url,
      };
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', passOn);
    }
  };
}

/** Follows redirects by hand: `fetch` would take every header but Authorization to other hosts. */
async function follow(
  start: string,
  listing: string,
  headers: Headers,
  signal: AbortSignal,
): Promise<Response> {
  let url = start;
  for (let redirects = 0; redirects <= maxRedirects; redirects++) {
    const sent = isSameHost(new URL(listing), new URL(url)) ? new Headers(headers) : new Headers();
    if (!sent.has('accept')) sent.set('accept', 'application/json');
    const response = await fetch(url, { headers: sent, signal, redirect: 'manual' });
    const location = response.headers.get('location');
    if (![301, 302, 303, 307, 308].includes(response.status) || location === null) return response;
    await response.body?.cancel();
    const target = parseUrl(location, url);
    if (!target || !/^https?:$/.test(target.protocol)) {
      throw new SourceError(`${url} redirects to what is no http or https URL.`);
    }
    url = target.href;
  }
  throw new SourceError(`${start} redirects more than ${maxRedirects} times.`);
}

/** The same scheme, host and port, or HTTPS instead of HTTP on their usual ports. */
export function isSameHost(named: URL, asked: URL): boolean {
  if (asked.origin === named.origin) return true;
  const isSecured = asked.protocol === 'https:' && asked.port === '' && named.port === '';
  return isSecured && asked.hostname === named.hostname;
}

/** A few megabytes on the wire may unpack to gigabytes, so the limit is that of what comes out. */
async function readBytes({ body, url }: Response): Promise<Buffer> {
  const bytes = await readAtMost(body ?? [], maxPageBytes);
  if (bytes) return bytes;
  throw new SourceError(`${url} answered more than ${maxPageSize} for one page.`);
}

/** The body of an error is shown, and some services repeat the credentials that they refuse. */
export function hide(body: string, headers: Headers): string {
  const secrets = [...headers.values()].flatMap((value) => [value, ...value.split(/[\s,;]+/)]);
  return secrets
    .filter((secret) => secret.length > 3)
    .reduce((text, secret) => text.replaceAll(secret, '…'), body);
}

/** What belongs to the connection, or what `fetch` decides. */
const notOurs =
  /^(?:connection|content-length|expect|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/i;

/**
 * Headers from lines such as `Authorization: Token abc`; one that comes twice is sent with both.
 * @throws SourceError that does not repeat them
 */
export function parseHeaders(lines: readonly string[]): Headers {
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
    if (notOurs.test(name))
      throw new SourceError(`${which} must not be ${name}, which belongs to the connection.`);
    headers.append(name, value);
  }
  return headers;
}
