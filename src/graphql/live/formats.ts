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
  return Buffer.concat([
    Buffer.from(`event: ${name}\ndata: `),
    Buffer.from(data),
    Buffer.from('\n\n'),
  ]);
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
  formatNext: (result) => formatPart(`{"payload":${result}}`),
  formatRefusal: (result) => formatPart(`{"payload":${result}}`),
  formatFailure: (result) => formatPart(`{"payload":null,${result.subarray(1)}`),
};

function formatPart(json: string): Buffer {
  return Buffer.from(`\r\nContent-Type: application/json\r\n\r\n${json}\r\n--graphql`);
}

/** The connection is closed, so that clients connect again with a new token. */
export const expiredLine = 'expired';

/** A line for each message of graphql-transport-ws, without the id of the operation. */
export const socketLines: EventFormat = {
  contentType: 'text/plain',
  transport: 'ws',
  start: Buffer.alloc(0),
  heartbeat: Buffer.from('\n'),
  complete: Buffer.from('"type":"complete"}\n'),
  formatNext: (result) => Buffer.from(`"type":"next","payload":${result}}\n`),
  // Behind `{"errors":`.
  formatRefusal: (result) => Buffer.from(`"type":"error","payload":${result.subarray(10)}\n`),
  formatFailure: () => Buffer.from(`${expiredLine}\n`),
};

export const formats = { 'text/event-stream': serverSentEvents, 'multipart/mixed': multipart };
