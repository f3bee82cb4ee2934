// One operation on its way through Yoga: who sends it, how its result becomes an answer, and what plugins find out.
import type { ExecutionResult } from 'graphql';
import type { OperationCaller } from '../admission/admission.ts';
import type { Answer, Executed, Found, Reading } from './engine/answer-cache.ts';
import type { Cost } from './engine/cost.ts';
import type { Operation } from './engine/operations.ts';

/** How the result of an operation becomes an answer. */
export interface Encoding<Value extends Answer = Answer> {
  /** Cache key: names the operation, the variables, and the form of the answer. */
  readonly key: string;
  /** @param isShared whether the result is the same for every viewer: shareable, then, unless it has errors */
  readonly toAnswer: (result: ExecutionResult, isShared: boolean) => Value;
}

/** An operation with its variables. */
export interface Execution<Value extends Answer> extends Encoding<Value> {
  readonly operation: Operation;
  readonly variables: Record<string, unknown>;
}

/** The context that Yoga gives to plugins. Resolvers get the `Context` of context.ts. */
export interface OperationContext {
  readonly run: Run;
}

export class Run {
  operation: Pick<Operation, 'isLive' | 'name' | 'type'> | undefined;
  /** Undefined: it was not counted. */
  cost: Cost | undefined;
  /** What the answer cache has of it. */
  found: Found<Answer> = {};
  /** Undefined: it was not executed. */
  executed: Executed<Answer> | undefined;
  isShared = false;
  errors: ExecutionResult['errors'];

  constructor(
    readonly encoding: Encoding,
    readonly caller: OperationCaller,
  ) {}

  /** The answer, of a result that plugins may have changed. */
  finish(result: ExecutionResult): Reading<Answer> & { readonly isChanged: boolean } {
    const { executed, encoding } = this;
    this.errors = result.errors;
    if (executed?.result === result) return { ...executed, isChanged: false };
    const isShared = this.isShared && result.errors !== undefined;
    return {
      answer: encoding.toAnswer(result, isShared),
      dependencies: executed?.dependencies,
      isExpensive: executed?.isExpensive ?? false,
      operationName: this.operation?.name,
      cost: this.cost,
      isChanged: !result.errors,
    };
  }
}
