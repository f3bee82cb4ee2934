// URLs: the base of links, and the query string, as it is read and as next and previous have it.
import type { FastifyRequest } from 'fastify';
import { isRepeated } from '../http/headers.ts';
import { invalidHost } from './errors.ts';

const hostPattern = /^([a-z0-9.-]+|\[[a-f0-9:.]+\])(:\d+)?$/;

/**
 * The base of links: `publicUrl` if there is one, or else the scheme and host of the request.
 * @throws RestError 400 for a host that no link may repeat, and for more than one
 */
export function readBaseUrl(request: FastifyRequest, publicUrl: string | undefined): string {
  if (isRepeated(request, 'host')) throw invalidHost();
  if (publicUrl !== undefined) return publicUrl;
  const { host, protocol } = request;
  // Host names have no case; the link keeps the one that was sent.
  if (!hostPattern.test(host.toLowerCase())) throw invalidHost();
  return `${protocol === 'https' ? 'https' : 'http'}://${host}`;
}

/** What follows the first `?` of the request target, undecoded, up to a fragment that does not belong. */
export function rawQuery({ url = '' }: { readonly url?: string | undefined }): string {
  return /^[^?]*\?([^#]*)/.exec(url)?.[1] ?? '';
}

export type QueryParameters = readonly (readonly [name: string, value: string])[];

/** As HTML forms encode it: `+` is a space, broken percent-encoding stays, bytes that are not UTF-8 become U+FFFD. */
export function parseQuery(raw: string): QueryParameters {
  return [...new URLSearchParams(`?${raw}`)];
}

export function readParameter(parameters: QueryParameters, name: string): string | undefined {
  return parameters.findLast(([parameterName]) => parameterName === name)?.[1];
}

/** Sorted by name in code point order, repeated ones in the order they were sent, with `name` set to `value`. */
export function formatQuery(parameters: QueryParameters, name: string, value: string): string {
  return [...parameters.filter(([parameterName]) => parameterName !== name), [name, value] as const]
    .toSorted(([a], [b]) => compareCodePoints(a, b))
    .map(([parameterName, text]) => `${encodeForm(parameterName)}=${encodeForm(text)}`)
    .join('&');
}

/** JavaScript compares UTF-16 units, which puts U+10000 before U+FFFF; UTF-8 bytes do not. */
function compareCodePoints(a: string, b: string): number {
  return a === b ? 0 : Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** Only `A-Za-z0-9_.-~` stay raw; URLSearchParams would keep `*` and encode `~`. */
function encodeForm(text: string): string {
  return encodeURIComponent(text)
    .replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%20', '+');
}
