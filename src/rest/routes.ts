// A REST path, and what its documents declare: found out once, when the service starts.
import {
  type DocumentNode,
  type GraphQLSchema,
  getOperationAST,
  type OperationDefinitionNode,
} from 'graphql';
import type { FoundInput } from './describe.ts';
import { readEnvelope, type Stored, type Written } from './documents.ts';
import { createVariableReader, readPageParameters } from './variables.ts';

/** Result of a create document under the alias `created`; null only with an error. */
export interface Created {
  readonly record: unknown;
  /** Validation errors, by the names of the GraphQL input fields. */
  readonly errors: readonly {
    readonly field: string;
    readonly code: string;
    readonly messages: readonly string[];
  }[];
}

/** POST: variables are the fields of the body; `$validate_only` is set when a field is already invalid. */
export interface Create {
  readonly document: DocumentNode;
  readonly fields: readonly FoundInput[];
}

/** Variables of its document are parameters of the query string or the path. */
export interface Route extends Stored {
  readonly name: string;
  readonly description: string;
  readonly operation: OperationDefinitionNode;
  /** Names in the query string: the variables without those of the path; the page in place of `last`. */
  readonly parameters: ReadonlySet<string>;
  readonly create?: Create | undefined;
}

/** @throws when the document does not fit the schema, or has a variable of an unsupported type */
export function createRoute(
  schema: GraphQLSchema,
  read: Pick<Route, 'description' | 'document' | 'name' | 'path'>,
  list?: Written,
): Route {
  const { document, path } = read;
  const operation = getOperationAST(document);
  if (!operation) throw new Error('A stored document has one operation.');
  const envelope = list && readEnvelope(schema, document, list);
  const pages = readPageParameters(operation, list !== undefined);
  const names = operation.variableDefinitions?.map(({ variable }) => variable.name.value);
  const parameters = new Set(names);
  if (pages.page !== undefined) parameters.add(pages.page).delete(pages.last);
  for (const [, name = ''] of path.matchAll(/:(\w+)/g)) {
    if (pages.page !== undefined && (name === pages.page || name === pages.last)) {
      throw new Error(`$${name} says which page, which is a parameter of the query string only.`);
    }
    parameters.delete(name);
  }
  const readVariables = createVariableReader(schema, operation, pages);
  return { ...read, operation, envelope, pages, readVariables, parameters };
}

export function allowOf({ create }: Pick<Route, 'create'>): string {
  return create ? 'GET, POST, HEAD, OPTIONS' : 'GET, HEAD, OPTIONS';
}
