// A reader of server-sent events, with nothing in between: what a gateway has really sent.
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { expect, onTestFinished, vi } from 'vitest';
import { portOf } from './listen.ts';

export interface StreamEvent {
  readonly name: string;
  // biome-ignore lint/suspicious/noExplicitAny: answers of any document.
  readonly data: any;
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
  return `http://127.0.0.1:${portOf(app.server)}`;
}

/** Sends a document that asks for events, and waits for the head of the answer. */
export async function openStream(
  base: string,
  query: string,
  { variables = {}, operationName, headers = {}, method = 'POST' }: StreamOptions = {},
): Promise<Stream> {
  const isGet = method === 'GET';
  const search = new URLSearchParams({ query, variables: JSON.stringify(variables) });
  const sent = request(`${base}/graphql${isGet ? `?${search}` : ''}`, {
    method,
    agent: false,
    headers: { accept: 'text/event-stream', 'content-type': 'application/json', ...headers },
  });
  sent.end(isGet ? undefined : JSON.stringify({ query, variables, operationName }));
  sent.on('error', () => {});
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  onTestFinished(() => {
    sent.destroy();
  });
  return follow(response, sent);
}

/** For a busy machine. */
export const patience = { interval: 5, timeout: 60_000 };

export type Stream = ReturnType<typeof follow>;

function follow(response: IncomingMessage, sent: ClientRequest) {
  let text = '';
  let taken = 0;
  response.setEncoding('utf8').on('data', (chunk) => (text += chunk));
  response.on('error', () => {});
  const ended = new Promise<boolean>((settle) => {
    response.on('close', () => settle(response.complete));
  });
  const events = () =>
    text
      .split('\n\n')
      .slice(0, -1)
      .filter((block) => !block.startsWith(':'))
      .map(parseEvent);
  return {
    response,
    /** All that has been sent, comments among it. */
    text: () => text,
    events,
    /** Waits for the first event that has not been taken yet. */
    async next() {
      const find = () => events()[taken] ?? expect.fail(`No further event: ${text}`);
      const event = await vi.waitFor(find, patience);
      taken += 1;
      return event;
    },
    /** Resolves when the stream has ended: true if it did so properly. */
    ended,
    close: () => void sent.destroy(),
  };
}

function parseEvent(block: string): StreamEvent {
  const [, name = '', data = ''] = /^event: (.*)\ndata: (.*)$/.exec(block) ?? [];
  return { name, data: data === '' ? undefined : JSON.parse(data) };
}
