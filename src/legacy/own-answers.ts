// What this gateway itself would answer, for comparisons.
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { type Answer, toAnswer } from '../http/client.ts';
import { createInnerApp } from '../rest/inner-app.ts';

/** What of a request is needed for its answer; its connection may be gone by then. */
export interface OwnQuestion {
  readonly headers: IncomingHttpHeaders;
  readonly protocol: string;
  readonly host: string;
  /** Path and query. */
  readonly target: string;
}

export interface OwnAnswers {
  /** The answer to a GET, in full also if the client has asked for it on a condition. */
  get(question: OwnQuestion): Promise<Answer>;
  close(): Promise<void>;
}

/** What a comparison must not depend on. */
export const conditions = new Set([
  'accept-encoding',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'range',
]);

/** @param serve adds the legacy paths */
export async function createOwnAnswers(
  serve: (app: FastifyInstance) => Promise<void>,
): Promise<OwnAnswers> {
  const app = await createInnerApp(serve);
  return {
    async get(question) {
      const kept = Object.entries(question.headers).filter(([name]) => !conditions.has(name));
      const answer = await app.ask({ ...question, headers: Object.fromEntries(kept) });
      return toAnswer(answer.statusCode, answer.headers, answer.rawPayload);
    },
    close: () => app.close(),
  };
}
