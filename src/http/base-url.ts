// The public address of this service: base of links, and of the paths of redirects.
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { invalidHost } from '../errors.ts';
import { isRepeated } from './headers.ts';

const hostPattern = /^([a-z0-9.-]+|\[[a-f0-9:.]+\])(:\d+)?$/;

/** @throws HttpError 400 for a repeated Host, and for none in HTTP/1.1 */
export function requireHost(request: FastifyRequest): void {
  if (request.host === '' || isRepeated(request, 'host')) throw invalidHost();
}

/**
 * Base of links: `publicUrl`, or the scheme and host of the request.
 * @throws HttpError 400 for an invalid, repeated or missing Host
 */
export function readBaseUrl(request: FastifyRequest, publicUrl: string | undefined): string {
  requireHost(request);
  if (publicUrl !== undefined) return publicUrl;
  const { host, protocol } = request;
  // Host names are case-insensitive; links keep the spelling of the request.
  if (!hostPattern.test(host.toLowerCase())) throw invalidHost();
  return `${protocol}://${host}`;
}

/** Puts the path of PUBLIC_URL before the path of each `Location`, so that redirects need not know it. */
export function prefixLocations(app: FastifyInstance, publicUrl: string | undefined): void {
  const prefix = publicUrl === undefined ? '' : new URL(publicUrl).pathname.replace(/\/$/, '');
  if (prefix === '') return;
  app.addHook('onSend', (_request, reply, payload, done) => {
    const location = reply.getHeader('location')?.toString();
    if (location?.startsWith('/')) reply.header('location', `${prefix}${location}`);
    done(null, payload);
  });
}
