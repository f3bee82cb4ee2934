import { ApolloClient, ApolloLink, HttpLink, InMemoryCache } from '@apollo/client';
import { SetContextLink } from '@apollo/client/link/context';
import { GraphQLWsLink } from '@apollo/client/link/subscriptions';
import { relayStylePagination } from '@apollo/client/utilities';
import { createClient } from 'graphql-ws';
import { authorization, endpoint } from '../shared/gateway.ts';

export function createApollo(uri = endpoint): ApolloClient {
  // Connects again when the connection is lost, within 30 seconds, with the token of that moment.
  const live = createClient({
    url: uri.replace(/^http/, 'ws'),
    connectionParams: authorization,
    shouldRetry: () => true,
    retryAttempts: Number.POSITIVE_INFINITY,
    retryWait: (retries) =>
      new Promise((resolve) => {
        setTimeout(resolve, Math.random() * Math.min(1000 * 2 ** retries, 30_000));
      }),
  });
  return new ApolloClient({
    link: ApolloLink.split(
      ({ operationType }) => operationType === 'subscription',
      new GraphQLWsLink(live),
      ApolloLink.from([
        new SetContextLink(({ headers }) => ({ headers: { ...headers, ...authorization() } })),
        new HttpLink({ uri }),
      ]),
    ),
    cache: createCache(),
  });
}

function createCache(): InMemoryCache {
  return new InMemoryCache({
    typePolicies: {
      // There is one viewer, without an id: what documents ask of it is put together.
      Viewer: { merge: true },
      // So are pages and ranges, of which components read different parts.
      OutfitPage: { merge: true },
      OutfitConnection: { merge: true },
      LikedOutfitConnection: { merge: true },
      UserConnection: { merge: true },
      LikerConnection: { merge: true },
      Query: {
        fields: {
          // One list for each ordering, however many ranges of it are read.
          outfitConnection: relayStylePagination(['ordering', 'filter']),
          // An outfit that a list has brought is not asked for again.
          outfit: (known, { args, toReference }) =>
            known === undefined && args?.['id']
              ? toReference({ __typename: 'Outfit', id: args['id'] })
              : known,
        },
      },
    },
  });
}
