import {
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  getVariableValues,
  NoSchemaIntrospectionCustomRule,
  parse,
  specifiedRules,
  validate,
} from 'graphql';
import type { Plugin } from 'graphql-yoga';
import type { Config } from '../config.ts';
import type { Context } from './context.ts';
import { createCounter } from './cost.ts';
import { countOccurrences, countTokens, measureDepth } from './document-size.ts';
import {
  invalidVariables,
  type LimitCode,
  overLimit,
  subscriptionsNotSupported,
} from './errors.ts';

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
  /** Errors that are told of one document, or of its variables. */
  errors: 5,
};

type LimitConfig = Pick<Config, 'graphqlIntrospection' | 'graphqlMaxCost'>;

/** A valid document, and which of its operations is meant. */
export interface Query {
  readonly document: DocumentNode;
  readonly operationName: string | null | undefined;
}

/** Finds what forbids to execute a query with these variables. Empty: nothing does. */
export type FindFaults = (
  query: Query,
  variables: Record<string, unknown>,
  context: Context,
) => readonly GraphQLError[];

/**
 * Cost depends on variables, so it cannot be a rule of validation: yoga and the compiled queries
 * ask here before they execute. The plugin's own check would run inside of execution, once for
 * each field of Query, where the answer can no longer be a 400.
 */
export function createFaultFinder(schema: GraphQLSchema, config: LimitConfig): FindFaults {
  const options = { maxErrors: limits.errors, hideSuggestions: !config.graphqlIntrospection };
  const countObjects = createCounter(schema);
  return ({ document, operationName }, variables, context) => {
    const operation = getOperationAST(document, operationName);
    // There is no such operation: execution says so.
    if (!operation) return [];
    const definitions = operation.variableDefinitions ?? [];
    const { errors } = getVariableValues(schema, definitions, variables, options);
    if (errors) return errors.map(invalidVariables);
    const objects = countObjects(document, operation, variables, context);
    const error = compare('QUERY_TOO_COSTLY', objects, config.graphqlMaxCost, 'objects');
    return error ? [error] : [];
  };
}

/** Keeps documents within the limits: before they are parsed, validated and executed. */
export function useLimits(findFaults: FindFaults, config: LimitConfig): Plugin<Context> {
  const introspection = config.graphqlIntrospection;
  const rules = [...specifiedRules, ...(introspection ? [] : [NoSchemaIntrospectionCustomRule])];
  // Suggestions would tell the names that introspection may not tell.
  const options = { maxErrors: limits.errors, hideSuggestions: !introspection };
  return {
    onParams({ params: { query = '', operationName }, setResult }) {
      const error = findFault(query, operationName);
      if (error) setResult({ errors: [error] });
    },
    onValidate({ params: { schema, documentAST }, setResult }) {
      setResult(validate(schema as GraphQLSchema, documentAST as DocumentNode, rules, options));
    },
    onExecute({ args, setResultAndStopExecution }) {
      const errors = findFaults(
        { document: args.document, operationName: args.operationName },
        args.variableValues ?? {},
        args.contextValue,
      );
      if (errors.length > 0) setResultAndStopExecution({ errors });
    },
  };
}

/** What forbids even to validate a document. Undefined also for one that cannot be parsed. */
function findFault(text: string, operationName: string | undefined): GraphQLError | undefined {
  if (countTokens(text, limits.tokens) > limits.tokens) {
    return overLimit(
      'TOO_MANY_TOKENS',
      `The document has more than the ${limits.tokens} tokens that are allowed.`,
    );
  }
  const document = parseIfPossible(text);
  if (!document) return undefined;
  const operation = getOperationAST(document, operationName);
  if (operation?.operation === 'subscription') return subscriptionsNotSupported();
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

function parseIfPossible(text: string): DocumentNode | undefined {
  try {
    return parse(text);
  } catch (error) {
    // Yoga stumbles over it too, and reports it.
    if (error instanceof GraphQLError) return undefined;
    throw error;
  }
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
