// Limits of a document: its size before parsing and validation, its cost before execution.
import {
  type ASTNode,
  type ASTVisitor,
  type DefinitionNode,
  type DocumentNode,
  GraphQLError,
  type GraphQLInputType,
  GraphQLInt,
  type GraphQLSchema,
  getNullableType,
  getVariableValues,
  isListType,
  Kind,
  type NamedTypeNode,
  NoSchemaIntrospectionCustomRule,
  type OperationDefinitionNode,
  parse,
  type SelectionSetNode,
  SingleFieldSubscriptionsRule,
  specifiedRules,
  typeFromAST,
  type ValidationContext,
  type ValidationRule,
  validate,
  valueFromAST,
  visit,
} from 'graphql';
import type { Config } from '../../config/config.ts';
import { HttpError } from '../../errors.ts';
import {
  invalidArgument,
  invalidDocument,
  type LimitCode,
  overLimit,
  subscriptionsNotSupported,
} from '../errors.ts';
import { type Cost, type Countable, type Counted, countCost, fragmentsOf } from './cost.ts';

/** More than a screen of an app needs. The worst document is refused or validated within 0.1 s. */
const limits = {
  tokens: 1000,
  /** Nested fields; the introspection query of tools has 15. */
  depth: 20,
  aliases: 50,
  /** Aliases of and within `__schema` and `__type`, which the cost analysis skips. Tools use none. */
  introspectionAliases: 2,
  directives: 50,
  /** Fields that repeat another of one selection set, with arguments or fields: validation compares each with each. */
  repeats: 20,
  /** Characters of a text in a document or its variables: twice those of the longest text that can be stored. */
  text: 20_000,
  /** Fields of one object in variables. */
  keys: 100,
  /** Per object of GRAPHQL_MAX_COST, since objects alone say little: an outfit has 18, aliases could add fifty. */
  fieldsPerObject: 8,
  /** By `weightOf` of outfits/lists/list.ts: three lists without an index, six searches, or twelve lists of a user. */
  filterWeight: 12,
  errors: 5,
};

export type LimitConfig = Pick<Config, 'graphqlIntrospection' | 'graphqlMaxCost' | 'pageSize'>;

export function parseWithin(text: string): DocumentNode {
  try {
    return parse(text, { maxTokens: limits.tokens });
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error;
    if (!error.message.endsWith('tokens. Parsing aborted.')) {
      throw invalidDocument(error, 'GRAPHQL_PARSE_FAILED');
    }
    // No GraphQLError: Yoga would answer it with 200 to clients of application/json.
    const message = `The document has more than the ${limits.tokens} tokens that are allowed.`;
    throw new HttpError(400, 'TOO_MANY_TOKENS', message);
  }
}

export function validateWithin(
  schema: GraphQLSchema,
  config: LimitConfig,
  document: DocumentNode,
  given: readonly ValidationRule[] = specifiedRules,
): readonly GraphQLError[] {
  const error = checkSize(document);
  if (error) return [error];
  if (!schema.getSubscriptionType() && document.definitions.some(isSubscription)) {
    return [subscriptionsNotSupported()];
  }
  const rules = given.map((rule) =>
    rule === SingleFieldSubscriptionsRule ? singleFieldSubscriptions : rule,
  );
  if (!config.graphqlIntrospection) rules.push(NoSchemaIntrospectionCustomRule);
  const errors = validate(schema, document, rules, errorOptionsOf(config));
  return errors.map((invalid) =>
    invalid.message === 'Validation aborted.'
      ? overLimit('TOO_MANY_REPEATS', 'The document repeats too many fields.')
      : invalidDocument(invalid, 'GRAPHQL_VALIDATION_FAILED'),
  );
}

/** The rule of graphql-js throws at a condition with a variable; the next edition of the specification forbids any. */
function singleFieldSubscriptions(context: ValidationContext): ASTVisitor {
  const { OperationDefinition: check } = SingleFieldSubscriptionsRule(context) as {
    OperationDefinition(node: OperationDefinitionNode): void;
  };
  return {
    OperationDefinition(node) {
      try {
        check(node);
      } catch (error) {
        if (!(error instanceof GraphQLError)) throw error;
        const message =
          'The root of a subscription takes no @skip and no @include with a variable.';
        context.reportError(new GraphQLError(message, { nodes: error.nodes ?? node }));
      }
    },
  };
}

const isSubscription = (definition: DefinitionNode) =>
  'operation' in definition && definition.operation === 'subscription';

/** Suggestions would disclose names of the schema while introspection is off. */
const errorOptionsOf = ({ graphqlIntrospection }: LimitConfig) => ({
  maxErrors: limits.errors,
  hideSuggestions: !graphqlIntrospection,
});

type Executable = Omit<Countable, 'variables'>;

interface Measured {
  readonly cost: Cost | undefined;
  /** Of variables that do not fit their types, or with which the operation is too costly. */
  readonly errors: readonly GraphQLError[];
}

/** The cost of an operation with these variables, and why it is refused. */
export function measure(
  schema: GraphQLSchema,
  config: LimitConfig,
  { document, node, text }: Executable,
  given: Record<string, unknown>,
): Measured {
  const { errors, coerced } = coerceVariables(schema, config, node, given);
  if (errors) return { cost: undefined, errors };
  const cost = countCost(schema, config, { document, node, text, variables: coerced });
  const error = findExcess(config, cost);
  return { cost, errors: error ? [error] : [] };
}

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
    return value.length > limits.text
      ? describeSize(value.length, 'text', 'characters')
      : undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const keys = Array.isArray(value) ? 0 : Object.keys(value).length;
  if (keys > limits.keys) return describeSize(keys, 'keys', 'fields in one object');
  for (const inner of Object.values(value)) {
    const excess = findExcessiveSize(inner);
    if (excess) return excess;
  }
  return undefined;
}

function describeSize(found: number, limit: keyof typeof limits, things: string): string {
  return `${found} ${things}, but at most ${limits[limit]} are allowed.`;
}

function findExcess(
  { graphqlMaxCost }: LimitConfig,
  { objects, fields, weight, conditions }: Counted,
): GraphQLError | undefined {
  const maxFields = limits.fieldsPerObject * graphqlMaxCost;
  return (
    compare('QUERY_TOO_COSTLY', objects, graphqlMaxCost, 'objects') ??
    compare('QUERY_TOO_COSTLY', fields, maxFields, 'fields') ??
    (weight > limits.filterWeight
      ? overLimit(
          'QUERY_TOO_COSTLY',
          `The filters of the document (${[...conditions].join(', ')}) weigh ${weight} for the database, but at most ${limits.filterWeight} is allowed: ask for fewer such lists at a time.`,
        )
      : undefined)
  );
}

/** Undefined: within the limits for some variables. Uses their defaults, or the cheapest values. */
export function findExcessOf(
  schema: GraphQLSchema,
  config: LimitConfig,
  operation: Executable,
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
  return findExcess(config, countCost(schema, config, { ...operation, variables }));
}

/** Limits before validation: counts everything in the document, used or not. */
function checkSize(document: DocumentNode): GraphQLError | undefined {
  let aliases = 0;
  let introspectionAliases = 0;
  let directives = 0;
  let repeats = 0;
  let longest = 0;
  let levelsOfIntrospection = 0;
  visit(document, {
    enter(node) {
      if (node.kind === Kind.DIRECTIVE) directives++;
      if (node.kind === Kind.SELECTION_SET) repeats = Math.max(repeats, countRepeats(node));
      if (node.kind === Kind.STRING) longest = Math.max(longest, node.value.length);
      if (node.kind === Kind.FIELD && node.alias) {
        aliases++;
        if (levelsOfIntrospection > 0 || node.name.value === '__schema') introspectionAliases++;
      }
      if (isIntrospection(node)) levelsOfIntrospection++;
    },
    leave(node) {
      if (isIntrospection(node)) levelsOfIntrospection--;
    },
  });
  const depth = measureDepth(document);
  const { introspectionAliases: maxAliases } = limits;
  return (
    compare('QUERY_TOO_DEEP', depth, limits.depth, 'levels of fields') ??
    compare('TOO_MANY_ALIASES', aliases, limits.aliases, 'aliases') ??
    compare('TOO_MANY_ALIASES', introspectionAliases, maxAliases, 'aliases in introspection') ??
    compare('TOO_MANY_DIRECTIVES', directives, limits.directives, 'directives') ??
    compare('TOO_MANY_REPEATS', repeats, limits.repeats, 'repeated fields in one selection set') ??
    compare('VALUE_TOO_LARGE', longest, limits.text, 'characters in one text')
  );
}

function countRepeats({ selections }: SelectionSetNode): number {
  const names = selections.flatMap((selection) =>
    selection.kind === Kind.FIELD && (selection.selectionSet || selection.arguments?.length)
      ? [(selection.alias ?? selection.name).value]
      : [],
  );
  return names.length - new Set(names).size;
}

function isIntrospection(node: ASTNode): boolean {
  if (node.kind === Kind.FIELD) return ['__schema', '__type'].includes(node.name.value);
  return node.kind === Kind.FRAGMENT_DEFINITION && node.typeCondition.name.value.startsWith('__');
}

function measureDepth(document: DocumentNode): number {
  const fragments = fragmentsOf(document);
  const depths = new Map<SelectionSetNode, number>();
  const depthOf = (set: SelectionSetNode | undefined): number => {
    if (!set) return 0;
    const known = depths.get(set);
    if (known !== undefined) return known;
    // Terminates on a cycle, which validation reports.
    depths.set(set, 0);
    const inner = set.selections.map((selection) =>
      selection.kind === Kind.FRAGMENT_SPREAD
        ? depthOf(fragments[selection.name.value]?.selectionSet)
        : depthOf(selection.selectionSet) + (selection.kind === Kind.FIELD ? 1 : 0),
    );
    depths.set(set, Math.max(0, ...inner));
    return depths.get(set) ?? 0;
  };
  const depthsOf = document.definitions.map((one) =>
    depthOf('selectionSet' in one ? one.selectionSet : undefined),
  );
  return Math.max(0, ...depthsOf);
}

function compare(
  code: LimitCode,
  found: number,
  max: number,
  things: string,
): GraphQLError | undefined {
  if (found <= max) return undefined;
  const verb = code === 'QUERY_TOO_COSTLY' ? 'can give' : 'has';
  return overLimit(
    code,
    `The document ${verb} ${Number.isFinite(found) ? found : 'countless'} ${things}, but at most ${max} are allowed.`,
  );
}
