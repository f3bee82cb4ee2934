// Parses and validates documents within limits. Those of this service itself have been validated at start.
import {
  type ASTNode,
  type ASTVisitor,
  type DefinitionNode,
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  Kind,
  NoSchemaIntrospectionCustomRule,
  type OperationDefinitionNode,
  parse,
  type SelectionSetNode,
  SingleFieldSubscriptionsRule,
  specifiedRules,
  type ValidationContext,
  type ValidationRule,
  validate,
  visit,
} from 'graphql';
import type { Config } from '../../config/config.ts';
import { HttpError } from '../../errors.ts';
import { exceeded, invalidDocument, overLimit, subscriptionsNotSupported } from '../errors.ts';
import { measureSelections } from '../operations.ts';
import type { OperationPlugin } from '../run.ts';

/** More than a screen of an app needs. The worst document is refused or validated within 0.1 s. */
const limits = {
  tokens: 1000,
  /** Nested fields; the introspection query of tools has 15. */
  depth: 20,
  aliases: 50,
  /** Characters of one, which is repeated for each object. */
  alias: 100,
  /** Aliases of and within `__schema` and `__type`, which the cost analysis skips. Tools use none. */
  introspectionAliases: 2,
  directives: 50,
  /** Fields that repeat another of one selection set, with arguments or fields: validation compares each with each. */
  repeats: 20,
  errors: 5,
};

/** Characters of a text in a document or its variables: twice those of the longest text that can be stored. */
export const maxText = 20_000;

export type DocumentConfig = Pick<Config, 'graphqlIntrospection'>;

export function useDocumentLimits(schema: GraphQLSchema, config: DocumentConfig): OperationPlugin {
  return {
    onParse({ setParseFn }) {
      setParseFn(parseWithin);
    },
    onValidate({ setValidationFn }) {
      // With the rules that other plugins add.
      setValidationFn((_schema: GraphQLSchema, document: DocumentNode, rules?: ValidationRule[]) =>
        validateWithin(schema, config, document, rules),
      );
    },
  };
}

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
  config: DocumentConfig,
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
export const errorOptionsOf = ({ graphqlIntrospection }: DocumentConfig) => ({
  maxErrors: limits.errors,
  hideSuggestions: !graphqlIntrospection,
});

/** Limits before validation: counts everything in the document, used or not. */
function checkSize(document: DocumentNode): GraphQLError | undefined {
  let aliases = 0;
  let longestAlias = 0;
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
        longestAlias = Math.max(longestAlias, node.alias.value.length);
        if (levelsOfIntrospection > 0 || node.name.value === '__schema') introspectionAliases++;
      }
      if (isIntrospection(node)) levelsOfIntrospection++;
    },
    leave(node) {
      if (isIntrospection(node)) levelsOfIntrospection--;
    },
  });
  const depthOf = measureSelections(document, (sizes) => Math.max(0, ...sizes));
  const depths = document.definitions.map((one) =>
    depthOf('selectionSet' in one ? one.selectionSet : undefined),
  );
  const depth = Math.max(0, ...depths);
  const { introspectionAliases: maxAliases } = limits;
  return (
    exceeded('QUERY_TOO_DEEP', depth, limits.depth, 'levels of fields') ??
    exceeded('TOO_MANY_ALIASES', aliases, limits.aliases, 'aliases') ??
    exceeded('TOO_MANY_ALIASES', introspectionAliases, maxAliases, 'aliases in introspection') ??
    exceeded('TOO_MANY_DIRECTIVES', directives, limits.directives, 'directives') ??
    exceeded('TOO_MANY_REPEATS', repeats, limits.repeats, 'repeated fields in one selection set') ??
    exceeded('VALUE_TOO_LARGE', longest, maxText, 'characters in one text') ??
    exceeded('VALUE_TOO_LARGE', longestAlias, limits.alias, 'characters in one alias')
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
