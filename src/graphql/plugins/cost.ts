// Cost analysis: refuses an operation whose variables do not fit their types, or with which it is too costly: by an upper
// bound of its objects and fields, computed before it is executed.
import {
  type DocumentNode,
  type FieldNode,
  type GraphQLCompositeType,
  GraphQLError,
  type GraphQLField,
  type GraphQLInputType,
  GraphQLInt,
  type GraphQLObjectType,
  type GraphQLSchema,
  getArgumentValues,
  getNamedType,
  getNullableType,
  getVariableValues,
  isAbstractType,
  isCompositeType,
  isListType,
  type NamedTypeNode,
  type OperationDefinitionNode,
  type SelectionSetNode,
  typeFromAST,
  valueFromAST,
} from 'graphql';
import { collectSubfields } from 'graphql/execution/collectFields.js';
import type { Config } from '../../config/config.ts';
import { exceeded, invalidArgument, overLimit } from '../errors.ts';
import { fragmentsOf, type Operation, type Operations } from '../operations.ts';
import type { Cost, OperationPlugin } from '../run.ts';
import { type DocumentConfig, errorOptionsOf, maxText } from './document-limits.ts';

const limits = {
  /** Per object of GRAPHQL_MAX_COST, since objects alone say little: an outfit has 18, aliases could add fifty. */
  fieldsPerObject: 8,
  /** By `weightOf` of outfits/lists/list.ts: three lists without an index, six searches, or twelve lists of a user. */
  filterWeight: 12,
  /** Fields of one object in variables. */
  keys: 100,
};

export type LimitConfig = CostConfig & DocumentConfig & Pick<Config, 'graphqlMaxCost'>;

export function useCost(
  schema: GraphQLSchema,
  config: LimitConfig,
  operations: Operations,
): OperationPlugin {
  return {
    onExecute({ args, context: { run }, setResultAndStopExecution }) {
      const operation = operations.of(args.document, args.operationName);
      // No limit applies to a document of this service itself.
      if (operation?.text === undefined) return;
      const given = args.variableValues ?? {};
      const { errors, coerced } = coerceVariables(schema, config, operation.node, given);
      if (errors) return setResultAndStopExecution({ errors });
      const cost = countCost(schema, config, operation, coerced);
      run.cost = cost;
      const error = findExcess(config, cost);
      if (error) setResultAndStopExecution({ errors: [error] });
    },
  };
}

type Countable = Pick<Operation, 'document' | 'node' | 'text'>;

function coerceVariables(
  schema: GraphQLSchema,
  config: LimitConfig,
  { variableDefinitions = [] }: OperationDefinitionNode,
  given: Record<string, unknown>,
): ReturnType<typeof getVariableValues> {
  for (const { variable } of variableDefinitions) {
    const name = variable.name.value;
    const size = Object.hasOwn(given, name) && findExcessiveSize(given[name]);
    if (size) return { errors: [overLimit('VALUE_TOO_LARGE', `Variable "$${name}" has ${size}`)] };
  }
  const options = errorOptionsOf(config);
  const { errors, coerced } = getVariableValues(schema, variableDefinitions, given, options);
  return errors ? { errors: errors.map(invalidArgument) } : { coerced };
}

/** Called before anything converts, compares or quotes a value. */
function findExcessiveSize(value: unknown): string | undefined {
  if (typeof value === 'string') {
    return value.length > maxText ? describeSize(value.length, maxText, 'characters') : undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const keys = Array.isArray(value) ? 0 : Object.keys(value).length;
  if (keys > limits.keys) return describeSize(keys, limits.keys, 'fields in one object');
  for (const inner of Object.values(value)) {
    const excess = findExcessiveSize(inner);
    if (excess) return excess;
  }
  return undefined;
}

function describeSize(found: number, max: number, things: string): string {
  return `${found} ${things}, but at most ${max} are allowed.`;
}

function findExcess(
  { graphqlMaxCost }: LimitConfig,
  { objects, fields, weight, conditions }: Counted,
): GraphQLError | undefined {
  const maxFields = limits.fieldsPerObject * graphqlMaxCost;
  return (
    exceeded('QUERY_TOO_COSTLY', objects, graphqlMaxCost, 'objects') ??
    exceeded('QUERY_TOO_COSTLY', fields, maxFields, 'fields') ??
    (weight > limits.filterWeight
      ? overLimit(
          'QUERY_TOO_COSTLY',
          `The filters of the document (${[...conditions].join(', ')}) weigh ${weight} for the database, but at most ${limits.filterWeight} is allowed: request fewer such lists at a time.`,
        )
      : undefined)
  );
}

/** Undefined: within the limits for some variables. Uses their defaults, or the cheapest values. */
export function findExcessOf(
  schema: GraphQLSchema,
  config: LimitConfig,
  operation: Countable,
): GraphQLError | undefined {
  const variables: Record<string, unknown> = Object.create(null);
  for (const { variable, defaultValue, type } of operation.node.variableDefinitions ?? []) {
    const inputType = typeFromAST(schema, type as NamedTypeNode) as GraphQLInputType;
    const least = getNullableType(inputType);
    const name = variable.name.value;
    if (defaultValue) variables[name] = valueFromAST(defaultValue, inputType);
    else if (least === GraphQLInt) variables[name] = 1;
    else if (isListType(least)) variables[name] = [];
  }
  return findExcess(config, countCost(schema, config, operation, variables));
}

/** `extensions.countItems` of a field: maximum number of its items. Default: one object or value. */
export type CountItems = (args: Record<string, unknown>, config: CostConfig) => number;

/**
 * `extensions.weighFilter` of a field: cost of its filter for the database.
 * @throws GraphQLError for an invalid filter, with which nothing is read
 */
export type WeighFilter = (args: Record<string, unknown>) => number;

export type CostConfig = Pick<Config, 'pageSize'>;

const nothing: Cost = { objects: 0, fields: 0, weight: 0 };

/** Places in the result that are counted: only a hostile document has so many, by fragments within fragments. */
const maxGroups = 10_000;

interface Counted extends Cost {
  /** Names of the conditions that weigh; of a field without a filter, its own. */
  readonly conditions: ReadonlySet<string>;
}

/** @param variables coerced */
function countCost(
  schema: GraphQLSchema,
  config: CostConfig,
  operation: Countable,
  variables: Record<string, unknown>,
): Counted {
  const plan = plans.get(operation.node) ?? createPlan(schema, operation, variables);
  const evaluation = new Evaluation(config, variables);
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

function createPlan(
  schema: GraphQLSchema,
  { document, node, text }: Countable,
  variables: Record<string, unknown>,
): Plan {
  const root = schema.getRootType(node.operation);
  const planner = new Planner(schema, document, variables);
  const plan = root ? planner.planSets([node], root) : empty;
  if (!text?.includes('@')) plans.set(node, plan);
  return plan;
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
