// A stored document that gives a page of a list.
import type { ExecutionResult, GraphQLSchema, OperationDefinitionNode } from 'graphql';
import type { Engine, Operation } from '../graphql/engine.ts';
import { dataOf, invalidPage } from './errors.ts';
import { parsePageNumber } from './page-number.ts';
import { readParameter } from './query-string.ts';
import type { Page, Route } from './routes.ts';
import { createVariableReader, type ReadVariables } from './variables.ts';

export interface ListDocument {
  readonly operation: Operation;
  /** @throws RestError 400 for a parameter that cannot be read, 404 for a page that cannot be */
  readonly readVariables: ReadVariables;
}

/** @throws when the document does not fit the schema, or has a variable that cannot be read */
export function storeList(
  engine: Engine,
  schema: GraphQLSchema,
  document: NonNullable<Route['list']>,
): ListDocument {
  const operation = engine.store(document);
  return { operation, readVariables: createListReader(schema, operation.node) };
}

/** `page` has rules of its own: they give 404, and `last` is no number. */
export function createListReader(
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
): ReadVariables {
  const readOthers = createVariableReader(schema, operation, ['page', 'last']);
  return (parameters) => {
    const variables = readOthers(parameters);
    const page = parsePageNumber(readParameter(parameters, 'page'));
    if (page === undefined) throw invalidPage();
    return Object.assign(variables, page === 'last' ? { last: true } : { page });
  };
}

/** @throws RestError 404 for a page past the end, 400 for what the schema refuses */
export function pageOf(result: ExecutionResult): Page {
  return dataOf<{ page: Page }>(result).page;
}
