// Live answers over HTTP: the "distinct connections" mode of GraphQL over server-sent events.
// @see https://github.com/graphql/graphql-over-http/blob/main/rfcs/GraphQLOverSSE.md
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { disconnectHalfClosed } from '../../http/server/connections.ts';
import type { EncodedAnswer } from '../run.ts';
import { LiveStream } from './live-stream.ts';

const next = Buffer.from('event: next\ndata: ');
const end = Buffer.from('\n\n');
/** With empty data: EventSource does not dispatch an event without. */
const complete = Buffer.from('\n\nevent: complete\ndata: \n\n');

/** Its bytes are copied, which costs less than decoding them. @param isLast whether the end of the stream follows */
const encode = ({ body }: EncodedAnswer, isLast: boolean) =>
  Buffer.concat([next, body, isLast ? complete : end]);

/** Milliseconds of silence before a heartbeat is sent: half of the timeout of most proxies. */
const heartbeatAfter = 15_000;

export function sendEvents(
  request: FastifyRequest,
  reply: FastifyReply,
  answers: LiveStream | EncodedAnswer,
): FastifyReply {
  reply.headers(streamHeaders);
  if (!(answers instanceof LiveStream)) return reply.send(encode(answers, true));
  request.streamedAfter = reply.elapsedTime;
  answers.onClose(disconnectHalfClosed(request.raw.socket));
  return reply.send(toReadable(answers));
}

const streamHeaders = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-store, no-transform',
  // Turns off the buffer of nginx.
  'X-Accel-Buffering': 'no',
};

const heartbeat = Buffer.from(':\n\n');

function toReadable(stream: LiveStream): Readable {
  let isWaiting = false;
  const readable = new Readable({
    // Nothing is buffered, or an outdated event would be sent.
    highWaterMark: 0,
    async read() {
      if (isWaiting) return;
      isWaiting = true;
      const { value } = await stream.next();
      isWaiting = false;
      silence.refresh();
      // Encoded once for all who read it.
      if (value) value.event ??= encode(value, value.isRefusal);
      this.push(value?.event ?? null);
    },
    destroy(error, done) {
      clearInterval(silence);
      stream.destroy();
      done(error);
    },
  });
  // A slow reader gets none: its connection times out.
  const silence = setInterval(() => {
    if (isWaiting) readable.push(heartbeat);
  }, heartbeatAfter);
  stream.onClose((isCut) => {
    if (isCut) readable.destroy();
  });
  return readable;
}
