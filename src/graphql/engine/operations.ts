// Operations by the text of their document: parsed and validated within limits, once for all who ask.
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
import type { CompiledQuery } from './compiled-query.ts';
import { findExcessOf, type LimitConfig, parseWithin, validateWithin } from './limits.ts';

export interface Operation {
  readonly type: 'query' | 'mutation';
  readonly isLive: boolean;
  readonly name: string | undefined;
  readonly document: DocumentNode;
  readonly node: OperationDefinitionNode;
  /** Undefined: it is one of this service's own, which no limit holds for. */
  readonly text: string | undefined;
  executions: number;
  compiled?: CompiledQuery | null;
  /** Whether it has asked for something of the viewer's, so that its answers are never shared. */
  isPersonal: boolean;
}

/** What is wrong with a document: nothing of it is executed then. */
export interface Invalid {
  readonly errors: readonly GraphQLError[];
}

interface KnownDocument {
  /** The same for all of them: each takes what the whole text takes. */
  readonly document: DocumentNode;
  readonly operations: ReadonlyMap<string | undefined, Operation>;
}

/** Bytes that a parsed document takes, for each character of its text: of `{a b c}`, up to 300. */
const bytesPerCharacter = 300;
const bytesPerOperation = 1_000;

export class Operations {
  readonly #documents = new LRUCache<string, KnownDocument>({ maxSize: 67_108_864 });

  constructor(
    private readonly schema: GraphQLSchema,
    private readonly config: LimitConfig,
  ) {}

  find(text: string, operationName: string | undefined, isRead: boolean): Operation | Invalid {
    const known = this.#documents.get(text);
    const operation = known?.operations.get(operationName);
    if (operation && (operation.type === 'query' || !isRead)) return operation;
    try {
      const document = known?.document ?? parseWithin(text);
      const node = getOperationAST(document, operationName);
      if (!node) return { errors: [operationNotFound()] };
      if (node.operation === 'mutation' && isRead) return { errors: [mutationNeedsPost()] };
      if (node.operation === 'subscription' && !this.schema.getSubscriptionType()) {
        return { errors: [subscriptionsNotSupported()] };
      }
      const errors = known ? [] : validateWithin(this.schema, this.config, document);
      if (errors.length > 0) return { errors };
      const found = toOperation(document, node, text);
      const operations = new Map(known?.operations).set(operationName, found);
      this.#keep(text, { document, operations });
      return found;
    } catch (error) {
      if (error instanceof GraphQLError) return { errors: [error] };
      throw error;
    }
  }

  findUnanswerable(operation: Operation): GraphQLError | undefined {
    return findExcessOf(this.schema, this.config, operation);
  }

  /** A document of this service's own, which no limit holds for. @throws when it does not fit the schema */
  store(document: DocumentNode): Operation {
    const [invalid] = validate(this.schema, document);
    if (invalid) throw invalid;
    const node = getOperationAST(document);
    if (!node) throw new Error('A stored document has one operation.');
    return toOperation(document, node, undefined);
  }

  measure({ text }: Operation): void {
    const known = text === undefined ? undefined : this.#documents.get(text);
    // As another value: or else it keeps the size that it had.
    if (text !== undefined && known) this.#keep(text, { ...known });
  }

  #keep(text: string, known: KnownDocument): void {
    let size = bytesPerCharacter * text.length;
    for (const { compiled } of known.operations.values()) {
      size += bytesPerOperation + (compiled?.bytes ?? 0);
    }
    this.#documents.set(text, known, { size });
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

/** A subscription as a query, with which it is answered each time: an answer is state, not an event. */
function asQuery({ definitions }: DocumentNode, operation: OperationDefinitionNode) {
  const node = { ...operation, operation: OperationTypeNode.QUERY };
  const kept = definitions.filter(({ kind }) => kind === Kind.FRAGMENT_DEFINITION);
  // Or else fragments on the type `Subscription` would match nothing.
  const document = visit<DocumentNode>(
    { kind: Kind.DOCUMENT, definitions: [node, ...kept] },
    {
      NamedType: (type) =>
        type.name.value === 'Subscription'
          ? { ...type, name: { ...type.name, value: 'Query' } }
          : undefined,
    },
  );
  return { document, node: getOperationAST(document) ?? node };
}
