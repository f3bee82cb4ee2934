import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import { CreateOutfitDocument, ListOutfitsDocument } from '../generated/rest.ts';

/** What a list document must give under the alias `page`. */
export interface Page {
  readonly count: number;
  readonly next: number | null;
  readonly previous: number | null;
  readonly results: readonly unknown[];
}

/** What a create document must give under the alias `created`; null only with an error. */
export interface Created {
  /** Null when the input is wrong. */
  readonly record: unknown;
  /** What is wrong, by the names of the fields of the GraphQL input. */
  readonly errors: readonly { readonly field: string; readonly messages: readonly string[] }[];
}

/** A legacy path, and the stored GraphQL document that answers it. */
export interface Route {
  /** With the trailing slash; the path without it redirects here. */
  readonly path: string;
  readonly name: string;
  readonly description: string;
  /** The `Allow` header, in its order. */
  readonly allow: string;
  /**
   * Answers GET and HEAD. The query parameters `page` and any that a variable of the document is
   * named for are read from the request.
   */
  readonly list: TypedDocumentNode<{ page: Page }, Record<string, unknown>>;
  /**
   * Answers POST, where there is one. The fields of the body are the variables of the document; `$validate_only` is set
   * when one of them has already been found wrong.
   */
  readonly create?: TypedDocumentNode<{ created: Created | null }, Record<string, unknown>>;
}

export const routes: readonly Route[] = [
  {
    path: '/api/outfits/',
    name: 'Outfit List',
    description: 'The outfits that users have published, page by page.',
    allow: 'GET, POST, HEAD, OPTIONS',
    list: ListOutfitsDocument,
    create: CreateOutfitDocument,
  },
];
