// The one way to run a document, for /graphql and for REST: find it, or parse and validate it within
// limits; execute it, for one viewer or for all at once; mask and log what goes wrong inside.
import type { FastifyBaseLogger } from 'fastify';
import {
  type DocumentNode,
  type ExecutionResult,
  execute,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  type OperationDefinitionNode,
  validate,
} from 'graphql';
import { createYoga, maskError, type Plugin } from 'graphql-yoga';
import { LRUCache } from 'lru-cache';
import type { Viewer } from '../admission/viewer.ts';
import type { GuardWrite } from '../admission/write-guard.ts';
import type { Answer, AnswerCache } from '../cache/answer-cache.ts';
import { httpErrorFor } from '../database/errors.ts';
import type { ReadAt } from '../database/replicas.ts';
import type { Shown } from '../database/snapshots.ts';
import { currentTask, type StartTask, type Waiter } from '../database/task.ts';
import type { HttpError } from '../errors.ts';
import { type CompiledQuery, compileQuery } from './compiled-query.ts';
import type { Context, ContextFactory, Personal } from './context.ts';
import { subscriptionsNotSupported } from './errors.ts';
import { createVariableCheck, findUnanswerable, type LimitConfig, useLimits } from './limits.ts';
import { asQuery } from './subscription.ts';

export interface EngineOptions {
  readonly schema: GraphQLSchema;
  readonly config: LimitConfig;
  readonly cache: AnswerCache;
  readonly startTask: StartTask;
  readonly contexts: ContextFactory;
  /** How queries read; undefined: as mutations do. */
  readonly readAt?: ReadAt | undefined;
  /** Throws what every mutation is refused with, while nothing may be written here. */
  readonly guardWrite: GuardWrite;
}

/** An operation of a valid document, ready to be executed any number of times. */
export interface Operation {
  readonly type: 'query' | 'mutation';
  /** Whether it is a subscription, which is answered as the query of the same fields. */
  readonly isLive: boolean;
  /** Undefined: it has no name. */
  readonly name: string | undefined;
  readonly document: DocumentNode;
  readonly node: OperationDefinitionNode;
  /** Undefined: it is one of this service's own, which no limit holds for. */
  readonly text: string | undefined;
  executions: number;
  /** Null: it is interpreted each time. */
  compiled?: CompiledQuery | null;
  /** Whether it has asked for something of the viewer's, so that its answers are never shared. */
  isPersonal: boolean;
}

export interface Asker extends Personal {
  /** Leaves when the client does. */
  readonly waiter: Waiter;
  readonly log: FastifyBaseLogger;
  /** Whether the answer may be as much too old as READ_MAX_STALENESS allows. */
  readonly mayBeOld?: boolean;
}

export interface Question<Value extends Answer> {
  readonly operation: Operation;
  readonly variables: Record<string, unknown>;
  /** Names the operation, the variables, and the form of the answer. */
  readonly key: string;
  /**
   * Makes the answer of a result. It may be shareable only if the result has no errors, and
   * @param isForAll nothing in it is of one viewer alone
   */
  readonly toAnswer: (result: ExecutionResult, isForAll: boolean) => Value;
}

export interface Engine {
  /**
   * The operation that is meant, by the text of its document.
   * @param isRead whether the request may only read
   * @returns what is wrong with the document, if anything is: nothing of it is executed then
   */
  find(
    query: string,
    operationName: string | undefined,
    isRead: boolean,
  ): Operation | { readonly errors: readonly GraphQLError[] };
  /** What forbids an operation of clients, whatever its variables are; undefined: nothing does. */
  findUnanswerable(operation: Operation): GraphQLError | undefined;
  /**
   * Takes in a document of this service's own, which no limit holds for.
   * @throws when it does not fit the schema
   */
  store(document: DocumentNode): Operation;
  /**
   * Answers from memory, together with others who ask the same, or by executing the operation.
   * @throws HttpError when the request as a whole is turned away: the database is away, say
   */
  answer<Value extends Answer>(question: Question<Value>, asker: Asker): Promise<Value>;
  /** Whether this viewer gets the same answers as all others, as far as is known by now. */
  isForAll(operation: Operation, viewer: Viewer | undefined): boolean;
}

/** Most bytes that known documents may take together. */
const maxBytes = 67_108_864;
/** Bytes that a parsed document takes, for each character of its text: of `{a b c}`, up to 300. */
const bytesPerCharacter = 300;

/** Bytes that are kept for each of its operations. */
const bytesPerOperation = 1_000;

/** Times that a query is interpreted before it is compiled, which takes as long as hundreds. */
const interpretedTimes = 3;

/** A document by its text, with those of its operations that were asked for. */
interface KnownDocument {
  /** The same for all of them: each takes what the whole text takes. */
  readonly document: DocumentNode;
  readonly operations: Map<string | undefined, Operation>;
}

/** In place of an answer that must not be shared. */
const personal: Answer = { size: 0, shareable: false };

/** Finds documents, which needs no database. */
export function createFinder({ schema, config }: Pick<EngineOptions, 'schema' | 'config'>) {
  const documents = new LRUCache<string, KnownDocument>({ maxSize: maxBytes });
  /** What was masked, by the error that took its place. */
  const causes = new WeakMap<Error, unknown>();

  const mask = (error: unknown, message: string): Error => {
    // Answered with its own status and headers.
    if (httpErrorFor(error)) return error as Error;
    // Or else NODE_ENV=development would show stack traces.
    const isDev = false;
    const masked = maskError(error, message, isDev);
    if (masked !== error) causes.set(masked, error);
    return masked;
  };

  const yoga = createYoga<YogaRequest>({
    schema,
    graphiql: false,
    landingPage: false,
    cors: false,
    logging: false,
    // Documents are kept here, by what they take once they are compiled.
    parserAndValidationCache: false,
    maskedErrors: { errorMessage: 'Internal server error.', maskError: mask },
    plugins: [useLimits(config), interpretByGraphql],
  });
  const { execute: interpret } = yoga.getEnveloped(readRequest);

  const prepare: Engine['find'] = (text, operationName, isRead) => {
    const { parse, validate } = yoga.getEnveloped({
      request: isRead ? readRequest.request : writeRequest.request,
      params: { operationName },
    });
    try {
      // Also of a text that is known, since yoga looks here for what a GET may not do.
      const parsed: DocumentNode = parse(text);
      const known = documents.get(text);
      const document = known?.document ?? parsed;
      const node = getOperationAST(document, operationName);
      if (node?.operation === 'subscription' && !schema.getSubscriptionType()) {
        return { errors: [subscriptionsNotSupported()] };
      }
      const errors: readonly GraphQLError[] = known ? [] : validate(schema, document);
      if (errors.length > 0 || !node) return { errors };
      const operation = toOperation(document, node, text);
      const operations = new Map(known?.operations).set(operationName, operation);
      documents.set(text, { document, operations }, { size: sizeOf(text, operations.values()) });
      return operation;
    } catch (error) {
      if (error instanceof GraphQLError) return { errors: [error] };
      throw error;
    }
  };

  const find: Engine['find'] = (text, operationName, isRead) => {
    const known = documents.get(text)?.operations.get(operationName);
    if (known && (known.type === 'query' || !isRead)) return known;
    return prepare(text, operationName, isRead);
  };
  const judge: Engine['findUnanswerable'] = (operation) =>
    findUnanswerable(schema, config, operation);
  return { find, findUnanswerable: judge, documents, interpret, causes };
}

export function createEngine(options: EngineOptions): Engine {
  const { schema, config, cache, startTask, contexts, readAt, guardWrite } = options;
  const { documents, interpret, causes, ...finder } = createFinder(options);
  const checkVariables = createVariableCheck(schema, config);

  const findCompiled = (operation: Operation): CompiledQuery | null => {
    const { compiled, document, node, text } = operation;
    if (compiled !== undefined) return compiled;
    operation.executions += 1;
    if (operation.type !== 'query' || operation.executions <= interpretedTimes) return null;
    operation.compiled = compileQuery(schema, document, node);
    const known = text === undefined ? undefined : documents.get(text);
    if (text !== undefined && known) {
      // As another value: or else it keeps the size that it had.
      documents.set(text, { ...known }, { size: sizeOf(text, known.operations.values()) });
    }
    return operation.compiled;
  };

  const run = async (
    operation: Operation,
    variableValues: Record<string, unknown>,
    contextValue: Context,
  ): Promise<ExecutionResult> => {
    const { document, name: operationName, node, text } = operation;
    if (text !== undefined) {
      const errors = checkVariables(document, node, variableValues);
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
    return interpret({ schema, document, operationName, contextValue, variableValues });
  };

  const isForAll: Engine['isForAll'] = ({ type, isPersonal }, viewer) =>
    type === 'query' && !isPersonal && contexts.shared(viewer) !== undefined;

  return {
    isForAll,
    ...finder,
    store(document) {
      const [invalid] = validate(schema, document);
      if (invalid) throw invalid;
      const node = getOperationAST(document);
      if (!node) throw new Error('A stored document has one operation.');
      return toOperation(document, node, undefined);
    },
    async answer<Value extends Answer>(
      { operation, variables, key, toAnswer }: Question<Value>,
      { viewer, idempotencyKey, waiter, log, mayBeOld }: Asker,
    ) {
      const isWrite = operation.type === 'mutation';
      if (isWrite) guardWrite();
      const answerOne = async () => {
        const read = isWrite ? undefined : readAt?.(await cache.tell());
        const context = contexts.forOne({ viewer, idempotencyKey }, read);
        const result = await run(operation, variables, context);
        return noteExpense(toAnswer(settle(result, operation, causes, log), false));
      };
      const createShared = isForAll(operation, viewer) ? contexts.shared(viewer) : undefined;
      const answerAlone = () => startTask(answerOne, waiter.sender).wait(waiter);
      if (!createShared) return answerAlone();

      const answerAll = async (shown: Shown | undefined) => {
        const shared = createShared(readAt?.(shown));
        const result = await run(operation, variables, shared.context);
        if (shared.isPersonal()) {
          operation.isPersonal = true;
          return personal;
        }
        const answer = toAnswer(settle(result, operation, causes, log), true);
        if (!result.errors) answer.madeOf = shared.madeOf();
        return noteExpense(answer);
      };
      const answer = await cache.get<Answer>(key, answerAll, waiter, mayBeOld);
      return answer === personal ? answerAlone() : (answer as Value);
    },
  };
}

/** Yoga has an executor of its own, whose errors differ in places. */
const interpretByGraphql: Plugin = {
  onExecute({ setExecuteFn }) {
    setExecuteFn(execute);
  },
};

/** What yoga's plugins look at of a request. */
interface YogaRequest {
  readonly request: Request;
  readonly params: { readonly operationName?: string | undefined };
}

const readRequest = { request: { method: 'GET' } as Request, params: {} };
const writeRequest = { request: { method: 'POST' } as Request, params: {} };

function toOperation(
  document: DocumentNode,
  node: OperationDefinitionNode,
  text: string | undefined,
): Operation {
  const isLive = node.operation === 'subscription';
  const type = node.operation === 'mutation' ? 'mutation' : 'query';
  const executed = isLive ? asQuery(document, node) : { document, node };
  const name = node.name?.value;
  return { type, isLive, name, ...executed, text, executions: 0, isPersonal: false };
}

function sizeOf(text: string, operations: Iterable<Operation>): number {
  let bytes = bytesPerCharacter * text.length;
  for (const { compiled } of operations) bytes += bytesPerOperation + (compiled?.bytes ?? 0);
  return bytes;
}

/**
 * What the client is told of a result.
 * @throws HttpError unless a mutation has written something: then it is said beside that
 */
function settle(
  result: ExecutionResult,
  { type }: Operation,
  causes: WeakMap<Error, unknown>,
  log: FastifyBaseLogger,
): ExecutionResult {
  const { data, errors } = result;
  if (!errors) return result;
  const httpError = httpErrorIn(errors);
  if (httpError && !(type === 'mutation' && hasWritten(data))) throw httpError;
  if (httpError?.cause) log.error({ err: httpError.cause }, httpError.message);
  for (const error of errors) {
    const cause = causes.get(error);
    if (cause !== undefined) log.error({ err: cause }, 'unexpected error');
  }
  return httpError ? { ...result, errors: errors.map(publishHttpError) } : result;
}

/** Notes whether an answer took the lane of expensive statements: live answers wait before the next reading. */
function noteExpense<Value extends Answer>(answer: Value): Value {
  answer.isExpensive = currentTask()?.isExpensive ?? false;
  return answer;
}

function hasWritten(data: ExecutionResult['data']): boolean {
  return Object.values(data ?? {}).some((value) => value !== null);
}

function publishHttpError(error: GraphQLError): GraphQLError {
  const httpError = httpErrorFor(error);
  if (!httpError) return error;
  const { code, message } = httpError;
  const { nodes = null, path = null } = error;
  return new GraphQLError(message, { nodes, path, extensions: { code } });
}

/** The first of these errors that turns a request away; undefined: none does. */
function httpErrorIn(errors: readonly unknown[]): HttpError | undefined {
  return errors.map(httpErrorFor).find((error) => error !== undefined);
}
