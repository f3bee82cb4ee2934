// A way to a server on which packets can get lost.
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

export interface Network {
  readonly port: number;
  /** From now on nothing arrives, and nothing says so. */
  swallow(): void;
  restore(): void;
  /** From now on it leads to another port: what is open ends. */
  redirect(port: number): void;
  /** From now on new connections lead to another port: what is open stays. */
  lead(port: number): void;
  close(): void;
}

export async function openNetwork(to: number): Promise<Network> {
  const sockets = new Set<Socket>();
  let target = to;
  let isDead = false;
  const keep = (socket: Socket, peer: () => Socket) => {
    sockets.add(socket);
    if (isDead) socket.pause();
    socket.on('data', (chunk) => peer().write(chunk));
    socket.on('error', () => {});
    socket.on('close', () => {
      sockets.delete(socket);
      peer().destroy();
    });
  };
  const server = createServer((near) => {
    const far = connect(target, '127.0.0.1');
    keep(near, () => far);
    keep(far, () => near);
    if (isDead) near.pause();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return {
    port: typeof address === 'object' && address ? address.port : 0,
    swallow() {
      isDead = true;
      for (const socket of sockets) socket.pause();
    },
    restore() {
      isDead = false;
      for (const socket of sockets) socket.resume();
    },
    redirect(port) {
      target = port;
      for (const socket of sockets) socket.destroy();
    },
    lead(port) {
      target = port;
    },
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
