// What browsers are told about every answer.
import type { FastifyReply, FastifyRequest } from 'fastify';

/** What browsers are told about every answer: to guess nothing, embed nothing and pass nothing on. */
export const securityHeaders = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
};

/** A hook for every request. It takes a callback, as it runs for the fastest answers too. */
export function setSecurityHeaders(
  _request: FastifyRequest,
  reply: FastifyReply,
  done: () => void,
): void {
  reply.headers(securityHeaders);
  done();
}
