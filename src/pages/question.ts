// The question that a REST request asks, in GraphQL: the stored document, and its variables.
import { type GraphQLSchema, getOperationAST, print, separateOperations } from 'graphql';
import { RestError } from '../rest/errors.ts';
import type { Route } from '../rest/routes.ts';
import type { QueryParameters } from '../rest/url.ts';
import { createListReader, createVariableReader, type PathParameters } from '../rest/variables.ts';
import { shownJson } from './parts/text.tsx';

export interface Question {
  readonly query: string;
  readonly variables: Readonly<Record<string, unknown>>;
  readonly operationName: string | undefined;
}

/** Undefined: the path asks nothing; as the result, for parameters that do not, such as a wrong ordering. */
export function createQuestion(schema: GraphQLSchema, route: Route) {
  const document = route.list ?? route.record;
  const operation = document && getOperationAST(document);
  if (!operation) return undefined;
  const operationName = operation.name?.value;
  // Without the operations and fragments of others.
  const own = separateOperations(document)[operationName ?? ''];
  if (!own) return undefined;
  const query = print(own);
  const readVariables = route.list
    ? createListReader(schema, operation)
    : createVariableReader(schema, operation, []);

  return (parameters: QueryParameters, path: PathParameters): Question | undefined => {
    try {
      return { query, variables: readVariables(parameters, path), operationName };
    } catch (error) {
      if (error instanceof RestError) return undefined;
      throw error;
    }
  };
}

/** The part of an address that opens a question in GraphiQL. */
export function toShareLink({ query, variables, operationName }: Question): string {
  const parameters = { query, variables: JSON.stringify(variables, null, 2) };
  return `/graphql?${new URLSearchParams({ ...parameters, ...(operationName ? { operationName } : {}) })}`;
}

export function toCurl(base: string, question: Question): string {
  return [
    `curl ${quote(`${base}/graphql`)}`,
    `--header ${quote('Content-Type: application/json')}`,
    `--data ${quote(shownJson(JSON.stringify(question)))}`,
  ].join(' \\\n  ');
}

export function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
