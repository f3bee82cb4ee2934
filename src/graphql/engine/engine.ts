// The one way to run an operation, of GraphQL and REST: for one viewer, or for all at once; errors masked and logged.
import type { FastifyBaseLogger } from 'fastify';
import { type ExecutionResult, execute, GraphQLError, type GraphQLSchema } from 'graphql';
import { maskError } from 'graphql-yoga';
import type { GuardWrite, OperationCaller } from '../../admission/admission.ts';
import type { Viewer } from '../../admission/viewer.ts';
import type { DatabaseState } from '../../database/changes/database-state.ts';
import { httpErrorFor } from '../../database/errors.ts';
import type { ReadAt } from '../../database/standby/replicas.ts';
import { currentTask, type StartTask } from '../../database/task.ts';
import type { HttpError } from '../../errors.ts';
import type { Context, ContextFactory } from '../context.ts';
import type { Answer, AnswerCache } from './answer-cache.ts';
import { type CompiledQuery, compileQuery } from './compiled-query.ts';
import { type LimitConfig, refuseVariables } from './limits.ts';
import { type Operation, Operations } from './operations.ts';

export interface EngineOptions {
  readonly schema: GraphQLSchema;
  readonly config: LimitConfig;
  readonly cache: AnswerCache;
  readonly startTask: StartTask;
  readonly contexts: ContextFactory;
  readonly readAt?: ReadAt | undefined;
  /** Throws what every mutation is refused with, while nothing may be written here. */
  readonly guardWrite: GuardWrite;
}

export interface Question<Value extends Answer> {
  readonly operation: Operation;
  readonly variables: Record<string, unknown>;
  /** Names the operation, the variables, and the form of the answer. */
  readonly key: string;
  /** @param isForAll nothing in it is of one viewer alone: it may be shareable, if the result has no errors */
  readonly toAnswer: (result: ExecutionResult, isForAll: boolean) => Value;
}

export interface Engine extends Pick<Operations, 'find' | 'findUnanswerable' | 'store'> {
  /** @throws HttpError when the request as a whole is turned away: the database is away, say */
  answer<Value extends Answer>(question: Question<Value>, caller: OperationCaller): Promise<Value>;
  /** Whether this viewer gets the same answers as all others, as far as is known by now. */
  isForAll(operation: Operation, viewer: Viewer | undefined): boolean;
}

/** Times that a query is interpreted before it is compiled, which takes as long as hundreds. */
const interpretedTimes = 3;

const personal: Answer = { size: 0, shareable: false };

export function createEngine(options: EngineOptions): Engine {
  const { schema, config, cache, startTask, contexts, readAt, guardWrite } = options;
  const operations = new Operations(schema, config);

  const findCompiled = (operation: Operation): CompiledQuery | null => {
    const { compiled, document, node } = operation;
    if (compiled !== undefined) return compiled;
    operation.executions += 1;
    if (operation.type !== 'query' || operation.executions <= interpretedTimes) return null;
    operation.compiled = compileQuery(schema, document, node);
    operations.measure(operation);
    return operation.compiled;
  };

  const run = async (
    operation: Operation,
    variableValues: Record<string, unknown>,
    contextValue: Context,
  ): Promise<ExecutionResult> => {
    const { document, name: operationName, text } = operation;
    if (text !== undefined) {
      const errors = refuseVariables(schema, config, operation, variableValues);
      if (errors.length > 0) {
        const task = currentTask();
        if (task) task.isRefused = true;
        return { errors };
      }
    }
    const compiled = findCompiled(operation);
    if (compiled) {
      const result = await compiled.run(contextValue, variableValues);
      // Errors are told by graphql itself, in whose form clients know them.
      if (!result.errors || httpErrorIn(result.errors)) return result;
    }
    return execute({ schema, document, operationName, contextValue, variableValues });
  };

  const isForAll: Engine['isForAll'] = ({ type, isPersonal }, viewer) =>
    type === 'query' && !isPersonal && (viewer === undefined || contexts.sharesWithViewers);

  return {
    find: (...asked) => operations.find(...asked),
    findUnanswerable: (operation) => operations.findUnanswerable(operation),
    store: (document) => operations.store(document),
    isForAll,
    async answer<Value extends Answer>(question: Question<Value>, caller: OperationCaller) {
      const { operation, variables, key, toAnswer } = question;
      const isWrite = operation.type === 'mutation';
      if (isWrite) guardWrite();
      const answerOne = async () => {
        const read = isWrite ? undefined : readAt?.(await cache.currentState());
        const result = await run(operation, variables, contexts.forOne(caller, read));
        return noteExpense(toAnswer(settle(result, operation, caller.log), false));
      };
      const answerAlone = () => startTask(answerOne, caller.sender).wait(caller);
      if (!isForAll(operation, caller.viewer)) return answerAlone();

      const answerAll = async (shown: DatabaseState | undefined) => {
        const shared = contexts.forAll(readAt?.(shown));
        const result = await run(operation, variables, shared);
        if (shared.isPersonal) {
          operation.isPersonal = true;
          return personal;
        }
        const answer = toAnswer(settle(result, operation, caller.log), true);
        if (!result.errors) answer.dependencies = shared.tracker.dependencies();
        return noteExpense(answer);
      };
      const answer = await cache.get<Answer>(key, answerAll, caller, caller.allowsStale);
      return answer === personal ? answerAlone() : (answer as Value);
    },
  };
}

/** @throws HttpError unless a mutation has written something: then it is said beside that */
function settle(
  result: ExecutionResult,
  { type }: Operation,
  log: FastifyBaseLogger,
): ExecutionResult {
  const { data, errors } = result;
  if (!errors) return result;
  const httpError = httpErrorIn(errors);
  if (httpError && !(type === 'mutation' && hasWritten(data))) throw httpError;
  if (httpError?.cause) log.error({ err: httpError.cause }, httpError.message);
  return { ...result, errors: errors.map((error) => publish(error, log)) };
}

function publish(error: GraphQLError, log: FastifyBaseLogger): GraphQLError {
  const httpError = httpErrorFor(error);
  if (httpError) {
    const { code, message } = httpError;
    const { nodes = null, path = null } = error;
    return new GraphQLError(message, { nodes, path, extensions: { code } });
  }
  // Or else NODE_ENV=development would show stack traces.
  const isDev = false;
  const masked = maskError(error, 'Internal server error.', isDev) as GraphQLError;
  if (masked !== error) log.error({ err: error }, 'unexpected error');
  return masked;
}

function noteExpense<Value extends Answer>(answer: Value): Value {
  answer.isExpensive = currentTask()?.isExpensive ?? false;
  return answer;
}

function hasWritten(data: ExecutionResult['data']): boolean {
  return Object.values(data ?? {}).some((value) => value !== null);
}

function httpErrorIn(errors: readonly unknown[]): HttpError | undefined {
  return errors.map(httpErrorFor).find((error) => error !== undefined);
}
