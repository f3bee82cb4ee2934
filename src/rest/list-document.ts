import {
  type DocumentNode,
  type GraphQLEnumType,
  type GraphQLSchema,
  getNamedType,
  isEnumType,
  Kind,
  type OperationDefinitionNode,
  typeFromAST,
  validate,
} from 'graphql';
import { compileQuery, isCompiledQuery } from 'graphql-jit';
import type { Context } from '../graphql/context.ts';
import { invalidChoice, invalidPage } from './errors.ts';
import { parsePageNumber } from './page-number.ts';
import { type QueryParameters, readParameter } from './query-string.ts';
import type { Page, Route } from './routes.ts';

type Variables = Record<string, unknown>;

/** A stored list document made ready. */
export interface PreparedList {
  /**
   * What the parameters of a request ask for.
   * @throws RestError 400 for a choice that there is not, 404 for a page that there cannot be
   */
  readVariables(parameters: QueryParameters): Variables;
  /** @throws RestError 404 for a page past the end */
  readPage(variables: Variables, context: Context): Promise<Page>;
}

/**
 * Checks and compiles a stored list document, once.
 * @throws when the document does not fit the schema
 */
export function prepareList(schema: GraphQLSchema, document: Route['list']): PreparedList {
  const [invalid] = validate(schema, document);
  if (invalid) throw invalid;
  const compiled = compileQuery(schema, document);
  if (!isCompiledQuery(compiled)) throw new Error(JSON.stringify(compiled.errors));
  const choices = choiceVariables(schema, document);

  return {
    readVariables(parameters) {
      const variables: Variables = {};
      for (const { name, type } of choices) {
        variables[name] = readChoice(type, name, readParameter(parameters, name));
      }
      const page = parsePageNumber(readParameter(parameters, 'page'));
      if (page === undefined) throw invalidPage();
      return Object.assign(variables, page === 'last' ? { last: true } : { page });
    },
    async readPage(variables, context) {
      const { data, errors } = await compiled.query(undefined, context, variables);
      const [error] = errors ?? [];
      // The compiled query leaves extensions out when there are none.
      if (error?.extensions?.['code'] === 'PAGE_NOT_FOUND') throw invalidPage();
      if (error) throw error;
      return (data as { page: Page }).page;
    },
  };
}

/** The variables that take one of an enum's values: query parameters with a choice. */
function choiceVariables(schema: GraphQLSchema, document: DocumentNode) {
  const operation = document.definitions.find(
    (definition): definition is OperationDefinitionNode =>
      definition.kind === Kind.OPERATION_DEFINITION,
  );
  return (operation?.variableDefinitions ?? []).flatMap(({ variable, type: typeNode }) => {
    const type = getNamedType(typeFromAST(schema, typeNode as never));
    return isEnumType(type) ? [{ name: variable.name.value, type }] : [];
  });
}

/** An enum's inner values are the spellings on the wire. */
function readChoice(
  type: GraphQLEnumType,
  name: string,
  value: string | undefined,
): string | undefined {
  if (value === undefined || value === '') return undefined;
  const choices = type.getValues();
  const choice = choices.find((candidate) => candidate.value === value);
  if (choice) return choice.name;
  throw invalidChoice(
    name,
    value,
    choices.map((candidate) => String(candidate.value)),
  );
}
