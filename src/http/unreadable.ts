import type { Socket } from 'node:net';
import type { FastifyBaseLogger } from 'fastify';
import { encodeJson } from './json.ts';
import { type NameRequest, requestIdHeader } from './request-id.ts';
import { securityHeaders } from './security-headers.ts';

/** Answers bytes that Node cannot read as an HTTP request, such as a raw non-ASCII target. */
export function answerUnreadable(
  error: Error & { code?: string },
  socket: Socket,
  nameRequest: NameRequest,
  log: FastifyBaseLogger | undefined,
): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const [status, detail] =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? ['431 Request Header Fields Too Large', 'The request target or a header is too large.']
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? ['408 Request Timeout', 'The request took too long to arrive.']
        : ['400 Bad Request', 'The request is not valid HTTP.'];
  const requestId = nameRequest({ headers: {} });
  log?.debug({ requestId, status: Number.parseInt(status, 10), code: error.code }, 'unreadable');
  const body = encodeJson({ detail });
  const headers = {
    [requestIdHeader]: requestId,
    ...securityHeaders,
    'content-type': 'application/json',
    'content-length': body.length,
    connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status}\r\n${lines.join('')}\r\n${body}`);
}
