// The documents of the apps with Apollo Client and urql.
import { graphql } from './gql/index.ts';

export const cardFragment = graphql(`
  fragment Card on Outfit {
    id
    title
    imageKey
    likes
    viewerHasLiked
    viewerCanUpdate
    user {
      id
      username
      avatarUrl
    }
  }
`);

export const outfitsDocument = graphql(`
  query Outfits($first: Int!, $after: String) {
    outfitConnection(ordering: CREATED_DESC, first: $first, after: $after) {
      edges {
        cursor
        node {
          ...Card
        }
      }
      pageInfo {
        endCursor
        hasNextPage
      }
    }
  }
`);

export const outfitDocument = graphql(`
  query Outfit($id: ID!) {
    outfit(id: $id) {
      ...Card
    }
  }
`);

/** The whole answer again whenever it has changed. */
export const countDocument = graphql(`
  subscription Count {
    outfits {
      count
    }
  }
`);

export const likeDocument = graphql(`
  mutation Like($id: ID!) {
    likeOutfit(id: $id) {
      outfit {
        id
        likes
        viewerHasLiked
      }
    }
  }
`);

export const unlikeDocument = graphql(`
  mutation Unlike($id: ID!) {
    unlikeOutfit(id: $id) {
      outfit {
        id
        likes
        viewerHasLiked
      }
    }
  }
`);

export const createDocument = graphql(`
  mutation Create($input: CreateOutfitInput!) {
    createOutfit(input: $input) {
      outfit {
        ...Card
      }
      errors {
        field
        code
        messages
      }
    }
  }
`);

export const deleteDocument = graphql(`
  mutation Delete($id: ID!) {
    deleteOutfit(id: $id) {
      deletedOutfitId
    }
  }
`);
