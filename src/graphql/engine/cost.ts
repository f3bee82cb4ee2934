// Cost analysis: an upper bound of the objects and fields of an operation, computed before it is executed.
import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLCompositeType,
  type GraphQLDirective,
  GraphQLError,
  type GraphQLField,
  GraphQLIncludeDirective,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLSchema,
  GraphQLSkipDirective,
  getArgumentValues,
  getDirectiveValues,
  getNamedType,
  type InlineFragmentNode,
  isAbstractType,
  isCompositeType,
  Kind,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql';
import type { Config } from '../../config.ts';

/** What an operation can give at most, for limits and for taking turns. */
export interface Cost {
  readonly objects: number;
  /** Fields of all these objects. */
  readonly fields: number;
  /** Cost of the filters of lists for the database, by `weighFilter`: once for each field of the document. */
  readonly weight: number;
}

/** `extensions.countItems` of a field: maximum number of its items. Default: one object or value. */
export type CountItems = (args: Record<string, unknown>, config: CostConfig) => number;

/**
 * `extensions.weighFilter` of a field: cost of its filter for the database.
 * @throws GraphQLError for an invalid filter, with which nothing is read
 */
export type WeighFilter = (args: Record<string, unknown>) => number;

export type CostConfig = Pick<Config, 'pageSize'>;

/** An operation with its coerced variables. */
export interface Countable {
  readonly document: DocumentNode;
  readonly node: OperationDefinitionNode;
  readonly variables: Record<string, unknown>;
}

const nothing: Cost = { objects: 0, fields: 0, weight: 0 };

/** Places in the result that are counted: only a hostile document has so many, by fragments within fragments. */
const maxGroups = 10_000;

export interface Counted extends Cost {
  /** Names of the conditions that weigh; of a field without a filter, its own. */
  readonly conditions: ReadonlySet<string>;
}

export function countCost(
  schema: GraphQLSchema,
  config: CostConfig,
  { document, node, variables }: Countable,
): Counted {
  const root = schema.getRootType(node.operation);
  const counter = new CostCounter(schema, config, document, variables);
  const cost = root ? counter.countSets([node.selectionSet], root) : nothing;
  return { ...cost, conditions: counter.conditions };
}

/**
 * Counts what execution would execute, as `collectFields` of graphql-js does: fields of one response key are merged, and
 * what @skip and @include leave out is left out. Of an abstract type, the dearest object type counts.
 */
class CostCounter {
  readonly conditions = new Set<string>();
  readonly #fragments = new Map<string, FragmentDefinitionNode>();
  /** By type and the selection sets that are merged: fragments that are spread in many places are counted once. */
  readonly #counted = new Map<string, Cost>();
  readonly #ids = new Map<SelectionSetNode, number>();

  constructor(
    private readonly schema: GraphQLSchema,
    private readonly config: CostConfig,
    { definitions }: DocumentNode,
    private readonly variables: Record<string, unknown>,
  ) {
    for (const definition of definitions) {
      if (definition.kind === Kind.FRAGMENT_DEFINITION) {
        this.#fragments.set(definition.name.value, definition);
      }
    }
  }

  countSets(sets: readonly SelectionSetNode[], type: GraphQLCompositeType): Cost {
    if (isAbstractType(type)) {
      const costs = this.schema.getPossibleTypes(type).map((one) => this.countSets(sets, one));
      return costs.reduce(dearest, nothing);
    }
    const key = `${type.name} ${sets.map((set) => this.#idOf(set))}`;
    const counted = this.#counted.get(key);
    if (counted) return counted;
    if (this.#counted.size >= maxGroups) return { ...nothing, fields: Number.POSITIVE_INFINITY };
    const groups = new Map<string, FieldNode[]>();
    const spread = new Set<string>();
    for (const set of sets) this.#collect(set, type, groups, spread);
    const costs = [...groups.values()].map((nodes) => this.#countField(nodes, type));
    const total = costs.reduce(add, nothing);
    this.#counted.set(key, total);
    return total;
  }

  #idOf(set: SelectionSetNode): number {
    const id = this.#ids.get(set) ?? this.#ids.size;
    this.#ids.set(set, id);
    return id;
  }

  #collect(
    { selections }: SelectionSetNode,
    type: GraphQLObjectType,
    groups: Map<string, FieldNode[]>,
    spread: Set<string>,
  ): void {
    for (const node of selections) {
      if (!this.#isIncluded(node)) continue;
      if (node.kind === Kind.FIELD) {
        const key = (node.alias ?? node.name).value;
        const group = groups.get(key);
        if (group) group.push(node);
        else groups.set(key, [node]);
        continue;
      }
      const isNamed = node.kind === Kind.FRAGMENT_SPREAD;
      if (isNamed && spread.has(node.name.value)) continue;
      if (isNamed) spread.add(node.name.value);
      const fragment = isNamed ? this.#fragments.get(node.name.value) : node;
      if (fragment && this.#matches(fragment, type)) {
        this.#collect(fragment.selectionSet, type, groups, spread);
      }
    }
  }

  #matches(
    { typeCondition }: FragmentDefinitionNode | InlineFragmentNode,
    type: GraphQLObjectType,
  ): boolean {
    const named = typeCondition && this.schema.getType(typeCondition.name.value);
    if (!named || named === type) return true;
    return isAbstractType(named) && this.schema.isSubType(named, type);
  }

  #isIncluded(node: SelectionNode): boolean {
    if (!node.directives?.length) return true;
    const conditionOf = (directive: GraphQLDirective) =>
      getDirectiveValues(directive, node, this.variables)?.['if'];
    try {
      if (conditionOf(GraphQLSkipDirective) === true) return false;
      return conditionOf(GraphQLIncludeDirective) !== false;
    } catch (error) {
      // Execution fails on this condition too.
      if (error instanceof GraphQLError) return false;
      throw error;
    }
  }

  #countField(nodes: readonly FieldNode[], parent: GraphQLObjectType): Cost {
    const [node] = nodes as [FieldNode];
    const field = parent.getFields()[node.name.value];
    const type: GraphQLNamedType | undefined = field && getNamedType(field.type);
    // A scalar, or introspection, whose nested lists graphql-js limits itself.
    if (!field || !isCompositeType(type)) return { objects: 0, fields: 1, weight: 0 };
    const { items, weight } = this.#measure(field, node);
    const sets = nodes.flatMap(({ selectionSet }) => selectionSet ?? []);
    const below = items === 0 ? nothing : this.countSets(sets, type);
    return {
      objects: 1 + items * below.objects,
      fields: 1 + items * below.fields,
      weight: weight + below.weight,
    };
  }

  #measure(field: GraphQLField<unknown, unknown>, node: FieldNode) {
    const { countItems, weighFilter } = field.extensions as {
      readonly countItems?: CountItems;
      readonly weighFilter?: WeighFilter;
    };
    if (!countItems) return { items: 1, weight: 0 };
    try {
      const args = getArgumentValues(field, node, this.variables);
      const items = countItems(args, this.config);
      const weight = weighFilter?.(args) ?? 0;
      if (weight > 0) {
        const names = Object.keys(args['filter'] ?? { [node.name.value]: weight });
        for (const name of names) this.conditions.add(name);
      }
      return { items, weight };
    } catch (error) {
      // Execution fails on these arguments too: the field is an error, and nothing below it is read.
      if (error instanceof GraphQLError) return { items: 0, weight: 0 };
      throw error;
    }
  }
}

const combine = (of: (a: number, b: number) => number) => (a: Cost, b: Cost) => ({
  objects: of(a.objects, b.objects),
  fields: of(a.fields, b.fields),
  weight: of(a.weight, b.weight),
});
const add = combine((a, b) => a + b);
const dearest = combine(Math.max);
