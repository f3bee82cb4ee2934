// Scheme and host of links, and which hosts are refused.
import type { FastifyRequest } from 'fastify';
import { isRepeated } from '../http/headers.ts';
import { invalidHost } from './errors.ts';

const hostPattern = /^([a-z0-9.-]+|\[[a-f0-9:.]+\])(:\d+)?$/;

/**
 * The scheme and host of a request, for links. Fastify looks at `X-Forwarded-*` only when the
 * connection comes from a proxy that TRUST_PROXY names.
 * @param publicUrl is taken instead, when there is one
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
