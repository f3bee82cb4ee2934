// A client of graphql-transport-ws that shows each message as it came, and sends anything.
import { once } from 'node:events';
import { onTestFinished } from 'vitest';
import { WebSocket } from 'ws';

export interface Message {
  readonly type: string;
  readonly id?: string;
  // biome-ignore lint/suspicious/noExplicitAny: answers of any document.
  readonly payload?: any;
}

export interface TestSocket {
  readonly socket: WebSocket;
  readonly messages: Message[];
  /** Waits for the first message that has not been taken yet. */
  next(): Promise<Message>;
  send(message: object | string): void;
  subscribe(id: string, query: string, payload?: object): void;
  /** Code and reason. */
  readonly closed: Promise<readonly [number, string]>;
}

/** Opens a connection, without `connection_init`. @throws Error with the status of a handshake that is refused */
export async function openSocket(
  base: string,
  headers: Record<string, string> = {},
  protocol = 'graphql-transport-ws',
): Promise<TestSocket> {
  const url = `${base.replace(/^http/, 'ws')}/graphql`;
  const socket = new WebSocket(url, protocol, { headers, closeTimeout: 1000 } as object);
  onTestFinished(() => socket.terminate());
  const messages: Message[] = [];
  let taken = 0;
  let notify = () => {};
  socket.on('message', (data) => {
    messages.push(JSON.parse(String(data)));
    notify();
  });
  const closed = new Promise<readonly [number, string]>((settle) => {
    socket.on('close', (code, reason) => {
      settle([code, String(reason)]);
      notify();
    });
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
    async next() {
      for (;;) {
        const message = messages[taken];
        if (message) {
          taken += 1;
          return message;
        }
        if (socket.readyState === WebSocket.CLOSED) throw new Error('The connection is closed.');
        await new Promise<void>((settle) => {
          notify = settle;
        });
      }
    },
    send,
    subscribe: (id, query, payload = {}) =>
      send({ id, type: 'subscribe', payload: { query, ...payload } }),
    closed,
  };
}

/** The same, and acknowledged. */
export async function openAcknowledged(
  base: string,
  headers?: Record<string, string>,
  parameters?: object,
): Promise<TestSocket> {
  const opened = await openSocket(base, headers);
  opened.send({ type: 'connection_init', payload: parameters });
  const { type } = await opened.next();
  if (type !== 'connection_ack') throw new Error(type);
  return opened;
}
