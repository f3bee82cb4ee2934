// Live answers over HTTP: formats of events, which `Accept` selects, and how they are sent.
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { disconnectHalfClosed } from '../../http/server/connections.ts';
import type { EncodedAnswer } from '../run.ts';
import { expired, LiveStream, type Transport } from './live-stream.ts';

export interface EventFormat {
  readonly contentType: string;
  readonly transport: Transport;
  /** Before the first event. */
  readonly start: Buffer;
  readonly heartbeat: Buffer;
  /** @param isLast whether the end of the stream follows */
  encode(answer: EncodedAnswer, isLast: boolean): Buffer;
}

/**
 * The "distinct connections" mode of GraphQL over server-sent events. `complete` has empty data: EventSource does not
 * dispatch an event without.
 * @see https://github.com/graphql/graphql-over-http/blob/main/rfcs/GraphQLOverSSE.md
 */
const serverSentEvents: EventFormat = {
  contentType: 'text/event-stream; charset=utf-8',
  transport: 'sse',
  start: Buffer.alloc(0),
  heartbeat: Buffer.from(':\n\n'),
  encode: ({ body }, isLast) =>
    wrap('event: next\ndata: ', body, `\n\n${isLast ? 'event: complete\ndata: \n\n' : ''}`),
};

/**
 * Each part ends with the delimiter of the next one: clients read a part once they have seen its end.
 * @see https://www.apollographql.com/docs/graphos/routing/operations/subscriptions/multipart-protocol
 * @see RFC 2046 §5.1.1
 */
const multipart: EventFormat = {
  contentType: 'multipart/mixed; boundary="graphql"; subscriptionSpec=1.0',
  transport: 'multipart',
  start: Buffer.from('--graphql'),
  heartbeat: Buffer.from(`${partHead()}{}\r\n--graphql`),
  encode(answer, isLast) {
    const { body } = answer;
    const end = `\r\n--graphql${isLast ? '--\r\n' : ''}`;
    // The error of the stream itself, not of a result.
    return answer === expired
      ? wrap(`${partHead()}{"payload":null,`, body.subarray(1), end)
      : wrap(`${partHead()}{"payload":`, body, `}${end}`);
  },
};

function partHead(): string {
  return '\r\nContent-Type: application/json\r\n\r\n';
}

/** Copies bytes, which costs less than decoding them. */
function wrap(before: string, bytes: Buffer, after: string): Buffer {
  return Buffer.concat([Buffer.from(before), bytes, Buffer.from(after)]);
}

export const formats = { 'text/event-stream': serverSentEvents, 'multipart/mixed': multipart };

/** Milliseconds of silence before a heartbeat is sent: half of the timeout of most proxies. */
const heartbeatAfter = 15_000;

export function sendEvents(
  request: FastifyRequest,
  reply: FastifyReply,
  format: EventFormat,
  answers: LiveStream | EncodedAnswer,
): FastifyReply {
  reply.headers(streamHeaders).header('Content-Type', format.contentType);
  if (!(answers instanceof LiveStream)) {
    return reply.send(Buffer.concat([format.start, format.encode(answers, true)]));
  }
  request.streamedAfter = reply.elapsedTime;
  answers.onClose(disconnectHalfClosed(request.raw.socket));
  return reply.send(toReadable(answers, format));
}

const streamHeaders = {
  'Cache-Control': 'no-store, no-transform',
  // Turns off the buffer of nginx.
  'X-Accel-Buffering': 'no',
};

/** Encoded once for all who read it. */
function eventOf(answer: EncodedAnswer, format: EventFormat): Buffer {
  answer.events ??= new Map();
  const event = answer.events.get(format) ?? format.encode(answer, answer.isRefusal);
  answer.events.set(format, event);
  return event;
}

function toReadable(stream: LiveStream, format: EventFormat): Readable {
  let { start } = format;
  let isWaiting = false;
  const readable = new Readable({
    // Nothing is buffered, or an outdated event would be sent.
    highWaterMark: 0,
    async read() {
      if (isWaiting) return;
      isWaiting = true;
      const { value } = await stream.next();
      isWaiting = false;
      heartbeat.refresh();
      const event = value ? eventOf(value, format) : null;
      this.push(event && start.length > 0 ? Buffer.concat([start, event]) : event);
      start = Buffer.alloc(0);
    },
    destroy(error, done) {
      clearInterval(heartbeat);
      stream.destroy();
      done(error);
    },
  });
  // A slow reader gets none: its connection times out.
  const heartbeat = setInterval(() => {
    if (isWaiting) readable.push(format.heartbeat);
  }, heartbeatAfter);
  stream.onClose((isCut) => {
    if (isCut) readable.destroy();
  });
  return readable;
}
