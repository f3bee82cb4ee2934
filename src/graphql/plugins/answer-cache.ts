// Executes a query once for all viewers if it can be shared, and keeps its answer until a commit invalidates it.
import type { ExecutionArgs, ExecutionResult } from 'graphql';
import type { GuardWrite } from '../../admission/admission.ts';
import type { Viewer } from '../../admission/viewer.ts';
import type { DatabaseState } from '../../database/changes/snapshots.ts';
import type { ReadAt } from '../../database/standby/replicas.ts';
import { currentTask, type StartTask } from '../../database/task.ts';
import type { Context, ContextFactory } from '../context.ts';
import type { Answer, AnswerCache, Executed } from '../engine/answer-cache.ts';
import type { Operation, Operations } from '../engine/operations.ts';
import type { OperationPlugin, Run } from '../operation.ts';

export interface AnswerCacheOptions {
  readonly cache: AnswerCache;
  readonly startTask: StartTask;
  readonly contexts: ContextFactory;
  readonly readAt?: ReadAt | undefined;
  /** Throws the refusal of every mutation while writes are switched off. */
  readonly guardWrite: GuardWrite;
}

/** Whether this viewer gets the same answer as every other, until an execution proves the operation personal. */
export function isShared(
  { type, isPersonal }: Operation,
  viewer: Viewer | undefined,
  contexts: ContextFactory,
): boolean {
  return type === 'query' && !isPersonal && (viewer === undefined || contexts.sharesWithViewers);
}

export function useAnswerCache(
  options: AnswerCacheOptions,
  operations: Operations,
): OperationPlugin {
  return {
    onExecute({ args: { document, operationName }, context, executeFn, setExecuteFn }) {
      const operation = operations.of(document, operationName);
      if (!operation) return;
      const added = addedTo(context);
      setExecuteFn(async (args: ExecutionArgs) => {
        const execute = (contextValue: Context) => executeFn({ ...args, contextValue });
        const reader = new Reader(options, operation, context.run, added, execute);
        context.run.executed = await reader.read();
        return context.run.executed.result;
      });
    },
  };
}

/** Names that Yoga and this gateway give to the context of an operation. */
const known = new Set(['run', 'request', 'params', 'waitUntil']);

/** What other plugins have added to the context, for resolvers. */
function addedTo(context: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(context).filter(([name]) => !known.has(name)));
}

/** Result of a shared execution that turned out to be personal. */
const personal: Executed<Answer> = {
  answer: { size: 0, shareable: false },
  result: {},
  dependencies: undefined,
  isExpensive: false,
  operationName: undefined,
  cost: undefined,
};

class Reader {
  constructor(
    private readonly options: AnswerCacheOptions,
    private readonly operation: Operation,
    private readonly run: Run,
    private readonly added: Record<string, unknown>,
    private readonly execute: (context: Context) => Promise<ExecutionResult>,
  ) {}

  async read(): Promise<Executed<Answer>> {
    const { options, operation, run } = this;
    const { caller, cost, encoding, found } = run;
    if (operation.type === 'mutation') options.guardWrite(caller.viewer);
    if (!isShared(operation, caller.viewer, options.contexts)) return this.#answerPersonal();
    run.isShared = true;
    const read = (state: DatabaseState | undefined) => this.#readShared(state);
    const { allowsStale } = caller;
    const executed = await options.cache.read(
      ...([encoding.key, read, caller, found, allowsStale, cost?.fields] as const),
    );
    if (executed !== personal) return executed;
    run.isShared = false;
    return this.#answerPersonal();
  }

  #answerPersonal(): Promise<Executed<Answer>> {
    const { caller, cost } = this.run;
    const work = () => this.#readPersonal();
    return this.options.startTask(work, caller.sender, undefined, cost?.fields).wait(caller);
  }

  async #readPersonal(): Promise<Executed<Answer>> {
    const { cache, contexts, readAt } = this.options;
    const isWrite = this.operation.type === 'mutation';
    const read = isWrite ? undefined : readAt?.(await cache.currentState());
    const { caller, idempotencyKey } = this.run;
    const { log, viewer } = caller;
    const personal = { idempotencyKey, log, viewer };
    const context = contexts.createPersonal(personal, read, this.added);
    return this.#toExecuted(await this.execute(context), false, undefined);
  }

  async #readShared(state: DatabaseState | undefined): Promise<Executed<Answer>> {
    const { contexts, readAt } = this.options;
    const context = contexts.createShared(readAt?.(state), this.added);
    const result = await this.execute(context);
    if (context.isPersonal) {
      this.operation.isPersonal = true;
      return personal;
    }
    const dependencies = result.errors ? undefined : context.tracker.dependencies();
    return this.#toExecuted(result, true, dependencies);
  }

  #toExecuted(
    result: ExecutionResult,
    isSharedResult: boolean,
    dependencies: Executed<Answer>['dependencies'],
  ): Executed<Answer> {
    // Before the answer is made, which REST refuses for some errors: traces have their codes.
    this.run.errors = result.errors;
    return {
      answer: this.run.encoding.toAnswer(result, isSharedResult),
      result,
      dependencies,
      isExpensive: currentTask()?.isExpensive ?? false,
      operationName: this.operation.name,
      cost: this.run.cost,
    };
  }
}
