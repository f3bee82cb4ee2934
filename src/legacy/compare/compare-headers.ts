// Compares the headers of two answers that an app can see.
import type { Answer } from '../../http/client.ts';
import { type Bases, withoutBase } from './compare-documents.ts';
import type { Findings } from './difference.ts';

export interface ComparedTarget {
  readonly method: string;
  readonly target: string;
  /** As they were sent, with names in lower case. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>>;
}

/** Headers of the connection, of servers and proxies on the way, and policies for documents of browsers. */
const ignored = new RegExp(
  `^(?:${[
    'accept-ranges|alt-svc|connection|http2-settings|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade',
    'age|cf-.*|date|server|server-timing|via|x-(?:amz|envoy|forwarded)-.*|x-cache.*|x-powered-by|x-served-by',
    '(?:x-)?(?:amz.*|correlation|request|trace)-id|traceparent|tracestate|x-(?:process-time|response-time|runtime)',
    'content-security-policy.*|cross-origin-.*|nel|permissions-policy|referrer-policy|report-to',
    'strict-transport-security|x-content-type-options|x-frame-options|x-xss-protection',
  ].join('|')})$`,
);

/** Only whether these are there is compared: their values are times, lengths and counters. */
const volatile = /^(?:expires|last-modified|retry-after|(?:x-)?ratelimit(?:-.*)?)$/;

/** What this service adds of its own accord: apps of a source without it see no other behaviour. */
const additions: Readonly<Record<string, RegExp>> = {
  'cache-control': /\bno-(?:cache|store)\b/,
  'content-length': /^/,
  deprecation: /^/,
  etag: /^/,
  link: /rel="successor-version"$/,
  ratelimit: /^/,
  'ratelimit-policy': /^/,
  sunset: /^/,
};

/** Headers of a redirect: no app sees more of it. */
const ofRedirects = /^(?:location|set-cookie)$/;

export function compareHeaders(
  { method, headers: sent = {} }: ComparedTarget,
  theirs: Answer,
  ours: Answer,
  bases: Bases,
  findings: Findings,
): void {
  const isRedirect = theirs.status >= 300 && theirs.status < 400;
  const names = new Set([...Object.keys(theirs.headers), ...Object.keys(ours.headers)]);
  for (const name of names) {
    if (ignored.test(name) || name.startsWith('access-control-')) continue;
    if (isRedirect && !ofRedirects.test(name)) continue;
    if (name === 'content-length' && method !== 'HEAD') continue;
    const own = ours.headers[name];
    if (theirs.headers[name] === undefined && own && additions[name]?.test(own)) continue;
    const [theirValue, ourValue] = [
      normalize(name, theirs.headers[name], bases.theirs),
      normalize(name, own, bases.ours),
    ];
    addHeader(name, theirValue, ourValue, findings);
  }
  if (compareOrigins(sent['origin'], theirs, ours, findings)) {
    const name = 'access-control-expose-headers';
    const exposed = listOf(ours.headers[name]);
    // What is exposed beyond can be read by apps that look for it.
    const missing = listOf(theirs.headers[name]).filter((header) => !exposed.includes(header));
    if (missing.length > 0) addHeader(name, missing.join(', '), undefined, findings);
  }
}

/**
 * Compares what browsers do after a preflight. They see neither its body nor which 2xx status it has.
 * @see https://fetch.spec.whatwg.org/#cors-preflight-fetch
 */
export function comparePreflights(
  sent: NonNullable<ComparedTarget['headers']>,
  theirs: Answer,
  ours: Answer,
  findings: Findings,
): void {
  const isOk = ({ status }: Answer) => status >= 200 && status < 300;
  if (isOk(theirs) !== isOk(ours)) {
    const sentence = `The status of a preflight is ${theirs.status} in the source, ${ours.status} here.`;
    findings.add('status', undefined, sentence);
  } else if (compareOrigins(sent['origin'], theirs, ours, findings)) {
    for (const [header, asked] of [
      ['access-control-allow-methods', sent['access-control-request-method']],
      ['access-control-allow-headers', sent['access-control-request-headers']],
    ] as const) {
      // What was not requested is not compared: a service may answer with what was requested only.
      const allowedBy = ({ headers }: Answer) => {
        const allowed = listOf(headers[header]);
        const isAllowed = (item: string) =>
          allowed.includes(item) || (allowed.includes('*') && item !== 'authorization');
        return listOf(asked?.toString()).filter(isAllowed).join(', ') || undefined;
      };
      addHeader(header, allowedBy(theirs), allowedBy(ours), findings);
    }
    const age = 'access-control-max-age';
    addHeader(age, theirs.headers[age], ours.headers[age], findings);
  }
}

/** @returns whether both allow the origin, so that other headers of CORS matter */
function compareOrigins(
  origin: string | readonly string[] | undefined,
  theirs: Answer,
  ours: Answer,
  findings: Findings,
): boolean {
  const names = ['access-control-allow-origin', 'access-control-allow-credentials'] as const;
  const [allowed, credentials] = names;
  // Without credentials, `*` and the origin itself mean the same to the page that asks.
  const isAllowed = ({ headers }: Answer) =>
    headers[allowed] === '*' || (headers[allowed] !== undefined && headers[allowed] === origin);
  if (isAllowed(theirs) !== isAllowed(ours)) {
    addHeader(allowed, theirs.headers[allowed], ours.headers[allowed], findings);
  }
  if (!isAllowed(theirs) || !isAllowed(ours)) return false;
  addHeader(credentials, theirs.headers[credentials], ours.headers[credentials], findings);
  return true;
}

function addHeader(
  name: string,
  theirs: string | undefined,
  ours: string | undefined,
  findings: Findings,
): void {
  if (theirs === ours) return;
  const show = (value: string | undefined) =>
    value === undefined ? 'missing' : JSON.stringify(value.slice(0, 200));
  const where = name.slice(0, 100);
  findings.add('header', where, `${where} is ${show(theirs)} in the source, ${show(ours)} here.`);
}

function normalize(
  name: string,
  value: string | undefined,
  base: Bases['theirs'],
): string | undefined {
  if (value === undefined) return undefined;
  if (volatile.test(name) || (name === 'content-length' && /^\d+$/.test(value))) return 'present';
  if (name === 'etag') return value.startsWith('W/') ? 'weak' : 'strong';
  if (name === 'set-cookie') return describeCookies(value);
  // A relative reference is equivalent.
  if (/^(?:content-)?location$/.test(name))
    return withoutBase(value, base).replace(/^<base>(?=\/)/, '');
  if (name === 'link') {
    return value.replace(/<([^>]*)>/g, (_all, link) => `<${withoutBase(link, base)}>`);
  }
  const isSet = name === 'vary' || name === 'cache-control';
  return isSet ? listOf(value).sort().join(', ') : value;
}

/** The items of a comma-separated header, in lower case. */
export function listOf(value: string | undefined): string[] {
  const items = value?.toLowerCase().split(',') ?? [];
  return [...new Set(items.map((item) => item.trim()).filter(Boolean))];
}

/** Names and attributes: values are secrets, and others each time. */
function describeCookies(value: string): string {
  // Several cookies are joined by commas, which stand in `Expires` too.
  const cookies = value.split(/,\s*(?=[^;,=\s]+=)/).map((cookie) => {
    const [pair = '', ...attributes] = cookie.split(';').map((part) => part.trim());
    const shown = attributes.map((attribute) =>
      attribute.toLowerCase().replace(/^expires=.*/, 'expires'),
    );
    return [pair.split('=', 1)[0], ...shown.sort()].join('; ');
  });
  return cookies.sort().join(', ');
}
