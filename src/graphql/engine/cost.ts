// Cost analysis: an upper bound of the objects and fields of an operation, computed before it is executed.
import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLCompositeType,
  GraphQLError,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
  getArgumentValues,
  getNamedType,
  isAbstractType,
  isCompositeType,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';
import { collectSubfields } from 'graphql/execution/collectFields.js';
import type { Config } from '../../config/config.ts';

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
  readonly text: string | undefined;
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
  operation: Countable,
): Counted {
  const plan = plans.get(operation.node) ?? createPlan(schema, operation);
  const evaluation = new Evaluation(config, operation.variables);
  return { ...evaluation.costOf(plan), conditions: evaluation.conditions };
}

/** What is counted of the selection sets of one object. */
interface Plan {
  /** Fields with values. */
  readonly values: number;
  readonly fields: readonly CountedField[];
  /** Instead, of an abstract type: the plans of its object types, of which the dearest counts. */
  readonly alternatives?: readonly Plan[];
}

const empty: Plan = { values: 0, fields: [] };

interface CountedField {
  readonly field: GraphQLField<unknown, unknown>;
  /** Its arguments are those of all fields that are merged with it. */
  readonly node: FieldNode;
  readonly below: Plan;
}

/** Plans of operations without directives: @skip and @include depend on variables. */
const plans = new WeakMap<OperationDefinitionNode, Plan>();

function createPlan(schema: GraphQLSchema, { document, node, text, variables }: Countable): Plan {
  const root = schema.getRootType(node.operation);
  const planner = new Planner(schema, document, variables);
  const plan = root ? planner.planSets([node], root) : empty;
  if (!text?.includes('@')) plans.set(node, plan);
  return plan;
}

/** The fragments of a document by their names. */
export function fragmentsOf({ definitions }: DocumentNode) {
  const fragments: Record<string, FragmentDefinitionNode> = Object.create(null);
  for (const one of definitions) {
    if (one.kind === Kind.FRAGMENT_DEFINITION) fragments[one.name.value] = one;
  }
  return fragments;
}

interface WithSelections {
  readonly selectionSet?: SelectionSetNode | undefined;
}

/** Finds what execution would execute, by the function with which graphql-js collects fields. */
class Planner {
  readonly #fragments;
  /** By type and the selection sets that are merged: fragments that are spread in many places are planned once. */
  readonly #planned = new Map<string, Plan>();
  readonly #ids = new Map<SelectionSetNode | undefined, number>();

  constructor(
    private readonly schema: GraphQLSchema,
    document: DocumentNode,
    private readonly variables: Record<string, unknown>,
  ) {
    this.#fragments = fragmentsOf(document);
  }

  planSets(nodes: readonly WithSelections[], type: GraphQLCompositeType): Plan {
    if (isAbstractType(type)) {
      const types = this.schema.getPossibleTypes(type);
      return { ...empty, alternatives: types.map((one) => this.planSets(nodes, one)) };
    }
    const key = `${type.name} ${nodes.map(({ selectionSet }) => this.#idOf(selectionSet))}`;
    const planned = this.#planned.get(key);
    if (planned) return planned;
    if (this.#planned.size >= maxGroups) return { values: Number.POSITIVE_INFINITY, fields: [] };
    const groups = this.#collect(nodes, type);
    const fields = groups.flatMap((group) => this.#planField(group, type));
    const plan = { values: groups.length - fields.length, fields };
    this.#planned.set(key, plan);
    return plan;
  }

  #idOf(set: SelectionSetNode | undefined): number {
    const id = this.#ids.get(set) ?? this.#ids.size;
    this.#ids.set(set, id);
    return id;
  }

  /** Fields by their response key, without those that @skip and @include leave out. */
  #collect(nodes: readonly WithSelections[], type: GraphQLObjectType) {
    const { schema, variables } = this;
    try {
      return [
        ...collectSubfields(
          schema,
          this.#fragments,
          variables,
          type,
          nodes as FieldNode[],
        ).values(),
      ];
    } catch (error) {
      // Execution fails on this condition too.
      if (error instanceof GraphQLError) return [];
      throw error;
    }
  }

  #planField(nodes: readonly FieldNode[], parent: GraphQLObjectType): CountedField | [] {
    const [node] = nodes as [FieldNode];
    const field = node.selectionSet && parent.getFields()[node.name.value];
    const type = field && getNamedType(field.type);
    // A value, or introspection, whose nested lists graphql-js limits itself.
    if (!field || !isCompositeType(type)) return [];
    return { field, node, below: this.planSets(nodes, type) };
  }
}

class Evaluation {
  readonly conditions = new Set<string>();
  readonly #counted = new Map<Plan, Cost>();

  constructor(
    private readonly config: CostConfig,
    private readonly variables: Record<string, unknown>,
  ) {}

  costOf(plan: Plan): Cost {
    const counted = this.#counted.get(plan);
    if (counted) return counted;
    const cost = plan.alternatives
      ? plan.alternatives.map((one) => this.costOf(one)).reduce(dearest, nothing)
      : this.#add(plan);
    this.#counted.set(plan, cost);
    return cost;
  }

  #add({ values, fields }: Plan): Cost {
    const total = { objects: 0, fields: values, weight: 0 };
    for (const { field, node, below } of fields) {
      const { items, weight } = this.#measure(field, node);
      const cost = items === 0 ? nothing : this.costOf(below);
      total.objects += 1 + items * cost.objects;
      total.fields += 1 + items * cost.fields;
      total.weight += weight + cost.weight;
    }
    return total;
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

function dearest(a: Cost, b: Cost): Cost {
  return {
    objects: Math.max(a.objects, b.objects),
    fields: Math.max(a.fields, b.fields),
    weight: Math.max(a.weight, b.weight),
  };
}
