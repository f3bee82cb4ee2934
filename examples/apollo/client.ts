import { ApolloClient, ApolloLink, HttpLink, InMemoryCache } from '@apollo/client';
import { SetContextLink } from '@apollo/client/link/context';
import { RetryLink } from '@apollo/client/link/retry';
import { relayStylePagination } from '@apollo/client/utilities';
import { authorization, endpoint } from '../shared/gateway.ts';

export function createApollo(uri = endpoint): ApolloClient {
  return new ApolloClient({
    link: ApolloLink.from([
      // Subscribes again when the connection is lost. A mutation is not sent again: it may have been done.
      new RetryLink({
        attempts: (count, { operationType }) => operationType === 'subscription' && count < 1000,
      }),
      new SetContextLink(({ headers }) => ({ headers: { ...headers, ...authorization() } })),
      new HttpLink({ uri }),
    ]),
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
