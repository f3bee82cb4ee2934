// One operation on its way through Yoga: who sends it, how its result becomes an answer, and what plugins find out.
import type { ExecutionResult } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import type { OperationCaller } from '../admission/admission.ts';
import type { Dependencies } from '../database/changes/change-log.ts';
import type { DatabaseState } from '../database/changes/snapshots.ts';
import type { Answer, Encoding } from './encoding.ts';
import type { LiveStream } from './live/live-stream.ts';
import type { Operation } from './operations.ts';

/** An operation with its variables. */
export interface Execution<Value extends Answer> extends Encoding<Value> {
  readonly operation: Operation;
  readonly variables: Record<string, unknown>;
}

export type OpenLive = (
  operation: Operation,
  variables: Record<string, unknown>,
) => Promise<LiveStream>;

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
export interface Found<Value extends Answer> {
  readonly reading?: Reading<Value>;
  readonly state?: DatabaseState | undefined;
}

export class Run {
  /** Opens the answers of a live query; undefined: whoever sends it takes one answer. */
  openLive: OpenLive | undefined;
  /** Those of a live query. */
  answers: LiveStream | undefined;
  idempotencyKey: string | undefined;
  /** How the request names its document. */
  reference: DocumentReference | undefined;
  operation: Pick<Operation, 'isLive' | 'name' | 'type'> | undefined;
  /** Undefined: it was not counted. */
  cost: Cost | undefined;
  /** What the answer cache has of it. */
  found: Found<Answer> = {};
  /** Undefined: it was not executed. */
  executed: Executed<Answer> | undefined;
  isShared = false;
  errors: ExecutionResult['errors'];
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

  /** @param result which plugins may have changed */
  take(result: ExecutionResult): void {
    this.result = result;
    this.errors = result.errors;
  }

  /** Whether another plugin has changed the result: then it is not kept, so that each passes through that plugin. */
  get isChanged(): boolean {
    return this.result !== this.executed?.result && !this.result?.errors;
  }

  get reading(): Reading<Answer> {
    const { executed, encoding, result = {} } = this;
    if (executed?.result === result) return executed;
    const isShared = this.isShared && result.errors !== undefined;
    return {
      answer: encoding.toAnswer(result, isShared),
      dependencies: executed?.dependencies,
      isExpensive: executed?.isExpensive ?? false,
      operationName: this.operation?.name,
      cost: this.cost,
    };
  }
}
