// How much a document may have and cost: checked before it is parsed, validated and executed.
import {
  type DocumentNode,
  type GraphQLError,
  type GraphQLInputType,
  GraphQLInt,
  type GraphQLSchema,
  getNullableType,
  getVariableValues,
  isListType,
  type NamedTypeNode,
  NoSchemaIntrospectionCustomRule,
  type OperationDefinitionNode,
  specifiedRules,
  typeFromAST,
  validate,
  valueFromAST,
} from 'graphql';
import type { Plugin } from 'graphql-yoga';
import type { Config } from '../config.ts';
import { type Cost, countCost } from './cost.ts';
import { countOccurrences, countTokens, measureDepth } from './document-size.ts';
import { invalidVariables, type LimitCode, overLimit } from './errors.ts';

/**
 * How much of each a document may have: far more than a screen of an app needs, and so little that
 * the worst document is refused or validated within a tenth of a second. What its lists may give
 * is limited by GRAPHQL_MAX_COST, and the lists in lists of introspection by graphql itself.
 */
const limits = {
  tokens: 1000,
  /** Fields in fields; the introspection query of tools has 15. */
  depth: 20,
  aliases: 50,
  /** Aliases in introspection, which has no cost. Tools use none. */
  introspectionAliases: 2,
  directives: 50,
  /** Fields of one name in one pair of braces, each compared with each. No tool writes any. */
  repeats: 20,
  /**
   * Fields for each object of GRAPHQL_MAX_COST: an outfit and its user have 23. Aliases could give an
   * object fifty more, and nothing else is answered while the fields of a list are.
   */
  fieldsPerObject: 12,
  /**
   * What the filters of a document may weigh for the database (`weightOf` of outfits/list.ts): three lists
   * that no index serves, six searches, or twelve of one user or hashtag.
   */
  filterWeight: 12,
  /** Errors that are told of one document, or of its variables. */
  errors: 5,
};

export type LimitConfig = Pick<Config, 'graphqlIntrospection' | 'graphqlMaxCost' | 'pageSize'>;

/** Finds what forbids to execute an operation with these variables. Empty: nothing does. */
export type CheckVariables = (
  document: DocumentNode,
  operation: OperationDefinitionNode,
  variables: Record<string, unknown>,
) => readonly GraphQLError[];

/** What depends on the variables of a request, and so is asked each time before a read. */
export function createVariableCheck(schema: GraphQLSchema, config: LimitConfig): CheckVariables {
  const options = { maxErrors: limits.errors, hideSuggestions: !config.graphqlIntrospection };
  return (document, operation, given) => {
    const definitions = operation.variableDefinitions ?? [];
    const { errors, coerced: variables } = getVariableValues(schema, definitions, given, options);
    if (errors) return errors.map(invalidVariables);
    const error = findExcess(countCost(schema, document, operation, { variables, config }), config);
    return error ? [error] : [];
  };
}

function findExcess(
  { objects, fields, weight, conditions }: Cost,
  { graphqlMaxCost }: LimitConfig,
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

/**
 * What forbids an operation whatever its variables are: those with a default count with it, others with what
 * makes it cheapest. Undefined: some request of it may be answered.
 */
export function findUnanswerable(
  schema: GraphQLSchema,
  config: LimitConfig,
  { document, node }: { readonly document: DocumentNode; readonly node: OperationDefinitionNode },
): GraphQLError | undefined {
  const variables: Record<string, unknown> = {};
  for (const { variable, defaultValue, type } of node.variableDefinitions ?? []) {
    const inputType = typeFromAST(schema, type as NamedTypeNode) as GraphQLInputType;
    const least = getNullableType(inputType);
    const name = variable.name.value;
    if (defaultValue) variables[name] = valueFromAST(defaultValue, inputType);
    else if (least === GraphQLInt) variables[name] = 1;
    else if (isListType(least)) variables[name] = [];
  }
  return findExcess(countCost(schema, document, node, { variables, config }), config);
}

/** What GRAPHQL_MAX_COST limits. Undefined: the variables do not fit the operation. */
export function countObjects(
  schema: GraphQLSchema,
  config: LimitConfig,
  { document, node }: { readonly document: DocumentNode; readonly node: OperationDefinitionNode },
  given: Record<string, unknown>,
): number | undefined {
  const { coerced } = getVariableValues(schema, node.variableDefinitions ?? [], given);
  return coerced && countCost(schema, document, node, { variables: coerced, config }).objects;
}

/** Keeps documents that nobody has seen yet within the limits. */
export function useLimits(config: Pick<LimitConfig, 'graphqlIntrospection'>): Plugin {
  const introspection = config.graphqlIntrospection;
  const rules = [...specifiedRules, ...(introspection ? [] : [NoSchemaIntrospectionCustomRule])];
  // Suggestions would tell the names that introspection may not tell.
  const options = { maxErrors: limits.errors, hideSuggestions: !introspection };
  return {
    onParse({ params: { source } }) {
      const tokens = countTokens(String(source), limits.tokens);
      if (tokens <= limits.tokens) return;
      throw overLimit(
        'TOO_MANY_TOKENS',
        `The document has more than the ${limits.tokens} tokens that are allowed.`,
      );
    },
    onValidate({ params, setResult }) {
      const document: DocumentNode = params.documentAST;
      const error = checkSize(document);
      setResult(error ? [error] : validate(params.schema, document, rules, options));
    },
  };
}

/** What forbids even to validate a document. */
function checkSize(document: DocumentNode): GraphQLError | undefined {
  const { aliases, introspectionAliases, directives, repeats } = countOccurrences(document);
  return (
    compare('QUERY_TOO_DEEP', measureDepth(document), limits.depth, 'levels of fields') ??
    compare('TOO_MANY_ALIASES', aliases, limits.aliases, 'aliases') ??
    compare(
      'TOO_MANY_ALIASES',
      introspectionAliases,
      limits.introspectionAliases,
      'aliases in introspection',
    ) ??
    compare('TOO_MANY_DIRECTIVES', directives, limits.directives, 'directives') ??
    compare('TOO_MANY_REPEATS', repeats, limits.repeats, 'repeated fields')
  );
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
    `The document ${verb} ${found} ${things}, but at most ${max} are allowed.`,
  );
}
