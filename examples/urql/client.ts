import { type Cache, cacheExchange, type Variables } from '@urql/exchange-graphcache';
import { relayPagination } from '@urql/exchange-graphcache/extras';
import { createClient as createSse } from 'graphql-sse';
import { Client, fetchExchange, subscriptionExchange } from 'urql';
import { cardFragment } from '../shared/documents.ts';
import { authorization, endpoint } from '../shared/gateway.ts';
import schema from '../shared/gql/introspection.json' with { type: 'json' };

export function createUrql(url = endpoint): Client {
  // Reconnects, which `fetchSubscriptions: true` does not.
  const live = createSse({
    url,
    headers: authorization,
    retryAttempts: Number.POSITIVE_INFINITY,
  });
  return new Client({
    url,
    // Always POST, so that a page of the list is never one that the browser has kept.
    preferGetMethod: false,
    fetchOptions: () => ({ headers: authorization() }),
    exchanges: [
      createCache(),
      fetchExchange,
      subscriptionExchange({
        forwardSubscription: ({ query = '', variables }) => ({
          subscribe: (sink) => ({ unsubscribe: live.subscribe({ query, variables }, sink) }),
        }),
      }),
    ],
  });
}

function createCache() {
  // Shown at once, replaced by the answer, and taken back if there is an error.
  const expect = (liked: boolean) => (args: Variables, cache: Cache) => {
    const outfit = cache.readFragment(cardFragment, {
      __typename: 'Outfit',
      id: String(args['id']),
    });
    return {
      __typename: 'LikePayload',
      outfit: { ...outfit, viewerHasLiked: liked, likes: (outfit?.likes ?? 0) + (liked ? 1 : -1) },
    };
  };
  return cacheExchange({
    schema,
    // What has no id belongs to the field that it came with.
    keys: { InputError: () => null, OutfitPage: () => null, Viewer: () => null },
    resolvers: {
      Query: {
        outfitConnection: relayPagination(),
        // An outfit that a list has brought is not asked for again.
        outfit: (_, args, cache) => {
          const known = cache.resolve('Query', 'outfit', args);
          return known === undefined && args['id']
            ? { __typename: 'Outfit', id: String(args['id']) }
            : known;
        },
      },
    },
    optimistic: { likeOutfit: expect(true), unlikeOutfit: expect(false) },
    updates: {
      Mutation: {
        // The list is read again, as far as it is shown.
        createOutfit: (_result, _args, cache) => {
          for (const { fieldKey, fieldName } of cache.inspectFields('Query')) {
            if (fieldName === 'outfitConnection') cache.invalidate('Query', fieldKey);
          }
        },
        deleteOutfit: (_result, { id }, cache) => {
          cache.invalidate({ __typename: 'Outfit', id: String(id) });
        },
      },
    },
  });
}
