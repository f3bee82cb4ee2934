// The REST paths as a table: a path is data.
import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import {
  CreateOutfitDocument,
  ListOutfitsDocument,
  ReadOutfitDocument,
} from '../generated/rest.ts';

/** Result of a list document under the alias `page`; null only with an error. */
export interface Page {
  readonly count: number;
  readonly next: number | null;
  readonly previous: number | null;
  readonly results: readonly unknown[];
}

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

/** `never`: the variables of each document are its own. */
type Document<Data> = TypedDocumentNode<Data, never>;

/** A REST path and its stored documents. Their variables are parameters of the query string or the path. */
export interface Route {
  /** With a trailing slash or without; the other one redirects. `:name` is a parameter. */
  readonly path: string;
  readonly name: string;
  readonly description: string;
  /** Answers GET and HEAD with a page; `page` and `last` are read from the parameter `page`. */
  readonly list?: Document<{ page: Page | null }>;
  readonly record?: Document<{ record: unknown }>;
  /** POST: variables are the fields of the body; `$validate_only` is set when a field is already invalid. */
  readonly create?: Document<{ created: Created | null }>;
}

export function allowOf({ create }: Route): string {
  return create ? 'GET, POST, HEAD, OPTIONS' : 'GET, HEAD, OPTIONS';
}

export const routes: readonly Route[] = [
  {
    path: '/api/outfits/',
    name: 'Outfit List',
    description: 'The outfits that users have published, page by page.',
    list: ListOutfitsDocument,
    create: CreateOutfitDocument,
  },
  {
    path: '/api/outfits/:id/',
    name: 'Outfit',
    description: 'One outfit, as the listing has it.',
    record: ReadOutfitDocument,
  },
];
