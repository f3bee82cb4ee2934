// A webhook for AUTH_WEBHOOK_URL: it knows whose a credential is, and keeps what it was asked.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { closeServer, listen } from './listen.ts';

export interface AskedQuestion {
  readonly method: string;
  readonly target: string;
  readonly headers: IncomingMessage['headers'];
}

type Answering = (response: ServerResponse, question: AskedQuestion) => void;

export type Webhook = Awaited<ReturnType<typeof startWebhook>>;

export async function startWebhook() {
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
    const known = [headers.authorization, headers.cookie].find((one) => webhook.users.has(one));
    if (known === undefined) sendJson(response, 401, { detail: 'Invalid token.' });
    else sendJson(response, 200, { id: webhook.users.get(known) });
  });
  const port = await listen(server);
  const webhook = {
    url: `http://127.0.0.1:${port}/whoami/?from=gateway`,
    asked: [] as AskedQuestion[],
    /** The users of what is accepted: a value of Authorization, or a header Cookie. */
    users: new Map<string | undefined, unknown>(),
    /** Another answer to every question; undefined: by `users`. */
    answer: undefined as Answering | undefined,
    /** Questions that are not answered yet, and the most there were. */
    underWay: { now: 0, most: 0 },
    close: () => closeServer(server),
  };
  return webhook;
}

export function sendJson(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}
