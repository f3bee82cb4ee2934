// Parsed documents, and what is known of each of their operations.
import {
  type DocumentNode,
  type ExecutionResult,
  type FragmentDefinitionNode,
  getOperationAST,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';
import { LRUCache } from 'lru-cache';
import type { Context } from './context.ts';

/** A query that graphql-jit has compiled. */
export interface CompiledQuery {
  readonly run: (
    context: Context,
    variables: Record<string, unknown>,
  ) => ExecutionResult | Promise<ExecutionResult>;
  /** In memory. */
  readonly bytes: number;
}

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

/** Bytes of memory per character of a parsed text: up to 300, for `{a b c}`. */
const bytesPerCharacter = 300;
const bytesPerDefinition = 1_000;

/** The cache of parsed documents of Yoga, by their text; and their operations. */
export class Operations {
  readonly #documents = new LRUCache<string, DocumentNode>({ maxSize: 67_108_864 });
  readonly #texts = new WeakMap<DocumentNode, string>();
  readonly #operations = new WeakMap<OperationDefinitionNode, Operation>();

  get(text: string): DocumentNode | undefined {
    return this.#documents.get(text);
  }

  set(text: string, document: DocumentNode): void {
    this.#texts.set(document, text);
    const { length } = document.definitions;
    const size = bytesPerCharacter * text.length + bytesPerDefinition * length;
    this.#documents.set(text, document, { size });
  }

  /** Undefined: the document has no operation of this name, or several where no name is given. */
  of(document: DocumentNode, name?: string | null): Operation | undefined {
    const node = getOperationAST(document, name);
    const known = node && this.#operations.get(node);
    if (!node || known) return known ?? undefined;
    const operation = toOperation(document, node, this.#texts.get(document));
    this.#operations.set(node, operation);
    return operation;
  }

  /** Keeps the compiled query of an operation as long as its document. */
  keep(operation: Operation, compiled: CompiledQuery | null): void {
    operation.compiled = compiled;
    const { document, text = '' } = operation;
    const { value, size = 0 } = this.#documents.info(text) ?? {};
    if (!compiled || value !== document) return;
    // Deleted first: the LRU cache keeps the size of an identical value.
    this.#documents.delete(text);
    this.#documents.set(text, document, { size: size + compiled.bytes });
  }
}

/** A subscription is executed like a query: it sends state, not events, by the same fields. */
function toOperation(
  document: DocumentNode,
  node: OperationDefinitionNode,
  text: string | undefined,
): Operation {
  const isLive = node.operation === 'subscription';
  const type = node.operation === 'mutation' ? 'mutation' : 'query';
  const name = node.name?.value;
  return { type, isLive, name, document, node, text, executions: 0, isPersonal: false };
}

/** The fragments of a document by their names. */
export function fragmentsOf({ definitions }: DocumentNode) {
  const fragments: Record<string, FragmentDefinitionNode> = Object.create(null);
  for (const one of definitions) {
    if (one.kind === Kind.FRAGMENT_DEFINITION) fragments[one.name.value] = one;
  }
  return fragments;
}

/**
 * Measures selection sets of a document, with fragments expanded: each set once, as hostile ones expand to millions.
 * @param combine what the selections of a set measure: a field one more than the set below it
 */
export function measureSelections(
  document: DocumentNode,
  combine: (measured: readonly number[]) => number,
): (set: SelectionSetNode | undefined) => number {
  const fragments = fragmentsOf(document);
  const known = new Map<SelectionSetNode, number>();
  const measure = (set: SelectionSetNode | undefined): number => {
    if (!set) return 0;
    const measured = known.get(set);
    if (measured !== undefined) return measured;
    // Terminates on a cycle, which validation reports.
    known.set(set, 0);
    const selections = set.selections.map((one) =>
      one.kind === Kind.FRAGMENT_SPREAD
        ? measure(fragments[one.name.value]?.selectionSet)
        : measure(one.selectionSet) + (one.kind === Kind.FIELD ? 1 : 0),
    );
    const total = combine(selections);
    known.set(set, total);
    return total;
  };
  return measure;
}
