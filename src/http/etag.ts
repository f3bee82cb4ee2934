// Entity tags, If-None-Match, Cache-Control.
import { hash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** A strong entity tag of exactly these bytes, or of bytes that these determine. */
export function entityTag(content: Buffer | string): string {
  return `"${hash('sha1', content, 'base64url')}"`;
}

/**
 * Sets the validators of an answer, and answers 304 without a body when the client has it already.
 * @param cacheControl who may keep it, and for how long without asking
 * @returns whether the answer has been sent
 */
export function sendIfUnchanged(
  request: FastifyRequest,
  reply: FastifyReply,
  tag: string,
  cacheControl: string,
): boolean {
  reply.header('Cache-Control', cacheControl).header('ETag', tag);
  if (!isUnchanged(request.headers['if-none-match'], tag)) return false;
  reply.code(304).send();
  return true;
}

/**
 * Compares as RFC 9110 says for If-None-Match: weakly, and `*` is any. What has been appended for a
 * compressed form, here or by a proxy, does not matter: all forms say the same.
 * @param header the value of If-None-Match
 */
export function isUnchanged(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false;
  const wanted = withoutForm(tag);
  const tags = header.split(',').map((candidate) => withoutForm(candidate.trim()));
  return tags.includes(wanted) || header.trim() === '*';
}

function withoutForm(tag: string): string {
  return tag.replace(/^W\//, '').replace(/[-;](?:br|gzip|zstd)"$/, '"');
}
