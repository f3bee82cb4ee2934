// A REST path: data, read from a file of GraphQL operations.
import type { ConstValueNode, DocumentNode } from 'graphql';

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

/** A REST path and its stored documents. Their variables are parameters of the query string or the path. */
export interface Route {
  /** With a trailing slash or without; the other one redirects. `:name` is a parameter. */
  readonly path: string;
  readonly name: string;
  readonly description: string;
  /** Answers GET and HEAD with a page, which has the alias `page`. */
  readonly list?: DocumentNode;
  /** How a page is written, with fields of the page as names; undefined: an object of them in their order. */
  readonly envelope?: ConstValueNode;
  /** Headers with fields of the page as values, such as `X-Total-Count: count` or `Link: next previous`. */
  readonly headers?: readonly string[];
  /** Answers GET and HEAD with a record, which has the alias `record`. */
  readonly record?: DocumentNode;
  /** POST: variables are the fields of the body; `$validate_only` is set when a field is already invalid. */
  readonly create?: DocumentNode;
}

export function allowOf({ create }: Route): string {
  return create ? 'GET, POST, HEAD, OPTIONS' : 'GET, HEAD, OPTIONS';
}
