// A client of graphql-transport-ws that shows each message as it came, and sends anything.
import { once } from 'node:events';
import { expect, onTestFinished, vi } from 'vitest';
import { WebSocket } from 'ws';
import { patience } from './event-stream.ts';

export interface Message {
  readonly type: string;
  readonly id?: string;
  // biome-ignore lint/suspicious/noExplicitAny: answers of any document.
  readonly payload?: any;
}

/** Opens a connection, without `connection_init`. @throws Error with the status of a handshake that is refused */
export async function openSocket(
  base: string,
  headers: Record<string, string> = {},
  protocol = 'graphql-transport-ws',
) {
  const url = `${base.replace(/^http/, 'ws')}/graphql`;
  const socket = new WebSocket(url, protocol, { headers, closeTimeout: 1000 } as object);
  onTestFinished(() => socket.terminate());
  const messages: Message[] = [];
  let taken = 0;
  socket.on('message', (data) => messages.push(JSON.parse(String(data))));
  const closed = new Promise<readonly [number, string]>((settle) => {
    socket.on('close', (code, reason) => settle([code, String(reason)]));
  });
  const refused = new Promise<never>((_, reject) => {
    socket.on('unexpected-response', (_request, response) => {
      let body = '';
      response.on('data', (chunk) => (body += chunk));
      response.on('end', () => reject(new Error(`${response.statusCode} ${body}`)));
    });
  });
  await Promise.race([once(socket, 'open'), refused]);
  socket.on('error', () => {});
  const send = (message: object | string) =>
    socket.send(typeof message === 'string' ? message : JSON.stringify(message));
  return {
    socket,
    messages,
    /** Waits for the first message that has not been taken yet. */
    async next() {
      const message = await vi.waitFor(
        () => messages[taken] ?? expect.fail('No message'),
        patience,
      );
      taken += 1;
      return message;
    },
    send,
    subscribe: (id: string, query: string, payload: object = {}) =>
      send({ id, type: 'subscribe', payload: { query, ...payload } }),
    /** Code and reason. */
    closed,
  };
}

/** The same, and acknowledged. */
export async function openAcknowledged(
  base: string,
  headers?: Record<string, string>,
  parameters?: object,
) {
  const opened = await openSocket(base, headers);
  opened.send({ type: 'connection_init', payload: parameters });
  const { type } = await opened.next();
  if (type !== 'connection_ack') throw new Error(type);
  return opened;
}
