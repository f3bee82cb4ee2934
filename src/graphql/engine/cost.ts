// Cost analysis: an upper bound of the objects and fields of an operation, computed before it is executed.
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
  /** Fields of the document, with fragments expanded. */
  readonly selections: number;
  /** Cost of the filters of lists for the database, by `weighFilter`: once for each field of the document. */
  readonly weight: number;
  /** Names of the conditions in these filters; of a field without a filter, its own. */
  readonly conditions: ReadonlySet<string>;
}

/** `extensions.countItems` of a field: maximum number of its items. Default: one object or value. */
export type CountItems = (args: Record<string, unknown>, config: CostConfig) => number;

/**
 * `extensions.weighFilter` of a field: cost of its filter for the database.
 * @throws GraphQLError for an invalid filter, with which nothing is read
 */
export type WeighFilter = (args: Record<string, unknown>) => number;

export type CostConfig = Pick<Config, 'pageSize'>;

type Part = Omit<Cost, 'conditions'>;
const nothing: Part = { objects: 0, fields: 0, selections: 0, weight: 0 };

/** @param count coerced variables; undefined: a list counts as one item, since its size depends on them */
export function countCost(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  count: CountOptions | undefined,
): Cost {
  const root = schema.getRootType(operation.operation);
  const counter = new CostCounter(schema, document, count);
  const parts = root ? counter.countSet(operation.selectionSet, root) : nothing;
  return { ...parts, conditions: counter.conditions };
}

/** Memoized by selection set: a fragment that is spread many times is counted once. */
class CostCounter {
  readonly conditions = new Set<string>();
  readonly #fragments = new Map<string, FragmentDefinitionNode>();
  readonly #counted = new Map<SelectionSetNode, Part>();

  constructor(
    private readonly schema: GraphQLSchema,
    { definitions }: DocumentNode,
    private readonly options: CountOptions | undefined,
  ) {
    for (const definition of definitions) {
      if (definition.kind === Kind.FRAGMENT_DEFINITION) {
        this.#fragments.set(definition.name.value, definition);
      }
    }
  }

  countSet(set: SelectionSetNode, type: GraphQLCompositeType): Part {
    const memoized = this.#counted.get(set);
    if (memoized) return memoized;
    const total = { ...nothing };
    for (const selection of set.selections) {
      const { objects, fields, selections, weight } =
        selection.kind === Kind.FIELD
          ? this.#countField(selection, type)
          : selection.kind === Kind.FRAGMENT_SPREAD
            ? this.#countFragment(this.#fragments.get(selection.name.value), type)
            : this.#countFragment(selection, type);
      total.objects += objects;
      total.fields += fields;
      total.selections += selections;
      total.weight += weight;
    }
    this.#counted.set(set, total);
    return total;
  }

  #countFragment(
    fragment: Partial<Pick<FragmentDefinitionNode, 'selectionSet' | 'typeCondition'>> | undefined,
    parent: GraphQLCompositeType,
  ): Part {
    if (!fragment?.selectionSet) return nothing;
    const { typeCondition } = fragment;
    const type = typeCondition ? this.schema.getType(typeCondition.name.value) : parent;
    return isCompositeType(type) ? this.countSet(fragment.selectionSet, type) : nothing;
  }

  #countField(node: FieldNode, parent: GraphQLCompositeType): Part {
    const field = fieldOf(parent, node.name.value);
    const type: GraphQLNamedType | undefined = field && getNamedType(field.type);
    // A scalar, or introspection, whose nested lists graphql-js limits itself.
    if (!field || !node.selectionSet || !isCompositeType(type)) {
      return { objects: 0, fields: 1, selections: 1, weight: 0 };
    }
    const { options } = this;
    const { items, weight, names } = options ? measureField(field, node, options) : unmeasured;
    for (const name of names) this.conditions.add(name);
    const below = this.countSet(node.selectionSet, type);
    return {
      objects: 1 + items * below.objects,
      fields: 1 + items * below.fields,
      selections: 1 + below.selections,
      weight: weight + below.weight,
    };
  }
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
    return {
      items,
      weight,
      names: weight > 0 ? Object.keys(args['filter'] ?? { [node.name.value]: weight }) : [],
    };
  } catch (error) {
    // Execution fails on these arguments too: the field is an error, and nothing below it is read.
    if (error instanceof GraphQLError) return { ...unmeasured, items: 0 };
    throw error;
  }
}
