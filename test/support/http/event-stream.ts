// A reader of server-sent events, with nothing in between: what a gateway has really sent.
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { onTestFinished } from 'vitest';

export interface StreamEvent {
  readonly name: string;
  // biome-ignore lint/suspicious/noExplicitAny: answers of any document.
  readonly data: any;
}

export interface Stream {
  readonly response: IncomingMessage;
  /** All that has been sent, comments among it. */
  text(): string;
  events(): StreamEvent[];
  /** Waits for the first event that has not been taken yet. */
  next(): Promise<StreamEvent>;
  /** Resolves when the stream has ended: true if it did so properly. */
  readonly ended: Promise<boolean>;
  close(): void;
}

export interface StreamOptions {
  readonly variables?: object;
  readonly operationName?: string;
  readonly headers?: Record<string, string>;
  readonly method?: 'GET' | 'POST';
}

/** Where a gateway listens, which it does from now on. */
export async function baseOfApp(app: FastifyInstance): Promise<string> {
  if (!app.server.listening) await app.listen({ port: 0, host: '127.0.0.1' });
  return `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
}

/** Sends a document that asks for events, and waits for the head of the answer. */
export async function openStream(
  base: string,
  query: string,
  { variables, operationName, headers = {}, method = 'POST' }: StreamOptions = {},
): Promise<Stream> {
  const body = JSON.stringify({ query, variables, operationName });
  const search = new URLSearchParams({
    query,
    ...(variables ? { variables: JSON.stringify(variables) } : {}),
    ...(operationName ? { operationName } : {}),
  });
  const isGet = method === 'GET';
  const sent: ClientRequest = request(`${base}/graphql${isGet ? `?${search}` : ''}`, {
    method,
    agent: false,
    headers: {
      accept: 'text/event-stream',
      ...(isGet ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
  });
  sent.end(isGet ? undefined : body);
  sent.on('error', () => {});
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  onTestFinished(() => {
    sent.destroy();
  });
  return follow(response, sent);
}

function follow(response: IncomingMessage, sent: ClientRequest): Stream {
  let text = '';
  let taken = 0;
  let notify = () => {};
  response.setEncoding('utf8').on('data', (chunk) => {
    text += chunk;
    notify();
  });
  response.on('error', () => {});
  const ended = new Promise<boolean>((settle) => {
    response.on('close', () => {
      settle(response.complete);
      notify();
    });
  });
  const events = () =>
    text
      .split('\n\n')
      .slice(0, -1)
      .filter((block) => !block.startsWith(':'))
      .map(parseEvent);
  return {
    response,
    text: () => text,
    events,
    async next() {
      for (;;) {
        const event = events()[taken];
        if (event) {
          taken += 1;
          return event;
        }
        if (response.destroyed) throw new Error(`The stream has ended: ${text}`);
        await new Promise<void>((settle) => {
          notify = settle;
        });
      }
    },
    ended,
    close: () => sent.destroy(),
  };
}

function parseEvent(block: string): StreamEvent {
  const [, name = '', data = ''] = /^event: (.*)\ndata: (.*)$/.exec(block) ?? [];
  return { name, data: data === '' ? undefined : JSON.parse(data) };
}
