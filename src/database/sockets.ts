// All connections to the server, to be cut at once.
import { Socket } from 'node:net';

/** Every socket to the server, so that all of them can be cut at once, and new ones refused. */
export class Sockets {
  readonly #open = new Set<Socket>();
  #error: Error | undefined;

  /** For `stream` in the configuration of `pg`. */
  readonly open = (): Socket => {
    const socket = new Socket();
    this.#open.add(socket);
    socket.once('close', () => this.#open.delete(socket));
    const error = this.#error;
    if (error) process.nextTick(() => socket.destroy(error));
    return socket;
  };

  /**
   * Ends all connections: whatever waits for one of them fails with `error`, and so does every
   * new connection until `admit` is called.
   */
  refuse(error: Error): void {
    this.#error = error;
    for (const socket of this.#open) socket.destroy(error);
  }

  /** Whether no connection can be opened. */
  get isRefusing(): boolean {
    return this.#error !== undefined;
  }

  admit(): void {
    this.#error = undefined;
  }
}
