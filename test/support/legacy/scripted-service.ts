// An old service that answers with bytes that a test chooses, and keeps the bytes that it was sent.
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';

export interface ScriptedService {
  readonly base: string;
  /** Bytes, given as latin1, of the answer to each request. */
  answer: string;
  /** Whether the connection ends with the answer. */
  ends: boolean;
  /** All that came, as latin1. */
  received(): string;
  connections(): number;
  close(): Promise<void>;
}

export async function startScriptedService(): Promise<ScriptedService> {
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
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const service: ScriptedService = {
    base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answer: 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
    ends: true,
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
