// Results as bytes, in the types of GraphQL over HTTP.
import { type ExecutionResult, GraphQLError } from 'graphql';
import { type FetchAPI, processRegularResult } from 'graphql-yoga';
import type { HttpError } from '../errors.ts';
import type { Representable } from '../http/representation.ts';

export const answerTypes = ['application/json', 'application/graphql-response+json'] as const;
export type AnswerType = (typeof answerTypes)[number];
/** The type of answers within events and messages. */
export const eventType: AnswerType = 'application/graphql-response+json';

export interface Answer {
  /** Bytes, for the limit of the cache. */
  readonly size: number;
  /** Whether other callers may get it: neither an error nor specific to one viewer. */
  readonly shareable: boolean;
}

/** The answer to an operation, or one of those of a live query. */
export interface EncodedAnswer extends Answer, Representable {
  readonly status: number;
  readonly shareable: boolean;
  /** Whether it is the same for every viewer. */
  readonly isShared: boolean;
  /** Whether nothing was executed: the document or its variables are wrong, say. */
  readonly isRefusal: boolean;
  /** As an event, by the format of the stream: encoded once for all who read it. */
  events?: Map<object, Buffer>;
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
    toAnswer: (result, isShared) => encode(result, type, isShared),
  };
}

/** What an operation is refused for, as its answer within events and messages. */
export function refusalOf({ message, code }: HttpError): EncodedAnswer {
  return encode(
    { errors: [new GraphQLError(message, { extensions: { code } })] },
    eventType,
    false,
  );
}

/** By Yoga, which implements the status of errors for each media type (GraphQL over HTTP §6.4). */
function encode(result: ExecutionResult, type: AnswerType, isShared: boolean): EncodedAnswer {
  const response: unknown = processRegularResult(result as never, fetchApi, type);
  const { body: text, init } = response as PlainResponse;
  const body = Buffer.from(text);
  return {
    ...{ body, status: init.status, contentType: init.headers['Content-Type'], isShared },
    // Includes its compressed representations, or its events.
    size: 3 * body.length,
    shareable: isShared && result.errors === undefined,
    isRefusal: result.data === undefined,
  };
}

/** Replaces `Response`: body as text, without a stream. */
class PlainResponse {
  constructor(
    readonly body: string,
    readonly init: { readonly status: number; readonly headers: { 'Content-Type': string } },
  ) {}
}

const fetchApi = { Response: PlainResponse } as unknown as FetchAPI;
