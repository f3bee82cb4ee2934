// An old service that answers with bytes that a test chooses, and keeps the bytes that it was sent.
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { listen } from '../http/listen.ts';

export type ScriptedService = Awaited<ReturnType<typeof startScriptedService>>;

export async function startScriptedService() {
  const sockets = new Set<Socket>();
  let received = '';
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.setEncoding('latin1');
    socket.on('data', (chunk: string) => {
      received += chunk;
      if (!service.answer || !/\r\n\r\n/.test(chunk)) return;
      if (service.ends) socket.end(service.answer, 'latin1');
      else socket.write(service.answer, 'latin1');
    });
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  });
  const service = {
    base: `http://127.0.0.1:${await listen(server)}`,
    /** Bytes, given as latin1, of the answer to each request. */
    answer: 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
    /** Whether the connection ends with the answer. */
    ends: true,
    /** All that came, as latin1. */
    received: () => received,
    connections: () => sockets.size,
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
      if (server.listening) await once(server, 'close');
    },
  };
  return service;
}
