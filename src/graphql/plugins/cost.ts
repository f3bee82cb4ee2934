// Cost analysis: refuses an operation whose variables do not fit their types, or with which it is too costly: by an upper
// bound of its objects and fields, computed before it is executed.
import {
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
  print,
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
  /** Fields of one object in variables, and values of one list: twice what any takes. */
  keys: 100,
  values: 200,
};

export type LimitConfig = CostConfig & DocumentConfig & Pick<Config, 'graphqlMaxCost'>;

export function useCost(
  schema: GraphQLSchema,
  config: LimitConfig,
  operations: Operations,
): OperationPlugin {
  /** Costs that are the same for all variables. */
  const fixed = new WeakMap<Operation, Counted>();
  return {
    onExecute({ args, context: { run }, setResultAndStopExecution }) {
      const operation = operations.of(args.document, args.operationName);
      run.operation = operation;
      // No limit applies to a document of this service itself.
      if (operation?.text === undefined) return;
      const given = args.variableValues ?? {};
      const { errors, coerced } = coerceVariables(schema, config, operation.node, given);
      if (errors) return setResultAndStopExecution({ errors });
      const cost = fixed.get(operation) ?? countCost(schema, config, operation, coerced);
      // A directive may have a variable as its condition.
      if (cost.isFixed && !operation.text.includes('@')) fixed.set(operation, cost);
      run.cost = cost;
      const error = findExcess(config, cost);
      if (error) setResultAndStopExecution({ errors: [error] });
    },
  };
}

type Countable = Pick<Operation, 'document' | 'node'>;

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
  const inside = Object.values(value);
  const [most, things] = Array.isArray(value)
    ? [limits.values, 'values in one list']
    : [limits.keys, 'fields in one object'];
  if (inside.length > most) return describeSize(inside.length, most, things);
  for (const inner of inside) {
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

/** Places in the result that are counted: only a hostile document has so many, by fragments within fragments. */
const maxGroups = 10_000;

const nothing: Cost = { objects: 0, fields: 0, weight: 0 };

interface Counted extends Cost {
  /** Names of the conditions that weigh; of a field without a filter, its own. */
  readonly conditions: ReadonlySet<string>;
  /** Whether it is the same for all variables. */
  readonly isFixed: boolean;
}

type WithSelections = Pick<FieldNode, 'selectionSet'>;
type Field = GraphQLField<unknown, unknown>;

/**
 * Counts what execution would execute, by the function with which graphql-js collects fields.
 * @param variables coerced
 */
function countCost(
  schema: GraphQLSchema,
  config: CostConfig,
  { document, node: operation }: Countable,
  variables: Record<string, unknown>,
): Counted {
  const fragments = fragmentsOf(document);
  const conditions = new Set<string>();
  let isFixed = true;
  /** By type and the selection sets that are merged: fragments that are spread in many places are counted once. */
  const counted = new Map<string, Cost>();
  const ids = new Map<SelectionSetNode | undefined, number>();
  const idOf = ({ selectionSet }: WithSelections): number => {
    const id = ids.get(selectionSet) ?? ids.size;
    ids.set(selectionSet, id);
    return id;
  };

  /** Fields by their response key, without those that @skip and @include leave out. */
  const collect = (nodes: readonly WithSelections[], type: GraphQLObjectType) => {
    const given = nodes as FieldNode[];
    try {
      return [...collectSubfields(schema, fragments, variables, type, given).values()];
    } catch (error) {
      // Execution fails on this condition too.
      if (error instanceof GraphQLError) return [];
      throw error;
    }
  };

  const measure = (field: Field, node: FieldNode) => {
    const { countItems, weighFilter } = field.extensions as {
      readonly countItems?: CountItems;
      readonly weighFilter?: WeighFilter;
    };
    if (!countItems) return { items: 1, weight: 0 };
    if (node.arguments?.some((argument) => print(argument).includes('$'))) isFixed = false;
    try {
      const args = getArgumentValues(field, node, variables);
      const items = countItems(args, config);
      const weight = weighFilter?.(args) ?? 0;
      if (weight > 0) {
        const names = Object.keys(args['filter'] ?? { [node.name.value]: weight });
        for (const name of names) conditions.add(name);
      }
      return { items, weight };
    } catch (error) {
      // Execution fails on these arguments too: the field is an error, and nothing below it is read.
      if (error instanceof GraphQLError) return { items: 0, weight: 0 };
      throw error;
    }
  };

  /** A field is in many groups of selections, and its filter may take a millisecond. */
  const measured = new Map<FieldNode, ReturnType<typeof measure> & { readonly field: Field }>();
  const measureOnce = (field: Field, node: FieldNode) => {
    const known = measured.get(node);
    if (known?.field === field) return known;
    const found = { field, ...measure(field, node) };
    measured.set(node, found);
    return found;
  };

  /** @param nodes which are merged, and so have the same arguments */
  const countField = (nodes: readonly FieldNode[], parent: GraphQLObjectType): Cost => {
    const [node] = nodes as [FieldNode];
    const field = node.selectionSet && parent.getFields()[node.name.value];
    const type = field && getNamedType(field.type);
    // A value, or introspection, whose nested lists graphql-js limits itself.
    if (!field || !isCompositeType(type)) return { ...nothing, fields: 1 };
    const { items, weight } = measureOnce(field, node);
    const each = items === 0 ? nothing : count(nodes, type);
    return {
      objects: 1 + items * each.objects,
      fields: 1 + items * each.fields,
      weight: weight + each.weight,
    };
  };

  /** What one object gives by these selection sets; of an abstract type, what the dearest of its types does. */
  const count = (nodes: readonly WithSelections[], type: GraphQLCompositeType): Cost => {
    if (isAbstractType(type)) {
      const types = schema.getPossibleTypes(type);
      return types.map((one) => count(nodes, one)).reduce(dearest, nothing);
    }
    const key = `${type.name} ${nodes.map(idOf)}`;
    const known = counted.get(key);
    if (known) return known;
    if (counted.size >= maxGroups) return { ...nothing, fields: Number.POSITIVE_INFINITY };
    const groups = collect(nodes, type);
    const cost = groups.map((group) => countField(group, type)).reduce(sum, nothing);
    counted.set(key, cost);
    return cost;
  };

  const root = schema.getRootType(operation.operation);
  const cost = root ? count([operation], root) : nothing;
  return { ...cost, conditions, isFixed };
}

const combine =
  (by: (a: number, b: number) => number) =>
  (a: Cost, b: Cost): Cost => ({
    objects: by(a.objects, b.objects),
    fields: by(a.fields, b.fields),
    weight: by(a.weight, b.weight),
  });

const sum = combine((a, b) => a + b);
const dearest = combine(Math.max);
