// The table of the legacy paths.
import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import { CreateOutfitDocument, ListOutfitsDocument } from '../generated/rest.ts';

export interface Page {
  readonly count: number;
  readonly next: number | null;
  readonly previous: number | null;
  readonly results: readonly unknown[];
}

/** What a create document must give under the alias `created`; null only with an error. */
export interface Created {
  readonly record: unknown;
  /** What is wrong, by the names of the fields of the GraphQL input. */
  readonly errors: readonly { readonly field: string; readonly messages: readonly string[] }[];
}

/** `never`: the variables of each document are its own. */
type Document<Data> = TypedDocumentNode<Data, never>;

/** A legacy path, and the stored documents that answer it. Their variables are parameters of the query or path. */
export interface Route {
  /** With the trailing slash; the path without it redirects here. `:name` is a parameter. */
  readonly path: string;
  readonly name: string;
  readonly description: string;
  /** Answers GET and HEAD with a page; `page` and `last` are read from the parameter `page`. */
  readonly list?: Document<{ page: Page }>;
  readonly record?: Document<{ record: unknown }>;
  /** POST: variables are the fields of the body; `$validate_only` is set when one has been found wrong already. */
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
];
