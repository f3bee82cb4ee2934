// What an operation may cost, counted before it is executed.
import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLCompositeType,
  GraphQLError,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
  getArgumentValues,
  getNamedType,
  isCompositeType,
  isInterfaceType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';
import type { Config } from '../config.ts';

/** How many of each an operation of a valid document gives at most. */
export interface Cost {
  /** Objects, each item of a list for itself. */
  readonly objects: number;
  /** Fields of all these objects. */
  readonly fields: number;
  /** Fields as they are written, with each fragment written out where it is spread. */
  readonly selections: number;
}

/**
 * The items that a field gives at most: what is selected below it counts as many times. Stands in the
 * `extensions` of a field as `countItems`; without it, a field is one object or value.
 * @param args as the document and its variables have them, defaults included
 */
export type CountItems = (args: Record<string, unknown>, config: CostConfig) => number;

export type CostConfig = Pick<Config, 'pageSize'>;

const nothing: Cost = { objects: 0, fields: 0, selections: 0 };

/**
 * Counts an operation. Each selection set is counted once, however often a fragment with it is
 * spread, so this takes no longer than the document is.
 * @param count coerced variables; undefined: a list counts as one item, as the document does not tell
 */
export function countCost(
  schema: GraphQLSchema,
  { definitions }: DocumentNode,
  operation: OperationDefinitionNode,
  count: { readonly variables: Record<string, unknown>; readonly config: CostConfig } | undefined,
): Cost {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) {
      fragments.set(definition.name.value, definition);
    }
  }
  const counted = new Map<SelectionSetNode, Cost>();

  const countSet = (set: SelectionSetNode, type: GraphQLCompositeType): Cost => {
    const known = counted.get(set);
    if (known) return known;
    const total = { objects: 0, fields: 0, selections: 0 };
    for (const selection of set.selections) {
      const { objects, fields, selections } =
        selection.kind === Kind.FIELD
          ? countField(selection, type)
          : selection.kind === Kind.FRAGMENT_SPREAD
            ? countFragment(fragments.get(selection.name.value), type)
            : countFragment(selection, type);
      total.objects += objects;
      total.fields += fields;
      total.selections += selections;
    }
    counted.set(set, total);
    return total;
  };

  const countFragment = (
    fragment: Partial<Pick<FragmentDefinitionNode, 'selectionSet' | 'typeCondition'>> | undefined,
    parent: GraphQLCompositeType,
  ): Cost => {
    if (!fragment?.selectionSet) return nothing;
    const { typeCondition } = fragment;
    const type = typeCondition ? schema.getType(typeCondition.name.value) : parent;
    return isCompositeType(type) ? countSet(fragment.selectionSet, type) : nothing;
  };

  const countField = (node: FieldNode, parent: GraphQLCompositeType): Cost => {
    const field = fieldOf(parent, node.name.value);
    const type: GraphQLNamedType | undefined = field && getNamedType(field.type);
    // A value, or introspection, of which graphql itself limits the lists in lists.
    if (!field || !node.selectionSet || !isCompositeType(type)) {
      return { objects: 0, fields: 1, selections: 1 };
    }
    const items = count ? itemsOf(field, node, count) : 1;
    const below = countSet(node.selectionSet, type);
    return {
      objects: 1 + items * below.objects,
      fields: 1 + items * below.fields,
      selections: 1 + below.selections,
    };
  };

  const root = schema.getRootType(operation.operation);
  return root ? countSet(operation.selectionSet, root) : nothing;
}

function fieldOf(type: GraphQLCompositeType, name: string) {
  return isObjectType(type) || isInterfaceType(type) ? type.getFields()[name] : undefined;
}

function itemsOf(
  field: GraphQLField<unknown, unknown>,
  node: FieldNode,
  { variables, config }: { variables: Record<string, unknown>; config: CostConfig },
): number {
  const { countItems } = field.extensions as { readonly countItems?: CountItems };
  if (!countItems) return 1;
  try {
    return countItems(getArgumentValues(field, node, variables), config);
  } catch (error) {
    // Execution stumbles over the arguments too: the field is an error, and nothing below it is read.
    if (error instanceof GraphQLError) return 0;
    throw error;
  }
}
