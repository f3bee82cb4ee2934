// URLs of requests and links: base URL, query string parsing and formatting.
import type { FastifyRequest } from 'fastify';
import { isRepeated } from '../http/headers.ts';
import { invalidHost } from './errors.ts';

const hostPattern = /^([a-z0-9.-]+|\[[a-f0-9:.]+\])(:\d+)?$/;

/**
 * Base of links: `publicUrl`, or the scheme and host of the request.
 * @throws RestError 400 for an invalid or repeated Host
 */
export function readBaseUrl(request: FastifyRequest, publicUrl: string | undefined): string {
  if (isRepeated(request, 'host')) throw invalidHost();
  if (publicUrl !== undefined) return publicUrl;
  const { host, protocol } = request;
  // Host names are case-insensitive; links keep the spelling of the request.
  if (!hostPattern.test(host.toLowerCase())) throw invalidHost();
  return `${protocol === 'https' ? 'https' : 'http'}://${host}`;
}

/** Query of the request target, undecoded, without an illegal fragment. */
export function rawQuery({ url = '' }: { readonly url?: string | undefined }): string {
  return /^[^?]*\?([^#]*)/.exec(url)?.[1] ?? '';
}

export type QueryParameters = readonly (readonly [name: string, value: string])[];

/**
 * Parses form encoding: `+` is a space, invalid percent-encoding stays, invalid UTF-8 becomes U+FFFD.
 * @see https://url.spec.whatwg.org/#urlencoded-parsing
 */
export function parseQuery(raw: string): QueryParameters {
  return [...new URLSearchParams(`?${raw}`)];
}

export function readParameter(parameters: QueryParameters, name: string): string | undefined {
  return parameters.findLast(([parameterName]) => parameterName === name)?.[1];
}

/** Sets `name` to `value`, or removes it, and sorts by name in code point order; repeated names keep their order. */
export function formatQuery(
  parameters: QueryParameters,
  name: string,
  value: string | undefined,
): string {
  const others = parameters.filter(([parameterName]) => parameterName !== name);
  return [...others, ...(value === undefined ? [] : [[name, value] as const])]
    .toSorted(([a], [b]) => compareCodePoints(a, b))
    .map(([parameterName, text]) => `${encodeForm(parameterName)}=${encodeForm(text)}`)
    .join('&');
}

/** By UTF-8 bytes: JavaScript compares UTF-16 units, which puts U+10000 before U+FFFF. */
function compareCodePoints(a: string, b: string): number {
  return a === b ? 0 : Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** Only `A-Za-z0-9_.-~` stay raw; URLSearchParams would keep `*` and encode `~`. */
function encodeForm(text: string): string {
  return encodeURIComponent(text)
    .replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%20', '+');
}
