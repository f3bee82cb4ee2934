// Requests of every kind, one after the other by several clients, and what became of them.
import { Agent, request } from 'node:http';
import { expect } from 'vitest';

export interface Answered {
  readonly what: string;
  /** 0 when there was no answer. */
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly body: string;
  readonly milliseconds: number;
}

/** Sends one request and reads the whole answer; never rejects. */
export function send(
  base: string,
  what: string,
  signal?: AbortSignal,
  agent?: Agent,
  headers: Record<string, string> = {},
): Promise<Answered> {
  const start = performance.now();
  const isDocument = what.startsWith('{') || what.startsWith('mutation');
  return new Promise((settle) => {
    const end = (status: number, body: string, retryAfter?: string) =>
      settle({ what, status, body, retryAfter, milliseconds: performance.now() - start });
    const sent = request(
      isDocument ? `${base}/graphql` : base + what,
      {
        method: isDocument ? 'POST' : 'GET',
        headers: { ...headers, ...(isDocument ? { 'content-type': 'application/json' } : {}) },
        ...(agent ? { agent } : {}),
        ...(signal ? { signal } : {}),
      },
      (response) => {
        let body = '';
        response.setEncoding('utf8').on('data', (chunk) => {
          body += chunk;
        });
        response.on('end', () =>
          end(response.statusCode ?? 0, body, response.headers['retry-after']),
        );
        response.on('error', (error) => end(0, error.message));
      },
    );
    sent.on('error', (error) => end(0, error.message));
    sent.end(isDocument ? JSON.stringify({ query: what }) : undefined);
  });
}

/** Cached and uncached, REST and GraphQL, through lists, compiled queries and Prisma. */
export function anyRequest(turn: number): string {
  const requests = [
    '/api/outfits/',
    `/api/outfits/?page=${1 + (turn % 40)}&ordering=like_count`,
    '{ outfits(ordering: LIKE_COUNT_DESC) { count results { id: databaseId title user { username } } } }',
    `{ outfit(databaseId: ${1 + (turn % 100)}) { title } }`,
    `{ user(databaseId: ${1 + (turn % 20)}) { username outfits { count } } }`,
    `{ outfitConnection(first: ${1 + (turn % 30)}) { totalCount edges { node { id: databaseId } } } }`,
  ];
  return requests[turn % requests.length] ?? '';
}

export interface Load {
  /** Everything that has been answered, oldest first. */
  readonly answers: readonly Answered[];
  /** Resolves when there have been so many more answers of a status. */
  until(status: number, times: number): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Keeps a server busy until it is told to stop.
 * @param headersOf the headers of each request
 */
export function startLoad(
  base: string,
  clients = 12,
  headersOf = (_turn: number): Record<string, string> => ({}),
): Load {
  const answers: Answered[] = [];
  const agent = new Agent({ keepAlive: true });
  let isStopped = false;
  const work = async (client: number) => {
    for (let turn = client; !isStopped; turn += 7) {
      answers.push(await send(base, anyRequest(turn), undefined, agent, headersOf(turn)));
      // Less than the machine can do: this is about faults, not about overload.
      await new Promise((settle) => setTimeout(settle, 20));
    }
  };
  const working = Promise.all(Array.from({ length: clients }, (_, client) => work(client)));
  return {
    answers,
    async until(status, times) {
      const from = answers.length;
      const more = () => answers.slice(from).filter((answer) => answer.status === status).length;
      await expect.poll(more, { timeout: 120_000 }).toBeGreaterThanOrEqual(times);
    },
    async stop() {
      isStopped = true;
      await working;
      agent.destroy();
    },
  };
}
