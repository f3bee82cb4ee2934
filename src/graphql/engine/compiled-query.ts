// Compiles repeated queries to JavaScript (graphql-jit): a third of the time of interpreting them.
import {
  type DocumentNode,
  type GraphQLSchema,
  isNonNullType,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import { isCompiledQuery, compileQuery as write } from 'graphql-jit';
import type { Context } from '../context.ts';
import { fragmentsOf } from './cost.ts';

export type CompiledQuery = NonNullable<ReturnType<typeof compileQuery>>;

/** Selections with fragments expanded, each 0.05 ms to compile: 950 characters can have 30,000, a second and 110 MB. */
const maxSelections = 300;
/** Bytes of memory per selection, measured after execution. */
const bytesPerSelection = 5_000;

/** Null: it is not compiled, because it is too long or graphql-jit would answer it differently. */
export function compileQuery(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
) {
  const selections = countSelections(schema, document, operation);
  if (selections === undefined) return null;
  const compiled = write(schema, document, operation.name?.value);
  if (!isCompiledQuery(compiled)) return null;
  return {
    run: (context: Context, variables: Record<string, unknown>) =>
      compiled.query(undefined, context, variables),
    bytes: bytesPerSelection * selections,
  };
}

/** Undefined: the operation is interpreted. */
export function countSelections(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): number | undefined {
  if (!isSafe(schema, document)) return undefined;
  const selections = expandedSize(document, operation);
  return selections > maxSelections ? undefined : selections;
}

/** Fields with fragments expanded: graphql-jit writes out each path. */
function expandedSize(document: DocumentNode, { selectionSet }: OperationDefinitionNode) {
  const fragments = fragmentsOf(document);
  const sizes = new Map<SelectionSetNode, number>();
  const sizeOf = (set: SelectionSetNode | undefined): number => {
    if (!set) return 0;
    let size = sizes.get(set) ?? 0;
    if (sizes.has(set)) return size;
    for (const one of set.selections) {
      size +=
        one.kind === Kind.FRAGMENT_SPREAD
          ? sizeOf(fragments[one.name.value]?.selectionSet)
          : sizeOf(one.selectionSet);
      if (one.kind === Kind.FIELD) size += 1;
    }
    sizes.set(set, size);
    return size;
  };
  return sizeOf(selectionSet);
}

/**
 * Whether graphql-jit 0.8.9 answers as graphql-js does. With `@skip` and `@include` it omits fields, or includes
 * excluded ones. It loses a name such as `__proto__`. A variable inside a list may be null where null is not allowed; inside an object it is null instead of
 * absent, which means the same for a nullable field without a default (`filter`). Without these, none of 33,900 random
 * documents was answered differently. Introspection is excluded because it is never hot.
 */
function isSafe(schema: GraphQLSchema, document: DocumentNode): boolean {
  let found = false;
  const typeInfo = new TypeInfo(schema);
  const visitor = visitWithTypeInfo(typeInfo, {
    Directive: () => {
      found = true;
    },
    Variable: ({ name }, _key, _parent, _path, ancestors) => {
      if (name.value.startsWith('__')) found = true;
      const kinds = ancestors.map((node) => ('kind' in node ? node.kind : undefined));
      const isOptional =
        !isNonNullType(typeInfo.getInputType()) && typeInfo.getDefaultValue() === undefined;
      if (kinds.includes(Kind.LIST) || (kinds.includes(Kind.OBJECT) && !isOptional)) found = true;
    },
    Field: ({ name, alias }) => {
      const isMeta = name.value === '__schema' || name.value === '__type';
      if (isMeta || alias?.value.startsWith('__')) found = true;
    },
  });
  visit(document, visitor);
  return !found;
}
