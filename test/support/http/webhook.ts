// A webhook for AUTH_WEBHOOK_URL: it knows whose a credential is, and keeps what it was asked.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface AskedQuestion {
  readonly method: string;
  readonly target: string;
  readonly headers: IncomingMessage['headers'];
}

export interface Webhook {
  readonly url: string;
  readonly asked: AskedQuestion[];
  /** The users of what is accepted: a value of Authorization, or a header Cookie. */
  readonly users: Map<string, unknown>;
  /** Another answer to every question; undefined: by `users`. */
  answer: ((response: ServerResponse, question: AskedQuestion) => void) | undefined;
  /** Questions that are not answered yet, and the most there were. */
  readonly underWay: { now: number; most: number };
  close(): Promise<void>;
}

export async function startWebhook(): Promise<Webhook> {
  const server = createServer((request, response) => {
    const { method = '', url: target = '', headers } = request;
    const question = { method, target, headers };
    webhook.asked.push(question);
    webhook.underWay.now += 1;
    webhook.underWay.most = Math.max(webhook.underWay.most, webhook.underWay.now);
    response.once('close', () => {
      webhook.underWay.now -= 1;
    });
    if (webhook.answer) return webhook.answer(response, question);
    const shown = [headers.authorization, headers.cookie].filter((one) => one !== undefined);
    const known = shown.find((one) => webhook.users.has(one));
    if (known === undefined) sendJson(response, 401, { detail: 'Invalid token.' });
    else sendJson(response, 200, { id: webhook.users.get(known) });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const webhook: Webhook = {
    url: `http://127.0.0.1:${port}/whoami/?from=gateway`,
    asked: [],
    users: new Map(),
    answer: undefined,
    underWay: { now: 0, most: 0 },
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
  return webhook;
}

export function sendJson(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}
