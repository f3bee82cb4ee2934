// Results as bytes, in the types of GraphQL over HTTP.
import type { ExecutionResult } from 'graphql';
import { type FetchAPI, processRegularResult } from 'graphql-yoga';
import type { Representable } from '../http/representation.ts';
import type { Answer } from './engine/answer-cache.ts';

export const answerTypes = ['application/json', 'application/graphql-response+json'] as const;
export type AnswerType = (typeof answerTypes)[number];
/** The type of answers within events and messages. */
export const eventType: AnswerType = 'application/graphql-response+json';

export interface EncodedAnswer extends Answer, Representable {
  readonly status: number;
  readonly shareable: boolean;
  /** Whether it is the same for every viewer. */
  readonly isShared: boolean;
  /** Whether nothing was executed: the document or its variables are wrong, say. */
  readonly isRefusal: boolean;
}

/** How the result of an operation becomes an answer. */
export interface Encoding<Value extends Answer = Answer> {
  /** Cache key: names the operation, the variables, and the form of the answer. */
  readonly key: string;
  /** @param isShared whether the result is the same for every viewer: shareable, then, unless it has errors */
  readonly toAnswer: (result: ExecutionResult, isShared: boolean) => Value;
}

/** @param key names everything that the answer depends on, but its type */
export function encodingOf(type: AnswerType, key: string): Encoding<EncodedAnswer> {
  return {
    key: `${type} ${key}`,
    toAnswer: (result, isShared) => {
      const encoded = encodeResult(result, type);
      const shareable = isShared && result.errors === undefined;
      const isRefusal = result.data === undefined;
      // Includes its compressed representations.
      return { ...encoded, size: 2 * encoded.body.length, shareable, isShared, isRefusal };
    },
  };
}

/** By yoga, which implements the status of errors for each media type (GraphQL over HTTP §6.4). */
export function encodeResult(result: ExecutionResult, type: AnswerType) {
  const response: unknown = processRegularResult(result as never, fetchApi, type);
  const { body, init } = response as PlainResponse;
  const { status, headers } = init;
  return { status, contentType: headers['Content-Type'], body: Buffer.from(body) };
}

/** Replaces `Response`: body as text, without a stream. */
class PlainResponse {
  constructor(
    readonly body: string,
    readonly init: { readonly status: number; readonly headers: { 'Content-Type': string } },
  ) {}
}

const fetchApi = { Response: PlainResponse } as unknown as FetchAPI;
