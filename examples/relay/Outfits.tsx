// Relay with React. The compiler writes the types and queries to __generated__.
import { useMemo, useState } from 'react';
import {
  ConnectionHandler,
  commitMutation,
  graphql,
  useFragment,
  useLazyLoadQuery,
  useMutation,
  usePaginationFragment,
  useRelayEnvironment,
  useSubscription,
} from 'react-relay';
import { Card } from '../shared/Card.tsx';
import { Page } from '../shared/Page.tsx';
import type { Outfits_card$key } from './__generated__/Outfits_card.graphql.ts';
import type { Outfits_list$key } from './__generated__/Outfits_list.graphql.ts';
import type { OutfitsCountSubscription } from './__generated__/OutfitsCountSubscription.graphql.ts';
import type { OutfitsCreateMutation } from './__generated__/OutfitsCreateMutation.graphql.ts';
import type { OutfitsDeleteMutation } from './__generated__/OutfitsDeleteMutation.graphql.ts';
import type { OutfitsLikeMutation } from './__generated__/OutfitsLikeMutation.graphql.ts';
import type { OutfitsListPaginationQuery } from './__generated__/OutfitsListPaginationQuery.graphql.ts';
import type { OutfitsQuery } from './__generated__/OutfitsQuery.graphql.ts';
import type { OutfitsUnlikeMutation } from './__generated__/OutfitsUnlikeMutation.graphql.ts';

export const outfitsQuery = graphql`
  query OutfitsQuery {
    ...Outfits_list
  }
`;

export const listFragment = graphql`
  fragment Outfits_list on Query
  @argumentDefinitions(count: { type: "Int", defaultValue: 8 }, cursor: { type: "String" })
  @refetchable(queryName: "OutfitsListPaginationQuery") {
    outfitConnection(ordering: CREATED_DESC, first: $count, after: $cursor)
      @connection(key: "Outfits_outfitConnection") {
      __id
      edges {
        node {
          id
          ...Outfits_card
        }
      }
    }
  }
`;

/** Also read by itself, by `node(id)`, with useRefetchableFragment. */
export const cardFragment = graphql`
  fragment Outfits_card on Outfit @refetchable(queryName: "OutfitsCardRefetchQuery") {
    id
    title
    imageKey
    likes
    viewerHasLiked
    viewerCanUpdate
    user {
      username
      avatarUrl
    }
  }
`;

export function Outfits() {
  const query: Outfits_list$key = useLazyLoadQuery<OutfitsQuery>(outfitsQuery, {});
  const { data, hasNext, loadNext } = usePaginationFragment<
    OutfitsListPaginationQuery,
    Outfits_list$key
  >(listFragment, query);
  const list = data.outfitConnection;
  const connections = list ? [list.__id] : [];
  const create = useCreate(list?.__id);
  return (
    <Page count={useCount()} create={create} hasMore={hasNext} loadMore={() => loadNext(8)}>
      {list?.edges.map(({ node }) => (
        <OutfitCard key={node.id} outfit={node} connections={connections} />
      ))}
    </Page>
  );
}

function useCount(): number | undefined {
  const [count, setCount] = useState<number>();
  useSubscription<OutfitsCountSubscription>(
    useMemo(
      () => ({
        subscription: graphql`
          subscription OutfitsCountSubscription {
            outfits {
              count
            }
          }
        `,
        variables: {},
        onNext: (data) => setCount(data?.outfits?.count),
      }),
      [],
    ),
  );
  return count;
}

/** @param list the connection that begins with the new outfit */
function useCreate(list: string | undefined) {
  const environment = useRelayEnvironment();
  const mutation = graphql`
    mutation OutfitsCreateMutation($input: CreateOutfitInput!) {
      createOutfit(input: $input) {
        outfit {
          ...Outfits_card
        }
        errors {
          field
          code
          messages
        }
      }
    }
  `;
  type Input = OutfitsCreateMutation['variables']['input'];
  type Errors = NonNullable<OutfitsCreateMutation['response']['createOutfit']>['errors'];
  return (input: Input, key: string) =>
    new Promise<Errors>((resolve, reject) => {
      // Not useMutation, which takes no cacheConfig.
      commitMutation<OutfitsCreateMutation>(environment, {
        mutation,
        variables: { input },
        // In environment.ts, a header. Over a WebSocket: extensions.idempotencyKey.
        cacheConfig: { metadata: { headers: { 'idempotency-key': key } } },
        // Not @prependNode, which warns of an outfit that is null, as it is with errors.
        updater: (store) => {
          const connection = list && store.get(list);
          const outfit = store.getRootField('createOutfit')?.getLinkedRecord('outfit');
          if (!connection || !outfit) return;
          const edge = ConnectionHandler.createEdge(store, connection, outfit, 'OutfitEdge');
          ConnectionHandler.insertEdgeBefore(connection, edge);
        },
        // With an error of the field, the answer has data too: null for it.
        onCompleted: ({ createOutfit }, errors) =>
          createOutfit
            ? resolve(createOutfit.errors)
            : reject(new Error(errors?.map(({ message }) => message).join(' '))),
        onError: reject,
      });
    });
}

interface OutfitCardProperties {
  readonly outfit: Outfits_card$key;
  readonly connections: readonly string[];
}

function OutfitCard({ outfit: key, connections }: OutfitCardProperties) {
  const outfit = useFragment(cardFragment, key);
  const { id, likes } = outfit;
  const [like] = useMutation<OutfitsLikeMutation>(graphql`
    mutation OutfitsLikeMutation($id: ID!) @raw_response_type {
      likeOutfit(id: $id) {
        outfit {
          id
          likes
          viewerHasLiked
        }
      }
    }
  `);
  const [unlike] = useMutation<OutfitsUnlikeMutation>(graphql`
    mutation OutfitsUnlikeMutation($id: ID!) @raw_response_type {
      unlikeOutfit(id: $id) {
        outfit {
          id
          likes
          viewerHasLiked
        }
      }
    }
  `);
  const [remove] = useMutation<OutfitsDeleteMutation>(graphql`
    mutation OutfitsDeleteMutation($id: ID!, $connections: [ID!]!) {
      deleteOutfit(id: $id) {
        deletedOutfitId @deleteEdge(connections: $connections) @deleteRecord
      }
    }
  `);
  const variables = { id };
  // Shown at once, replaced by the answer, and taken back if there is an error.
  const liked = { outfit: { id, likes: likes + 1, viewerHasLiked: true } };
  const unliked = { outfit: { id, likes: likes - 1, viewerHasLiked: false } };
  return (
    <Card
      outfit={outfit}
      setLiked={(isLiked) =>
        isLiked
          ? like({ variables, optimisticResponse: { likeOutfit: liked } })
          : unlike({ variables, optimisticResponse: { unlikeOutfit: unliked } })
      }
      remove={() => remove({ variables: { id, connections } })}
    />
  );
}
