// Documents by their hashes: of any query, or of those only that the gateway knows.
import { ApolloClient, HttpLink, InMemoryCache } from '@apollo/client';
import { PersistedQueryLink } from '@apollo/client/link/persisted-queries';
import type { DocumentNode } from 'graphql';

/** A query is sent once as text, and then by its hash, by GET, which browsers and proxies may keep. */
export function createApolloWithHashes(uri: string): ApolloClient {
  const hashes = new PersistedQueryLink({ sha256, useGETForHashedQueries: true });
  return new ApolloClient({
    link: hashes.concat(new HttpLink({ uri })),
    cache: new InMemoryCache(),
  });
}

async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** With the hashes of `persistedDocuments: true`, whose file the gateway reads as TRUSTED_DOCUMENTS. */
export function createApolloWithTrustedDocuments(uri: string): ApolloClient {
  const hashes = new PersistedQueryLink({
    generateHash: (document: DocumentNode & { __meta__?: { hash?: string } }) =>
      document.__meta__?.hash ?? '',
  });
  return new ApolloClient({
    link: hashes.concat(new HttpLink({ uri })),
    cache: new InMemoryCache(),
  });
}
