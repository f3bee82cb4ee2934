// Formats of a live answer over HTTP, negotiated by `Accept`, and over WebSockets.
import type { StreamFormat } from '../../http/event-stream.ts';

export interface EventFormat extends StreamFormat {
  readonly complete: Buffer;
  formatNext(result: Buffer): Buffer;
  /** Errors of a document or its variables. */
  formatRefusal(result: Buffer): Buffer;
  /** The errors of the stream itself, such as a token that has expired. */
  formatFailure(result: Buffer): Buffer;
}

/**
 * The "distinct connections" mode of GraphQL over server-sent events.
 * @see https://github.com/graphql/graphql-over-http/blob/main/rfcs/GraphQLOverSSE.md
 */
const serverSentEvents: EventFormat = {
  contentType: 'text/event-stream; charset=utf-8',
  transport: 'sse',
  start: Buffer.alloc(0),
  heartbeat: Buffer.from(':\n\n'),
  // With empty data: EventSource does not dispatch an event without data.
  complete: formatEvent('complete', ''),
  formatNext: (result) => formatEvent('next', result),
  formatRefusal: (result) => formatEvent('next', result),
  formatFailure: (result) => formatEvent('next', result),
};

/** @see https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation */
function formatEvent(name: string, data: Buffer | string): Buffer {
  return wrap(`event: ${name}\ndata: `, data, '\n\n');
}

/**
 * Each part ends with the delimiter of the next one: clients read a part once they have seen its end.
 * @see https://www.apollographql.com/docs/graphos/routing/operations/subscriptions/multipart-protocol
 * @see RFC 2046 §5.1.1
 */
const multipart: EventFormat = {
  contentType: 'multipart/mixed; boundary="graphql"; subscriptionSpec=1.0',
  transport: 'multipart',
  start: Buffer.from('--graphql'),
  heartbeat: formatPart('{}'),
  complete: Buffer.from('--\r\n'),
  formatNext: (result) => formatPart(wrap('{"payload":', result, '}')),
  formatRefusal: (result) => formatPart(wrap('{"payload":', result, '}')),
  formatFailure: (result) => formatPart(`{"payload":null,${result.subarray(1)}`),
};

function formatPart(json: Buffer | string): Buffer {
  return wrap('\r\nContent-Type: application/json\r\n\r\n', json, '\r\n--graphql');
}

/** Stands for the end of the connection, so that clients connect again with a new token. */
export const expiredMessage = Buffer.from('expired');

/** The messages of graphql-transport-ws, without the id of the operation, with which each begins. */
export const socketMessages: EventFormat = {
  contentType: 'application/json',
  transport: 'ws',
  start: Buffer.alloc(0),
  // The connection has its own.
  heartbeat: Buffer.alloc(0),
  complete: Buffer.from('"type":"complete"}'),
  formatNext: (result) => wrap('"type":"next","payload":', result, '}'),
  // Behind `{"errors":`.
  formatRefusal: (result) => wrap('"type":"error","payload":', result.subarray(10), ''),
  formatFailure: () => expiredMessage,
};

/** Copies bytes, which costs less than decoding them. */
function wrap(before: string, bytes: Buffer | string, after: string): Buffer {
  return Buffer.concat([Buffer.from(before), Buffer.from(bytes), Buffer.from(after)]);
}

export const formats = { 'text/event-stream': serverSentEvents, 'multipart/mixed': multipart };
