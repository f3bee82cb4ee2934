// A way to a server on which packets can get lost.
import { connect, createServer, type Socket } from 'node:net';
import { listen } from '../http/listen.ts';

export type Network = Awaited<ReturnType<typeof openNetwork>>;

export async function openNetwork(to: number) {
  const sockets = new Set<Socket>();
  let target = to;
  let isDead = false;
  let lost: { readonly bytes: string; readonly settle: () => void } | undefined;
  const keep = (socket: Socket, peer: () => Socket) => {
    sockets.add(socket);
    if (isDead) socket.pause();
    socket.on('data', (chunk) => {
      if (!lost || !chunk.includes(lost.bytes)) peer().write(chunk);
      else {
        lost.settle();
        lost = undefined;
        for (const one of [socket, peer()]) one.pause();
      }
    });
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
  return {
    port: await listen(server),
    connections: () => sockets.size,
    /** From now on nothing arrives, and nothing says so. */
    swallow() {
      isDead = true;
      for (const socket of sockets) socket.pause();
    },
    /** The next connection on which this is sent is dropped with it, and nothing says so. @returns when it was */
    lose(bytes: string): Promise<void> {
      return new Promise((settle) => {
        lost = { bytes, settle };
      });
    },
    restore() {
      isDead = false;
      for (const socket of sockets) socket.resume();
    },
    /** From now on it leads to another port: what is open ends. */
    redirect(port: number) {
      target = port;
      for (const socket of sockets) socket.destroy();
    },
    /** From now on new connections lead to another port: what is open stays. */
    lead(port: number) {
      target = port;
    },
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
