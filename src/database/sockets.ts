import { Socket } from 'node:net';

/** Every socket to the server, so that all of them can be cut at once, and new ones refused. */
export class Sockets {
  readonly #open = new Set<Socket>();
  #refusal: Error | undefined;

  /** For `stream` in the configuration of `pg`. */
  readonly open = (): Socket => {
    const socket = new Socket();
    this.#open.add(socket);
    socket.once('close', () => this.#open.delete(socket));
    const refusal = this.#refusal;
    if (refusal) process.nextTick(() => socket.destroy(refusal));
    return socket;
  };

  /**
   * Ends all connections: whatever waits for one of them fails with `refusal`, and so does every
   * new connection until `admit` is called.
   */
  refuse(refusal: Error): void {
    this.#refusal = refusal;
    for (const socket of this.#open) socket.destroy(refusal);
  }

  admit(): void {
    this.#refusal = undefined;
  }
}
