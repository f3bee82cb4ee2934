// Answers bytes that are no HTTP request.
import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyBaseLogger } from 'fastify';
import { arrivedTooSlowly, type HttpError, headTooLarge, notHttp } from '../errors.ts';
import { encodeJson } from './json.ts';
import { type NameRequest, requestIdHeader } from './request-id.ts';
import { securityHeaders } from './security-headers.ts';

type OnClientError = (error: Error & { code?: string }, socket: Socket) => void;

/**
 * Answers bytes that Node cannot read as an HTTP request, such as a raw non-ASCII target.
 * @param added headers of these answers, beside those of all
 */
export function answerUnreadable(
  nameRequest: NameRequest,
  log: FastifyBaseLogger | undefined,
  added: Readonly<Record<string, string>> = {},
): OnClientError {
  const known = new WeakSet<Socket>();
  return (error, socket) => {
    // Node says it again for all that comes after it.
    if (known.has(socket)) return;
    known.add(socket);
    if (!socket.writable || error.code === 'ECONNRESET') socket.destroy();
    else whenAnswered(socket, () => sendError(error, socket, nameRequest, log, added));
  };
}

/** What Node keeps on a socket: the answer that is due, of the oldest of the pipelined requests. */
interface Pipelined {
  readonly _httpMessage?: ServerResponse | null;
}

/** Calls back when all requests have been answered that came before and are whole. */
function whenAnswered(socket: Socket, callback: () => void): void {
  const due = (socket as Pipelined)._httpMessage;
  if (due?.req.complete) due.once('close', () => whenAnswered(socket, callback));
  else if (socket.writable) callback();
}

function sendError(
  error: Error & { code?: string },
  socket: Socket,
  nameRequest: NameRequest,
  log: FastifyBaseLogger | undefined,
  added: Readonly<Record<string, string>>,
): void {
  const { status, message: detail } = httpErrorOf(error.code);
  const requestId = nameRequest({ headers: {} });
  log?.debug({ requestId, status, code: error.code }, 'unreadable');
  const body = encodeJson({ detail });
  const headers = {
    [requestIdHeader]: requestId,
    ...securityHeaders,
    ...added,
    'content-type': 'application/json',
    'content-length': body.length,
    connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
}

/** @param code of Node's error */
function httpErrorOf(code: string | undefined): HttpError {
  if (code === 'HPE_HEADER_OVERFLOW') return headTooLarge();
  return code === 'ERR_HTTP_REQUEST_TIMEOUT' ? arrivedTooSlowly() : notHttp();
}
