// The one way of every operation: of /graphql, of REST, and of live answers. From memory, or executed by Yoga.
import { type DocumentNode, type ExecutionResult, validate } from 'graphql';
import type { OperationCaller } from '../../admission/admission.ts';
import type { Viewer } from '../../admission/viewer.ts';
import { currentTask } from '../../database/task.ts';
import { type Execution, Run } from '../operation.ts';
import { isShared } from '../plugins/answer-cache.ts';
import { createPipeline, findOperation, type Invalid, type PipelineOptions } from '../yoga.ts';
import type { Answer, Reading } from './answer-cache.ts';
import { countSelections } from './compiled-query.ts';
import type { Operation } from './operations.ts';

/** Observes the work for one operation, which sets what it finds out in `run`. */
export type ObserveOperation = <Result>(run: Run, work: () => Promise<Result>) => Promise<Result>;

export interface EngineOptions extends PipelineOptions {
  readonly observe?: ObserveOperation | undefined;
}

/** What is refused has no answer to be kept. */
const refused = { key: '', toAnswer: () => ({ size: 0, shareable: false }) };

export class Engine {
  readonly #pipeline;
  readonly #observe: ObserveOperation;

  constructor(private readonly options: EngineOptions) {
    this.#pipeline = createPipeline(options);
    this.#observe = options.observe ?? ((_run, work) => work());
  }

  /** Whether a document has been parsed. */
  isKnown(text: string): boolean {
    return this.#pipeline.operations.get(text) !== undefined;
  }

  /** The operation of a document, by its text and name; GET: a mutation is an error. */
  find(
    text: string,
    operationName: string | undefined,
    method?: 'GET' | 'POST',
  ): Operation | Invalid {
    return findOperation(this.#pipeline, text, operationName, method);
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

  /** Whether an operation is compiled once it repeats; if not, it is interpreted. */
  isCompilable({ document, node }: Operation): boolean {
    return countSelections(this.options.schema, document, node) !== undefined;
  }

  /** Whether this viewer gets the same answer as every other, until an execution proves the operation personal. */
  isShared(operation: Operation, viewer: Viewer | undefined): boolean {
    return isShared(operation, viewer, this.options.contexts);
  }

  /** From the cache if the answer is shared. @throws HttpError for the whole request: the database is down, say */
  answer<Value extends Answer>(
    { operation, variables, ...encoding }: Execution<Value>,
    caller: OperationCaller,
  ): Promise<Reading<Value>> {
    const run = new Run(encoding, caller);
    run.operation = operation;
    return this.#observe(run, async () => {
      const reading =
        (await this.#findCached(run)) ?? (await this.#execute(run, operation, variables));
      return reading as Reading<Value>;
    });
  }

  async #findCached(run: Run): Promise<Reading<Answer> | undefined> {
    const { cache, contexts } = this.options;
    const { viewer, allowsStale } = run.caller;
    if (viewer && !contexts.sharesWithViewers) return undefined;
    run.found = await cache.find(run.encoding.key, allowsStale);
    return run.found.reading;
  }

  async #execute(
    run: Run,
    { document, name: operationName }: Operation,
    variableValues: Record<string, unknown>,
  ): Promise<Reading<Answer>> {
    const { schema, contextFactory, execute } = this.#pipeline.yoga.getEnveloped({ run });
    const contextValue = await contextFactory();
    const result: ExecutionResult = await execute({
      ...{ schema, document, operationName, contextValue, variableValues },
    });
    if (!run.executed && result.errors) await this.#delay(run.caller);
    const reading = run.finish(result);
    if (reading.isChanged) this.options.cache.delete(run.encoding.key);
    return reading;
  }

  /** The errors of an invalid document, as late as those of a valid one that is refused: both cost as much. */
  async refuse({ errors }: Invalid, caller: OperationCaller): Promise<ExecutionResult> {
    const run = new Run(refused, caller);
    run.errors = errors;
    await this.#observe(run, () => this.#delay(caller));
    return { errors };
  }

  /** Until a task has ended that is marked as refused, so that backpressure delays its end. */
  #delay(caller: OperationCaller): Promise<void> {
    const refuse = async () => {
      const task = currentTask();
      if (task) task.isRefused = true;
    };
    return this.options.startTask(refuse, caller.sender).wait(caller);
  }
}
