// The end of every answer that may be compressed: validators, 304, encoding, body.
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Form, tagOfForm } from './compression.ts';
import { sendIfUnchanged } from './etag.ts';

export interface FormHeaders {
  readonly contentType: string;
  /** The entity tag of the answer as it is; undefined: it has no validators. */
  readonly tag: string | undefined;
  /** Whether caches between may keep it: not what is one viewer's own. */
  readonly shareable: boolean;
  /** Who may keep it, and how long without asking; when absent, nobody without asking. */
  readonly cacheControl?: string;
}

/** Who may keep an answer: caches between, or its viewer alone. Nobody without asking. */
export const cacheControls = { shareable: 'no-cache', own: 'private, no-cache' } as const;

/** Sends an answer in the form that was found for its client, or 304 when the client has it already. */
export function sendForm(
  request: FastifyRequest,
  reply: FastifyReply,
  { bytes, encoding }: Form,
  {
    contentType,
    tag,
    shareable,
    cacheControl = shareable ? cacheControls.shareable : cacheControls.own,
  }: FormHeaders,
): FastifyReply {
  if (tag && sendIfUnchanged(request, reply, tagOfForm(tag, encoding), cacheControl)) return reply;
  if (encoding) reply.header('Content-Encoding', encoding);
  return reply.header('Content-Type', contentType).send(bytes);
}
