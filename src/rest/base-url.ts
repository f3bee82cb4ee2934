import type { FastifyRequest } from 'fastify';
import { invalidHost } from './errors.ts';

const hostPattern = /^([a-z0-9.-]+|\[[a-f0-9:.]+\])(:\d+)?$/;

/**
 * The scheme and host of a request, for links. Fastify looks at `X-Forwarded-*` only when the
 * connection comes from a proxy that TRUST_PROXY names.
 * @throws RestError 400 for a host that no link may repeat
 */
export function readBaseUrl(request: FastifyRequest): string {
  const { host, protocol } = request;
  // Host names have no case; the link keeps the one that was sent.
  if (!hostPattern.test(host.toLowerCase())) throw invalidHost();
  return `${protocol === 'https' ? 'https' : 'http'}://${host}`;
}
