// The GraphQL request that is equivalent to a REST request: stored document, variables, link and curl command.
import { type GraphQLSchema, getOperationAST, print, separateOperations } from 'graphql';
import { RestError } from '../rest/errors.ts';
import type { Route } from '../rest/routes.ts';
import type { PathParameters, QueryParameters } from '../rest/url.ts';
import { createRouteReader } from '../rest/variables.ts';
import { shownJson } from './parts/text.tsx';

export interface GraphQLRequest {
  readonly query: string;
  readonly variables: Readonly<Record<string, unknown>>;
  readonly operationName: string | undefined;
}

/** Undefined for a path without a document. The function returns undefined for invalid parameters. */
export function createTranslator(schema: GraphQLSchema, route: Route) {
  const document = route.list ?? route.record;
  const operation = document && getOperationAST(document);
  if (!operation) return undefined;
  const operationName = operation.name?.value;
  // Without operations and fragments that it does not use.
  const own = separateOperations(document)[operationName ?? ''];
  if (!own) return undefined;
  const query = print(own);
  const readVariables = createRouteReader(schema, route, operation);

  return (parameters: QueryParameters, path: PathParameters): GraphQLRequest | undefined => {
    try {
      return { query, variables: readVariables(parameters, path), operationName };
    } catch (error) {
      if (error instanceof RestError) return undefined;
      throw error;
    }
  };
}

/** Path that opens the request in GraphiQL. */
export function toShareLink({ query, variables, operationName }: GraphQLRequest): string {
  const parameters = { query, variables: JSON.stringify(variables, null, 2) };
  return `/graphql?${new URLSearchParams({ ...parameters, ...(operationName ? { operationName } : {}) })}`;
}

export function toCurl(base: string, request: GraphQLRequest): string {
  return [
    `curl ${quote(`${base}/graphql`)}`,
    `--header ${quote('Content-Type: application/json')}`,
    `--data ${quote(shownJson(JSON.stringify(request)))}`,
  ].join(' \\\n  ');
}

export function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
