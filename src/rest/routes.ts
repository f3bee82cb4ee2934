import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import { ListOutfitsDocument } from '../generated/rest.ts';

/** What a list document must give under the alias `page`. */
export interface Page {
  readonly count: number;
  readonly next: number | null;
  readonly previous: number | null;
  readonly results: readonly unknown[];
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
}

export const routes: readonly Route[] = [
  {
    path: '/api/outfits/',
    name: 'Outfit List',
    description: 'The outfits that users have published, page by page.',
    allow: 'GET, POST, HEAD, OPTIONS',
    list: ListOutfitsDocument,
  },
];
