import {
  type DocumentNode,
  execute,
  type GraphQLEnumType,
  type GraphQLSchema,
  getNamedType,
  isEnumType,
  Kind,
  type OperationDefinitionNode,
  typeFromAST,
  validate,
} from 'graphql';
import type { Context } from '../graphql/context.ts';
import { invalidChoice, invalidPage } from './errors.ts';
import { parsePageNumber } from './page-number.ts';
import { type QueryParameters, readParameter } from './query-string.ts';
import type { Page, Route } from './routes.ts';

type Variables = Record<string, unknown>;

/** A stored document made ready: from the parameters of a request to a page. */
export type ListReader = (parameters: QueryParameters, context: Context) => Promise<Page>;

/**
 * Checks a stored list document against the schema, once.
 * @throws when the document does not fit the schema
 */
export function prepareList(schema: GraphQLSchema, document: Route['list']): ListReader {
  const [invalid] = validate(schema, document);
  if (invalid) throw invalid;
  const choices = choiceVariables(schema, document);

  return async (parameters, context) => {
    const variableValues: Variables = {};
    for (const { name, type } of choices) {
      variableValues[name] = readChoice(type, name, readParameter(parameters, name));
    }
    const page = parsePageNumber(readParameter(parameters, 'page'));
    if (page === undefined) throw invalidPage();
    Object.assign(variableValues, page === 'last' ? { last: true } : { page });

    const { data, errors } = await execute({
      schema,
      document,
      variableValues,
      contextValue: context,
    });
    const [error] = errors ?? [];
    if (error) throw error.extensions['code'] === 'PAGE_NOT_FOUND' ? invalidPage() : error;
    return (data as { page: Page }).page;
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
