import { complexityFromQuery } from '@pothos/plugin-complexity';
import {
  type DocumentNode,
  type GraphQLSchema,
  Kind,
  type OperationDefinitionNode,
  visit,
} from 'graphql';
import type { Context } from './context.ts';

/** Counts the objects that an operation of a valid document may give with these variables. */
export type CountObjects = (
  document: DocumentNode,
  operation: OperationDefinitionNode,
  variables: Record<string, unknown>,
  context: Context,
) => number;

/** What a field counts is said where it is defined, as `complexity`. */
export function createCounter(schema: GraphQLSchema): CountObjects {
  const counted = new WeakMap<OperationDefinitionNode, DocumentNode>();
  return (document, operation, variables, ctx) => {
    const known = counted.get(operation) ?? keepCounted(document, operation);
    counted.set(operation, known);
    return complexityFromQuery(known, { schema, variables, ctx }).complexity;
  };
}

/**
 * The plugin counts the first operation only, and takes `__typename`, which clients add to
 * everything, for an object. Values count nothing, so leaving them out saves most of the time.
 */
function keepCounted(
  { definitions }: DocumentNode,
  operation: OperationDefinitionNode,
): DocumentNode {
  const fragments = definitions.filter(({ kind }) => kind === Kind.FRAGMENT_DEFINITION);
  const document: DocumentNode = { kind: Kind.DOCUMENT, definitions: [operation, ...fragments] };
  return visit(document, {
    Field: ({ name, selectionSet }) =>
      !selectionSet || name.value.startsWith('__') ? null : undefined,
  });
}
