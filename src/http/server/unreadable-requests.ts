// Answers to bytes that Node cannot parse as a request: an error after all pipelined answers, counted by its reason.
import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { arrivedTooSlowly, type HttpError, headTooLarge, notHttp } from '../../errors.ts';
import { closeInStages, dueResponse, hasUnreadBody } from './connections.ts';

export interface Unreadable {
  /** The code of Node's error: the label of a metric. */
  readonly reason: string;
  readonly error: HttpError;
  /** What the last packet shows of the request. */
  readonly target: string | undefined;
  readonly origin: string | undefined;
}

/** Describes the answer to an unreadable request. */
type Describe = (unreadable: Unreadable) => {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
};

type ClientError = Error & {
  readonly code?: string;
  readonly rawPacket?: unknown;
  /** Of the packet, until the error. */
  readonly bytesParsed?: number;
  /** Of a request that Node has parsed, and nothing here serves. */
  readonly response?: ServerResponse;
};

/** For `clientErrorHandler`. */
export function createClientErrorHandler(describe: Describe) {
  const answered = new WeakSet<Socket>();
  return (error: ClientError, socket: Socket): void => {
    // Node emits the error again for all bytes that follow.
    if (answered.has(socket)) return;
    answered.add(socket);
    // An empty line may precede a request, and begins none (RFC 9112 §2.2): a client that only connects ahead of its
    // first request would take an answer for that of the request.
    const hasBegun = error.code !== 'ERR_HTTP_REQUEST_TIMEOUT' || socket.bytesRead > 2;
    const isGone = !socket.writable || error.code === 'ECONNRESET';
    if (isGone || !hasBegun || hasUnreadBody(socket)) socket.destroy();
    else if (error.response) sendError(error, socket, describe);
    else afterPipelined(socket, () => sendError(error, socket, describe));
  };
}

/** Calls back when all requests before the newest one on this connection are answered. */
export function afterPipelined(socket: Socket, callback: () => void): void {
  const due = dueResponse(socket);
  if (due?.req.complete) due.once('close', () => afterPipelined(socket, callback));
  else if (socket.writable) callback();
}

function sendError(
  { code, rawPacket, bytesParsed = 0, response }: ClientError,
  socket: Socket,
  describe: Describe,
): void {
  const error = httpErrorOf(code);
  const packet = Buffer.isBuffer(rawPacket) ? rawPacket.toString('latin1') : '';
  // Requests before this one may be in the packet, which may end with its own empty line.
  const last = Math.min(bytesParsed, packet.length - 5);
  const start = packet.lastIndexOf('\r\n\r\n', last) + 1;
  const [, target] = /^\s*[A-Z]+ (\S+)/.exec(packet.slice(start)) ?? [];
  const [, origin] = /\r\norigin:[ \t]*([^\r\n]*)/i.exec(packet.slice(start)) ?? [];
  const { body, ...described } = describe({ reason: code ?? 'other', error, target, origin });
  const headers = { ...described.headers, 'content-length': body.length, connection: 'close' };
  if (response) {
    response.writeHead(error.status, headers).end(body);
    return;
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\n${lines.join('')}\r\n`);
  socket.write(body);
  closeInStages(socket);
}

function httpErrorOf(code: string | undefined): HttpError {
  if (code === 'HPE_HEADER_OVERFLOW') return headTooLarge();
  return code === 'ERR_HTTP_REQUEST_TIMEOUT' ? arrivedTooSlowly() : notHttp();
}
