// One operation on its way through Yoga: who sends it, how its result becomes an answer, and what plugins find out.
import { hash } from 'node:crypto';
import { type ExecutionResult, GraphQLError } from 'graphql';
import { type FetchAPI, type Plugin, processRegularResult } from 'graphql-yoga';
import type { OperationCaller } from '../admission/admission.ts';
import type { Dependencies } from '../database/changes/change-log.ts';
import type { DatabaseState } from '../database/changes/snapshots.ts';
import type { HttpError } from '../errors.ts';
import type { Representable } from '../http/representation.ts';
import type { Operation } from './operations.ts';

/** An operation with its variables. */
export interface Execution<Value extends Answer> extends Encoding<Value> {
  readonly operation: Operation;
  readonly variables: Record<string, unknown>;
}

export type OpenLive = (
  operation: Operation,
  variables: Record<string, unknown>,
) => Promise<AsyncIterable<unknown>>;

/** The context that Yoga gives to plugins. Resolvers get the `Context` of context.ts. */
export interface OperationContext {
  readonly run: Run;
}

export type OperationPlugin = Plugin<OperationContext, OperationContext>;

/** How a request refers to its document: by `query`, `name`, or both. */
export interface DocumentReference {
  readonly query: string | undefined;
  /** An id or a hash; `isAutomatic` (APQ): the client sends the text when the hash is unknown. */
  readonly name: { readonly id: string; readonly isAutomatic: boolean } | undefined;
}

/** What an operation can give at most, for limits and for taking turns. */
export interface Cost {
  readonly objects: number;
  /** Fields of all these objects. */
  readonly fields: number;
  /** Cost of the filters of lists for the database, by `weighFilter`: once for each field of the document. */
  readonly weight: number;
}

/** An answer with its cache dependencies. */
export interface Reading<Value extends Answer> {
  readonly answer: Value;
  /** Undefined: every commit invalidates it. */
  readonly dependencies: Dependencies | undefined;
  /** Whether reading it took the lane of expensive statements. */
  readonly isExpensive: boolean;
  /** For the metrics and the log. */
  readonly operationName: string | undefined;
  readonly cost: Cost | undefined;
}

/** What was read just now: its result is not kept, as the answer has its bytes. */
export interface Executed<Value extends Answer> extends Reading<Value> {
  readonly result: ExecutionResult;
}

/** What the answer cache has: an answer, and the state of the database if it was taken to look. */
export interface Found {
  readonly reading?: Reading<Answer>;
  readonly state?: DatabaseState | undefined;
}

const parts = ['data', 'errors', 'extensions'] as const;

/** Yoga copies the list of errors. */
function isSame(before: unknown, after: unknown): boolean {
  if (!Array.isArray(before) || !Array.isArray(after)) return before === after;
  return before.length === after.length && before.every((item, index) => item === after[index]);
}

export class Run {
  /** Opens the answers of a live query; undefined: whoever sends it takes one answer. */
  openLive: OpenLive | undefined;
  /** Those of a live query. */
  answers: AsyncIterable<unknown> | undefined;
  idempotencyKey: string | undefined;
  /** How the request names its document. */
  reference: DocumentReference | undefined;
  operation: Operation | undefined;
  /** Undefined: it was not counted. */
  cost: Cost | undefined;
  /** What the answer cache has of it. */
  found: Found = {};
  /** Undefined: it was not executed. */
  executed: Executed<Answer> | undefined;
  /** Which plugins may have changed. */
  result: ExecutionResult | undefined;

  constructor(
    readonly encoding: Encoding,
    readonly caller: OperationCaller,
  ) {
    this.idempotencyKey = caller.idempotencyKey;
  }

  /** For the log and the metrics. */
  get operationName(): string | undefined {
    return this.found.reading?.operationName ?? this.operation?.name;
  }

  get errors(): ExecutionResult['errors'] {
    return this.result?.errors;
  }

  /** Whether another plugin has changed the result: then it is not kept, so that each passes through that plugin. */
  get isChanged(): boolean {
    const { executed, result } = this;
    return (
      executed !== undefined && parts.some((part) => !isSame(executed.result[part], result?.[part]))
    );
  }

  get reading(): Reading<Answer> {
    const { executed, encoding, result = {} } = this;
    if (executed && !this.isChanged) return executed;
    return {
      answer: encoding.toAnswer(result, false),
      dependencies: executed?.dependencies,
      isExpensive: executed?.isExpensive ?? false,
      operationName: this.operation?.name,
      cost: this.cost,
    };
  }
}

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
  /** As a server-sent event. */
  event?: Buffer;
}

/** How the result of an operation becomes an answer. */
export interface Encoding<Value extends Answer = Answer> {
  /** Cache key: names the operation, the variables, and the form of the answer. */
  readonly key: string;
  /** @param isShared whether the result is the same for every viewer: shareable, then, unless it has errors */
  readonly toAnswer: (result: ExecutionResult, isShared: boolean) => Value;
}

/** Characters of a text in a cache key; a longer one is there by its hash. */
const maxKeyLength = 4_096;

/** @param text names everything that the answer depends on, but its type */
export function encodingOf(type: AnswerType, text: string): Encoding<EncodedAnswer> {
  const key = text.length > maxKeyLength ? hash('sha256', text, 'base64url') : text;
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
