// x-request-id: which incoming ones are kept, and new ones.
import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';

export const requestIdHeader = 'x-request-id';

/** What goes into logs and back to clients as it came: nothing that could be more than a name. */
const wellFormed = /^[\w.:+/=-]{1,64}$/;

/** Names each request: as its sender did, or else anew, unlike any other of any process. */
export type NameRequest = (request: Pick<IncomingMessage, 'headers'>) => string;

export function createRequestNamer(): NameRequest {
  const prefix = randomBytes(6).toString('hex');
  let count = 0;
  return ({ headers }) => {
    const given = headers[requestIdHeader];
    if (typeof given === 'string' && wellFormed.test(given)) return given;
    count += 1;
    return `${prefix}-${count.toString(36)}`;
  };
}

/** Tells the client the id under which its request is in the log. */
export function answerRequestIds(app: FastifyInstance): void {
  app.addHook('onRequest', (request, reply, done) => {
    reply.header(requestIdHeader, request.id);
    done();
  });
}
