// A result as bytes, with the status that GraphQL over HTTP gives it.
import type { ExecutionResult } from 'graphql';
import { processRegularResult } from 'graphql-yoga';
import type { AnswerType } from './request.ts';

export interface ResultBody {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
}

/** Yoga knows which status an error has for which type: GraphQL over HTTP. */
export function encodeResult(result: ExecutionResult, answerType: AnswerType): ResultBody {
  const fetchApi = { Response: PlainResponse } as unknown as Parameters<
    typeof processRegularResult
  >[1];
  const response = processRegularResult(result as never, fetchApi, answerType);
  const { body, status, contentType } = response as unknown as PlainResponse;
  return { status, contentType, body: Buffer.from(body) };
}

/** A response as yoga makes it, but without the streams of a real one. */
class PlainResponse {
  readonly body: string;
  readonly status: number;
  readonly contentType: string;

  constructor(body: string, { status, headers }: { status: number; headers: ContentType }) {
    this.body = body;
    this.status = status;
    this.contentType = headers['Content-Type'];
  }
}

interface ContentType {
  readonly 'Content-Type': string;
}
