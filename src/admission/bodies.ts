// Bodies of requests: when one may come, and how many bytes of them wait for their answers, in all and by sender.
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { overloaded } from '../errors.ts';
import { hasBody } from '../http/headers.ts';
import { type Place, Places, shareOfHeap } from '../http/places.ts';
import { disconnectFor } from '../http/server/connections.ts';
import { sendContinue } from '../http/server/server.ts';
import { RequestCaller } from './admission.ts';

/** Bytes of memory for a byte of a body, once it is parsed: up to 16, for `[[],[]]`. */
const bytesPerByte = 16;

/**
 * Sends `100 Continue` only to who is let in, and whose body is not too large. When bodies hold their share of the heap,
 * the newest request of the largest holder gets a 503.
 */
export function admitBodies(app: FastifyInstance): void {
  const places = new Places({ places: Number.POSITIVE_INFINITY, bytes: shareOfHeap() });
  const held = new WeakMap<FastifyRequest, Place>();
  app.addHook('preParsing', (request, reply, payload, done) => {
    const { raw, headers, routeOptions } = request;
    const length = Number(headers['content-length'] ?? 0);
    if (length <= (routeOptions.bodyLimit ?? 0)) sendContinue(reply.raw);
    done(null, payload);
    if (!hasBody(headers)) return;
    const place = places.take(new RequestCaller(request).sender, 0, () => {
      const refusal = Object.assign(overloaded(), { statusCode: 503 });
      reply.header('Connection', 'close');
      // Fastify is reading it, or a task waits.
      if (!raw.complete) payload.emit('error', refusal);
      else disconnectFor(raw.socket, refusal);
    });
    if (!place) return;
    held.set(request, place);
    reply.raw.once('close', () => place.release());
    let bytes = 0;
    payload.on('data', (piece: Buffer) => {
      bytes += piece.length;
      place.hold(bytesPerByte * bytes);
    });
  });
  // A stream keeps less of its request, and counts that itself.
  app.addHook('onSend', (request, _reply, _payload, done) => {
    held.get(request)?.release();
    done();
  });
}
