// Documents by their hashes: a query is sent once as text, and then by its hash, by GET.
import { persistedExchange } from '@urql/exchange-persisted';
import { Client, cacheExchange, fetchExchange } from 'urql';

export function createUrqlWithHashes(url: string): Client {
  const hashes = persistedExchange({ preferGetForPersistedQueries: true });
  return new Client({
    url,
    exchanges: [cacheExchange, hashes, fetchExchange],
    preferGetMethod: false,
  });
}
