// The questions that GraphiQL offers to begin with.

export interface Example {
  readonly name: string;
  readonly query: string;
  readonly variables?: object;
}

// Comments of up to 33 characters are seen whole beside the documentation, on a laptop.
const mostLiked = `# Outfits with the most likes, and
# who published them. To run it,
# press the play button, or
# Ctrl-Enter. Ctrl-Space gives
# suggestions.
query MostLiked {
  outfits(ordering: LIKE_COUNT_DESC, page: 1) {
    count
    pageCount
    nextPage
    results {
      id
      title
      likes
      created
      user {
        username
      }
    }
  }
}
`;

const scroll = `# A list to scroll. For what
# follows, put endCursor into the
# variable after.
query Scroll($after: String) {
  outfitConnection(first: 5, after: $after) {
    totalCount
    edges {
      node {
        title
        imageKey
      }
    }
    pageInfo {
      hasNextPage
      endCursor
    }
  }
}
`;

const search = `# Every word must occur, in title
# or description, or as a hashtag.
# filter narrows any list.
query Search($words: String!) {
  outfits(filter: { search: $words, private: false }) {
    count
    results {
      title
      description
    }
  }
}
`;

const person = `# A user, and the newest outfits
# of theirs.
query Person($number: Int!) {
  user(databaseId: $number) {
    username
    firstName
    lastName
    outfitConnection(first: 3) {
      totalCount
      edges {
        node {
          title
          created
        }
      }
    }
  }
}
`;

const check = `# What is wrong with input, field
# by field. validateOnly writes
# nothing. It needs a token: see
# Headers below.
mutation Check($input: CreateOutfitInput!) {
  createOutfit(input: $input, validateOnly: true) {
    outfit {
      id
    }
    errors {
      field
      messages
    }
  }
}
`;

const viewer = `# Who is asking: null without a
# token, which goes into Headers
# below.
query Viewer {
  viewer {
    user {
      username
    }
    likedOutfits(first: 5) {
      totalCount
      edges {
        node {
          title
        }
      }
    }
  }
}
`;

const live = `# Comes again whenever it has
# changed, until you press the
# button again.
subscription Live {
  outfits(page: 1) {
    count
    results {
      title
      likes
    }
  }
}
`;

/** The first is what GraphiQL opens with. */
export const examples: readonly [Example, ...Example[]] = [
  { name: 'A page of outfits', query: mostLiked },
  { name: 'A list to scroll', query: scroll, variables: { after: null } },
  { name: 'A search', query: search, variables: { words: 'coat' } },
  { name: 'A user', query: person, variables: { number: 1 } },
  {
    name: 'What is wrong with input',
    query: check,
    variables: { input: { title: 'New', imageKey: 'not a picture', backgroundColor: 'red' } },
  },
  { name: 'The viewer, when signed in', query: viewer },
  { name: 'A live answer', query: live },
];
