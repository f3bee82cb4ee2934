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
import type { Config } from '../../config.ts';

export interface Cost {
  readonly objects: number;
  /** Fields of all these objects. */
  readonly fields: number;
  /** Fields as they are written, with each fragment written out where it is spread. */
  readonly selections: number;
  /** What the filters of lists may cost the database, by `weighFilter`: once for each field as written. */
  readonly weight: number;
  /** The conditions of these filters, by their names in the schema. */
  readonly conditions: ReadonlySet<string>;
}

/** `extensions.countItems` of a field: the items that it gives at most. Without it, it is one object or value. */
export type CountItems = (args: Record<string, unknown>, config: CostConfig) => number;

/**
 * `extensions.weighFilter` of a field: what its filter may cost the database.
 * @throws GraphQLError for a filter that cannot be: nothing is read then
 */
export type WeighFilter = (args: Record<string, unknown>) => number;

export type CostConfig = Pick<Config, 'pageSize'>;

type Part = Omit<Cost, 'conditions'>;
const nothing: Part = { objects: 0, fields: 0, selections: 0, weight: 0 };

/**
 * Counts each selection set once, however often a fragment with it is spread.
 * @param count coerced variables; undefined: a list counts as one item, as the document does not tell
 */
export function countCost(
  schema: GraphQLSchema,
  { definitions }: DocumentNode,
  operation: OperationDefinitionNode,
  count: CountOptions | undefined,
): Cost {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) {
      fragments.set(definition.name.value, definition);
    }
  }
  const conditions = new Set<string>();
  const counted = new Map<SelectionSetNode, Part>();

  const countSet = (set: SelectionSetNode, type: GraphQLCompositeType): Part => {
    const known = counted.get(set);
    if (known) return known;
    const total = { ...nothing };
    for (const selection of set.selections) {
      const { objects, fields, selections, weight } =
        selection.kind === Kind.FIELD
          ? countField(selection, type)
          : selection.kind === Kind.FRAGMENT_SPREAD
            ? countFragment(fragments.get(selection.name.value), type)
            : countFragment(selection, type);
      total.objects += objects;
      total.fields += fields;
      total.selections += selections;
      total.weight += weight;
    }
    counted.set(set, total);
    return total;
  };

  const countFragment = (
    fragment: Partial<Pick<FragmentDefinitionNode, 'selectionSet' | 'typeCondition'>> | undefined,
    parent: GraphQLCompositeType,
  ): Part => {
    if (!fragment?.selectionSet) return nothing;
    const { typeCondition } = fragment;
    const type = typeCondition ? schema.getType(typeCondition.name.value) : parent;
    return isCompositeType(type) ? countSet(fragment.selectionSet, type) : nothing;
  };

  const countField = (node: FieldNode, parent: GraphQLCompositeType): Part => {
    const field = fieldOf(parent, node.name.value);
    const type: GraphQLNamedType | undefined = field && getNamedType(field.type);
    // A value, or introspection, of which graphql itself limits the lists in lists.
    if (!field || !node.selectionSet || !isCompositeType(type)) {
      return { objects: 0, fields: 1, selections: 1, weight: 0 };
    }
    const { items, weight, names } = count ? measureField(field, node, count) : unmeasured;
    for (const name of names) conditions.add(name);
    const below = countSet(node.selectionSet, type);
    return {
      objects: 1 + items * below.objects,
      fields: 1 + items * below.fields,
      selections: 1 + below.selections,
      weight: weight + below.weight,
    };
  };

  const root = schema.getRootType(operation.operation);
  return { ...(root ? countSet(operation.selectionSet, root) : nothing), conditions };
}

function fieldOf(type: GraphQLCompositeType, name: string) {
  return isObjectType(type) || isInterfaceType(type) ? type.getFields()[name] : undefined;
}

interface CountOptions {
  readonly variables: Record<string, unknown>;
  readonly config: CostConfig;
}

const unmeasured = { items: 1, weight: 0, names: [] as readonly string[] };

function measureField(
  field: GraphQLField<unknown, unknown>,
  node: FieldNode,
  { variables, config }: CountOptions,
) {
  const { countItems, weighFilter } = field.extensions as {
    readonly countItems?: CountItems;
    readonly weighFilter?: WeighFilter;
  };
  if (!countItems) return unmeasured;
  try {
    const args = getArgumentValues(field, node, variables);
    const items = countItems(args, config);
    const weight = weighFilter?.(args) ?? 0;
    return { items, weight, names: weight > 0 ? Object.keys(args['filter'] ?? {}) : [] };
  } catch (error) {
    // Execution stumbles over the arguments too: the field is an error, and nothing below it is read.
    if (error instanceof GraphQLError) return { ...unmeasured, items: 0 };
    throw error;
  }
}
