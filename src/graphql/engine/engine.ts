// The engine executes every operation, of GraphQL and REST: shared by all viewers and cached, or personal.
import type { FastifyBaseLogger } from 'fastify';
import { type ExecutionResult, execute, GraphQLError, type GraphQLSchema } from 'graphql';
import { maskError } from 'graphql-yoga';
import type { GuardWrite, OperationCaller } from '../../admission/admission.ts';
import type { Viewer } from '../../admission/viewer.ts';
import type { Dependencies } from '../../database/changes/change-log.ts';
import type { DatabaseState } from '../../database/changes/database-state.ts';
import { httpErrorFor } from '../../database/errors.ts';
import type { ReadAt } from '../../database/standby/replicas.ts';
import { currentTask, type StartTask } from '../../database/task.ts';
import type { HttpError } from '../../errors.ts';
import type { Context, ContextFactory } from '../context.ts';
import { invalidArgument } from '../errors.ts';
import type { Answer, AnswerCache, Reading } from './answer-cache.ts';
import { type CompiledQuery, compileQuery } from './compiled-query.ts';
import { type LimitConfig, refuseVariables } from './limits.ts';
import { type Invalid, type Operation, Operations } from './operations.ts';

export interface EngineOptions {
  readonly schema: GraphQLSchema;
  readonly config: LimitConfig;
  readonly cache: AnswerCache;
  readonly startTask: StartTask;
  readonly contexts: ContextFactory;
  readonly readAt?: ReadAt | undefined;
  /** Throws the refusal of every mutation while writes are switched off. */
  readonly guardWrite: GuardWrite;
}

/** An operation with its variables, and how its result becomes an answer. */
export interface Execution<Value extends Answer> {
  readonly operation: Operation;
  readonly variables: Record<string, unknown>;
  /** Cache key: names the operation, the variables, and the form of the answer. */
  readonly key: string;
  /** @param isShared whether the result is the same for every viewer: shareable, then, unless it has errors */
  readonly toAnswer: (result: ExecutionResult, isShared: boolean) => Value;
}

/** Times that a query is interpreted before it is compiled, which takes as long as hundreds of executions. */
const interpretedTimes = 3;

/** Result of a shared execution that turned out to be personal. */
const personal: Reading<Answer> = {
  answer: { size: 0, shareable: false },
  dependencies: undefined,
  isExpensive: false,
};

/** Executes operations: cached and shared by all viewers if possible, with errors masked and logged. */
export class Engine {
  readonly operations: Operations;

  constructor(private readonly options: EngineOptions) {
    this.operations = new Operations(options.schema, options.config);
  }

  /** Whether this viewer gets the same answer as every other, until an execution proves the operation personal. */
  isShared({ type, isPersonal }: Operation, viewer: Viewer | undefined): boolean {
    const { contexts } = this.options;
    return type === 'query' && !isPersonal && (viewer === undefined || contexts.sharesWithViewers);
  }

  /** From the cache if the answer is shared. @throws HttpError for the whole request: the database is down, say */
  async answer<Value extends Answer>(
    execution: Execution<Value>,
    caller: OperationCaller,
  ): Promise<Reading<Value>> {
    const { operation, key } = execution;
    if (operation.type === 'mutation') this.options.guardWrite(caller.viewer);
    if (!this.isShared(operation, caller.viewer)) return this.#answerPersonal(execution, caller);
    const reading = await this.options.cache.get<Answer>(
      key,
      (state) => this.#readShared(execution, caller.log, state),
      caller,
      caller.allowsStale,
    );
    if (reading === personal) return this.#answerPersonal(execution, caller);
    return reading as Reading<Value>;
  }

  /** The errors of an invalid document, as late as those of a valid one that is refused: both cost as much. */
  refuse({ errors }: Invalid, caller: OperationCaller): Promise<ExecutionResult> {
    const refuse = async () => refuseTask(errors);
    return this.options.startTask(refuse, caller.sender).wait(caller);
  }

  #answerPersonal<Value extends Answer>(
    execution: Execution<Value>,
    caller: OperationCaller,
  ): Promise<Reading<Value>> {
    const { startTask } = this.options;
    return startTask(() => this.#readPersonal(execution, caller), caller.sender).wait(caller);
  }

  async #readPersonal<Value extends Answer>(
    { operation, variables, toAnswer }: Execution<Value>,
    caller: OperationCaller,
  ): Promise<Reading<Value>> {
    const { cache, contexts, readAt } = this.options;
    const isWrite = operation.type === 'mutation';
    const read = isWrite ? undefined : readAt?.(await cache.currentState());
    const result = await this.#run(operation, variables, contexts.createPersonal(caller, read));
    return toReading(toAnswer(publishResult(result, operation, caller.log), false), undefined);
  }

  async #readShared(
    { operation, variables, toAnswer }: Execution<Answer>,
    log: FastifyBaseLogger,
    state: DatabaseState | undefined,
  ): Promise<Reading<Answer>> {
    const { contexts, readAt } = this.options;
    const context = contexts.createShared(readAt?.(state));
    const result = await this.#run(operation, variables, context);
    if (context.isPersonal) {
      operation.isPersonal = true;
      return personal;
    }
    const answer = toAnswer(publishResult(result, operation, log), true);
    return toReading(answer, result.errors ? undefined : context.tracker.dependencies());
  }

  async #run(
    operation: Operation,
    variableValues: Record<string, unknown>,
    contextValue: Context,
  ): Promise<ExecutionResult> {
    const { schema, config } = this.options;
    const { document, name: operationName, text } = operation;
    if (text !== undefined) {
      const errors = refuseVariables(schema, config, operation, variableValues);
      if (errors.length > 0) return refuseTask(errors);
    }
    const compiled = this.#compile(operation);
    if (compiled) {
      const result = await compiled.run(contextValue, variableValues);
      // Errors are reported by graphql-js, whose messages clients know.
      if (!result.errors || httpErrorIn(result.errors)) return result;
    }
    return execute({ schema, document, operationName, contextValue, variableValues });
  }

  /** The compiled query; null: it is interpreted. */
  #compile(operation: Operation): CompiledQuery | null {
    const { compiled, document, node } = operation;
    if (compiled !== undefined) return compiled;
    operation.executions += 1;
    if (operation.type !== 'query' || operation.executions <= interpretedTimes) return null;
    operation.compiled = compileQuery(this.options.schema, document, node);
    this.operations.updateSize(operation);
    return operation.compiled;
  }
}

/** Marks the task as refused, so that backpressure delays its end. */
function refuseTask(errors: readonly GraphQLError[]): ExecutionResult {
  const task = currentTask();
  if (task) task.isRefused = true;
  return { errors };
}

function toReading<Value extends Answer>(
  answer: Value,
  dependencies: Dependencies | undefined,
): Reading<Value> {
  return { answer, dependencies, isExpensive: currentTask()?.isExpensive ?? false };
}

/** Masks errors. @throws HttpError of the whole request, unless a mutation has written something */
function publishResult(
  result: ExecutionResult,
  { type }: Operation,
  log: FastifyBaseLogger,
): ExecutionResult {
  const { data, errors } = result;
  if (!errors) return result;
  const httpError = httpErrorIn(errors);
  if (httpError && !(type === 'mutation' && hasWritten(data))) throw httpError;
  if (httpError?.cause) log.error({ err: httpError.cause }, httpError.message);
  return { ...result, errors: errors.map((error) => publishError(error, log)) };
}

function publishError(error: GraphQLError, log: FastifyBaseLogger): GraphQLError {
  const httpError = httpErrorFor(error);
  if (httpError) {
    const { code, message } = httpError;
    const { nodes = null, path = null } = error;
    return new GraphQLError(message, { nodes, path, extensions: { code } });
  }
  const { extensions, message, originalError = error } = error;
  const isOfGraphql = originalError instanceof GraphQLError && extensions['code'] === undefined;
  if (isOfGraphql && message.startsWith('Argument "')) return invalidArgument(error);
  // Explicit: NODE_ENV=development would publish stack traces.
  const isDev = false;
  const masked = maskError(error, 'Internal server error.', isDev) as GraphQLError;
  if (masked !== error) log.error({ err: error }, 'unexpected error');
  return masked;
}

function hasWritten(data: ExecutionResult['data']): boolean {
  return Object.values(data ?? {}).some((value) => value !== null);
}

function httpErrorIn(errors: readonly unknown[]): HttpError | undefined {
  return errors.map(httpErrorFor).find((error) => error !== undefined);
}
