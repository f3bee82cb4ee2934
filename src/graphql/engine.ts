// The one way of every operation: of /graphql, of REST, and of live answers. From memory, or executed by Yoga.
import { type DocumentNode, type ExecutionResult, GraphQLError, validate } from 'graphql';
import { type GraphQLParams, isAsyncIterable } from 'graphql-yoga';
import type { OperationCaller } from '../admission/admission.ts';
import type { Viewer } from '../admission/viewer.ts';
import { httpErrorFor } from '../database/errors.ts';
import { currentTask } from '../database/task.ts';
import { HttpError } from '../errors.ts';
import { hasLeft } from './errors.ts';
import type { Operation } from './operations.ts';
import { isShared } from './plugins/answer-cache.ts';
import { parseWithin } from './plugins/document-limits.ts';
import { failureOf, maskError } from './plugins/masked-errors.ts';
import { type Answer, type Execution, type Reading, Run } from './run.ts';
import { createPipeline, type PipelineOptions } from './yoga.ts';

/** Observes the work for one operation, which sets what it finds out in `run`. */
export type ObserveOperation = <Result>(run: Run, work: () => Promise<Result>) => Promise<Result>;

export interface EngineOptions extends PipelineOptions {
  readonly observe?: ObserveOperation | undefined;
  /** Called with the codes of the errors that a client gets of an operation. */
  readonly onErrors?: ((codes: Iterable<string>, type: string) => void) | undefined;
}

export class Engine {
  readonly #pipeline;

  constructor(private readonly options: EngineOptions) {
    this.#pipeline = createPipeline(options);
  }

  /** The operation of a valid document, by its text and name. */
  find(text: string, name: string | undefined): Operation | undefined {
    const { operations } = this.#pipeline;
    const known = operations.get(text);
    const document = known ?? parseWithin(text);
    if (!known) operations.set(text, document);
    return operations.of(document, name);
  }

  /** The operation of a document of this service itself. @throws when it does not fit the schema */
  store(document: DocumentNode): Operation {
    const { schema } = this.options;
    const [invalid] = validate(schema, document);
    if (invalid) throw invalid;
    const operation = this.#pipeline.operations.of(document);
    if (!operation) throw new Error('A stored document has one operation.');
    return operation;
  }

  /** Whether this viewer gets the same answer as every other, until an execution proves the operation personal. */
  isShared(operation: Operation, viewer: Viewer | undefined): boolean {
    return isShared(operation, viewer, this.options.contexts);
  }

  /**
   * Executes a document of this service itself, or the query of a live answer; from the cache if the answer is shared.
   * @throws HttpError for the whole request: the database is down, say
   */
  answer<Value extends Answer>(
    execution: Execution<Value>,
    caller: OperationCaller,
  ): Promise<Reading<Value>> {
    const { operation, variables } = execution;
    const run = new Run(execution, caller);
    run.operation = operation;
    return this.#answer<Value>(run, () => this.#execute(run, operation, variables));
  }

  /**
   * Answers what a client has sent: from the cache, or by Yoga.
   * @param run admitted before; its `answers` are those of a live query
   * @param readParams called for what is not in the cache
   * @throws HttpError for the whole request
   */
  serve<Value extends Answer>(
    run: Run,
    method: 'GET' | 'POST',
    readParams: () => GraphQLParams,
  ): Promise<Reading<Value>> {
    return this.#answer<Value>(run, () => this.#send(run, method, readParams));
  }

  #answer<Value extends Answer>(
    run: Run,
    execute: () => Promise<ExecutionResult | undefined>,
  ): Promise<Reading<Value>> {
    const { cache, contexts, observe, onErrors } = this.options;
    const { encoding, caller } = run;
    const report = (codes: readonly unknown[] = []) => {
      const { isLive = false, type = 'none', text } = run.operation ?? { text: '' };
      // A REST path shows its errors by its status.
      if (text !== undefined)
        onErrors?.(new Set(codes.map(String)), isLive ? 'subscription' : type);
    };
    const read = async () => {
      try {
        if (!caller.viewer || contexts.sharesWithViewers) {
          const found = cache.find(encoding.key, caller);
          run.found = found instanceof Promise ? await found : found;
          if (run.found.reading) return run.found.reading;
        }
        const result = await execute();
        if (result?.errors && !run.executed) await this.#delayRefusal(caller);
        if (result) run.result = result;
        const failure = result && failureOf(result);
        if (failure) throw failure;
        if (run.isChanged) cache.delete(encoding.key);
        const { reading } = run;
        report(run.errors?.map(({ extensions }) => extensions['code']));
        return reading;
      } catch (error) {
        report(hasLeft(caller.signal) ? [] : [httpErrorFor(error)?.code ?? []].flat());
        throw error;
      }
    };
    return (observe ? observe(run, read) : read()) as Promise<Reading<Value>>;
  }

  async #execute(
    run: Run,
    { document, name: operationName }: Operation,
    variableValues: Record<string, unknown>,
  ): Promise<ExecutionResult> {
    const { schema, contextFactory, execute } = this.#pipeline.yoga.getEnveloped({ run });
    const contextValue = await contextFactory();
    return execute({ schema, document, operationName, contextValue, variableValues });
  }

  /** Undefined: the answers of a live query are in `run`. */
  async #send(
    run: Run,
    method: string,
    readParams: () => GraphQLParams,
  ): Promise<ExecutionResult | undefined> {
    const { yoga } = this.#pipeline;
    const request = { method, headers: new Headers() } as Request;
    const { documents } = this.options;
    let result: unknown;
    try {
      result = await yoga.getResultForParams({ params: readParams(), request }, { run });
    } catch (error) {
      if (!(error instanceof GraphQLError || error instanceof HttpError)) throw error;
      // Of the parameters, or of a plugin: traces and plugins' statuses are those of any result.
      result = { errors: [maskError(error, run.caller.log)] };
    }
    // It is valid: an operation of it was to be executed.
    if (run.operation && run.reference) documents.register(run.reference);
    return isAsyncIterable(result) ? undefined : (result as ExecutionResult);
  }

  /** Waits for a task that is marked as refused: so backpressure delays its end. */
  #delayRefusal(caller: OperationCaller): Promise<void> {
    const refuse = async () => {
      const task = currentTask();
      if (task) task.isRefused = true;
    };
    return this.options.startTask(refuse, caller.sender).wait(caller);
  }
}
