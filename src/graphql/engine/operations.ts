// Cache of operations by the text of their document: each is parsed and validated within the limits once.
import {
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
  validate,
  visit,
} from 'graphql';
import { LRUCache } from 'lru-cache';
import { mutationNeedsPost, operationNotFound, subscriptionsNotSupported } from '../errors.ts';
import { type CompiledQuery, countSelections } from './compiled-query.ts';
import { findExcessOf, type LimitConfig, parseWithin, validateWithin } from './limits.ts';

export interface Operation {
  readonly type: 'query' | 'mutation';
  readonly isLive: boolean;
  readonly name: string | undefined;
  readonly document: DocumentNode;
  readonly node: OperationDefinitionNode;
  /** Undefined: a document of this service itself, to which no limit applies. */
  readonly text: string | undefined;
  executions: number;
  compiled?: CompiledQuery | null;
  /** Whether an execution used something personal, so that its answers are never shared. */
  isPersonal: boolean;
}

/** Errors of a document, of which nothing is executed. */
export interface Invalid {
  readonly errors: readonly GraphQLError[];
}

interface ParsedDocument {
  /** One for all operations of the text, as each would take the memory of the whole. */
  readonly document: DocumentNode;
  readonly operations: ReadonlyMap<string | undefined, Operation>;
}

/** Bytes of memory per character of a parsed text: up to 300, for `{a b c}`. */
const bytesPerCharacter = 300;
const bytesPerOperation = 1_000;

export class Operations {
  readonly #documents = new LRUCache<string, ParsedDocument>({ maxSize: 67_108_864 });

  constructor(
    private readonly schema: GraphQLSchema,
    private readonly config: LimitConfig,
  ) {}

  /** By its text and name; `isRead`: GET, with which a mutation is an error. */
  find(text: string, operationName: string | undefined, isRead: boolean): Operation | Invalid {
    const parsed = this.#documents.get(text);
    const operation = parsed?.operations.get(operationName);
    if (operation && (operation.type === 'query' || !isRead)) return operation;
    try {
      const document = parsed?.document ?? parseWithin(text);
      const node = getOperationAST(document, operationName);
      if (!node) return { errors: [operationNotFound()] };
      if (node.operation === 'mutation' && isRead) return { errors: [mutationNeedsPost()] };
      if (node.operation === 'subscription' && !this.schema.getSubscriptionType()) {
        return { errors: [subscriptionsNotSupported()] };
      }
      const errors = parsed ? [] : validateWithin(this.schema, this.config, document);
      if (errors.length > 0) return { errors };
      const found = toOperation(document, node, text);
      const operations = new Map(parsed?.operations).set(operationName, found);
      this.#store(text, { document, operations });
      return found;
    } catch (error) {
      if (error instanceof GraphQLError) return { errors: [error] };
      throw error;
    }
  }

  /** The error of an operation that exceeds the limits with any variables. */
  findUnanswerable(operation: Operation): GraphQLError | undefined {
    return findExcessOf(this.schema, this.config, operation);
  }

  /** The operation of a document of this service itself. @throws when it does not fit the schema */
  store(document: DocumentNode): Operation {
    const [invalid] = validate(this.schema, document);
    if (invalid) throw invalid;
    const node = getOperationAST(document);
    if (!node) throw new Error('A stored document has one operation.');
    return toOperation(document, node, undefined);
  }

  /** Whether an operation is compiled once it repeats; if not, it is interpreted. */
  isCompilable({ document, node }: Pick<Operation, 'document' | 'node'>): boolean {
    return countSelections(this.schema, document, node) !== undefined;
  }

  /** Updates the size of a document in the cache, after an operation of it was compiled. */
  updateSize({ text }: Operation): void {
    const parsed = text === undefined ? undefined : this.#documents.get(text);
    // A copy: the LRU cache keeps the size of an identical value.
    if (text !== undefined && parsed) this.#store(text, { ...parsed });
  }

  #store(text: string, parsed: ParsedDocument): void {
    let size = bytesPerCharacter * text.length;
    for (const { compiled } of parsed.operations.values()) {
      size += bytesPerOperation + (compiled?.bytes ?? 0);
    }
    this.#documents.set(text, parsed, { size });
  }
}

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

/** A subscription as the query that is executed for each of its answers: it sends state, not events. */
function asQuery({ definitions }: DocumentNode, operation: OperationDefinitionNode) {
  const node = { ...operation, operation: OperationTypeNode.QUERY };
  const fragments = definitions.filter(({ kind }) => kind === Kind.FRAGMENT_DEFINITION);
  // Fragments on the type `Subscription` would not match a query.
  const document = visit<DocumentNode>(
    { kind: Kind.DOCUMENT, definitions: [node, ...fragments] },
    {
      NamedType: (type) =>
        type.name.value === 'Subscription'
          ? { ...type, name: { ...type.name, value: 'Query' } }
          : undefined,
    },
  );
  return { document, node: getOperationAST(document) ?? node };
}
