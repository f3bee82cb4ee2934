// urql with React and its normalized cache.
import { useState } from 'react';
import { createRoot } from 'react-dom/client';
import { Provider, useMutation, useQuery, useSubscription } from 'urql';
import { Card, type CardOutfit } from '../shared/Card.tsx';
import {
  countDocument,
  createDocument,
  deleteDocument,
  likeDocument,
  outfitsDocument,
  unlikeDocument,
} from '../shared/documents.ts';
import { authorization } from '../shared/gateway.ts';
import { Page } from '../shared/Page.tsx';
import { createUrql } from './client.ts';

function Outfits() {
  const [after, setAfter] = useState<string | null>(null);
  // The cache joins the ranges: each answer has all outfits up to its own last one.
  const [{ data }] = useQuery({ query: outfitsDocument, variables: { first: 8, after } });
  const [{ data: live }] = useSubscription({ query: countDocument });
  const [, create] = useMutation(createDocument);
  const list = data?.outfitConnection;

  return (
    <Page
      count={live?.outfits?.count}
      create={async (input, key) => {
        const headers = { ...authorization(), 'idempotency-key': key };
        const { data, error } = await create({ input }, { fetchOptions: { headers } });
        if (error) throw error;
        return data?.createOutfit?.errors ?? [];
      }}
      hasMore={list?.pageInfo.hasNextPage ?? false}
      loadMore={() => setAfter(list?.pageInfo.endCursor ?? null)}
    >
      {list?.edges.map(({ node }) => (
        <OutfitCard key={node.id} outfit={node} />
      ))}
    </Page>
  );
}

function OutfitCard({ outfit }: { readonly outfit: CardOutfit }) {
  const { id } = outfit;
  const [, like] = useMutation(likeDocument);
  const [, unlike] = useMutation(unlikeDocument);
  const [, remove] = useMutation(deleteDocument);
  return (
    <Card
      outfit={outfit}
      setLiked={(liked) => (liked ? like({ id }) : unlike({ id }))}
      remove={() => remove({ id })}
    />
  );
}

createRoot(document.getElementById('app') as HTMLElement).render(
  <Provider value={createUrql()}>
    <Outfits />
  </Provider>,
);
