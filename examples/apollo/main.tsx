// Apollo Client with React.
import { ApolloProvider, useMutation, useQuery, useSubscription } from '@apollo/client/react';
import { createRoot } from 'react-dom/client';
import { Card, type CardOutfit } from '../shared/Card.tsx';
import {
  countDocument,
  createDocument,
  deleteDocument,
  likeDocument,
  outfitsDocument,
  unlikeDocument,
} from '../shared/documents.ts';
import { Page } from '../shared/Page.tsx';
import { createApollo } from './client.ts';

const variables = { first: 8 };

function Outfits() {
  const { data, fetchMore } = useQuery(outfitsDocument, { variables });
  const { data: live } = useSubscription(countDocument);
  const [create] = useMutation(createDocument);
  const list = data?.outfitConnection;

  return (
    <Page
      count={live?.outfits?.count}
      create={async (input, key) => {
        const { data } = await create({
          variables: { input },
          context: { headers: { 'idempotency-key': key } },
          // The list is sorted by date: the new outfit is its first.
          update(cache, { data }) {
            const node = data?.createOutfit?.outfit;
            if (!node) return;
            const edge = { __typename: 'OutfitEdge' as const, cursor: '', node };
            cache.updateQuery({ query: outfitsDocument, variables, overwrite: true }, (data) => {
              const list = data?.outfitConnection;
              return list
                ? { ...data, outfitConnection: { ...list, edges: [edge, ...list.edges] } }
                : undefined;
            });
          },
        });
        return data?.createOutfit?.errors ?? [];
      }}
      hasMore={list?.pageInfo.hasNextPage ?? false}
      loadMore={() => fetchMore({ variables: { after: list?.pageInfo.endCursor } })}
    >
      {list?.edges.map(({ node }) => (
        <OutfitCard key={node.id} outfit={node} />
      ))}
    </Page>
  );
}

function OutfitCard({ outfit }: { readonly outfit: CardOutfit }) {
  const { id, likes } = outfit;
  const [like] = useMutation(likeDocument);
  const [unlike] = useMutation(unlikeDocument);
  const [remove] = useMutation(deleteDocument);

  // Shown at once, replaced by the answer, and taken back if there is an error.
  const expect = (liked: boolean) => ({
    __typename: 'LikePayload' as const,
    outfit: {
      ...{ __typename: 'Outfit' as const, id, viewerHasLiked: liked },
      likes: likes + (liked ? 1 : -1),
    },
  });
  const root = { __typename: 'Mutation' as const };

  return (
    <Card
      outfit={outfit}
      setLiked={(liked) =>
        liked
          ? like({ variables: { id }, optimisticResponse: { ...root, likeOutfit: expect(true) } })
          : unlike({
              variables: { id },
              optimisticResponse: { ...root, unlikeOutfit: expect(false) },
            })
      }
      remove={() =>
        remove({
          variables: { id },
          // It is gone from every list at once.
          update(cache, { data }) {
            const id = data?.deleteOutfit?.deletedOutfitId;
            if (id) cache.evict({ id: cache.identify({ __typename: 'Outfit', id }) ?? '' });
            cache.gc();
          },
        })
      }
    />
  );
}

createRoot(document.getElementById('app') as HTMLElement).render(
  <ApolloProvider client={createApollo()}>
    <Outfits />
  </ApolloProvider>,
);
