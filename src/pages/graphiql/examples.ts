// Example operations of GraphiQL; the first one is in the editor on the first visit.

export const examples: readonly { readonly query: string }[] = [
  `# Outfits with most likes, and
# their users. To run it, press
# the play button or Ctrl-Enter.
# Ctrl-Space gives suggestions.
query MostLiked {
  outfits(ordering: LIKE_COUNT_DESC, page: 1) {
    count
    results {
      title
      likes
      user {
        username
      }
    }
  }
}
`,
  `# Every word must occur, in title
# or description, or as a hashtag.
# filter narrows any list.
query Search($words: String! = "coat") {
  outfits(filter: { search: $words, private: false }) {
    count
    results {
      title
      description
    }
  }
}
`,
  `# What is wrong with input, field
# by field. validateOnly writes
# nothing. It needs a token.
mutation Check {
  createOutfit(
    input: { title: "New", imageKey: "not a picture", backgroundColor: "red" }
    validateOnly: true
  ) {
    errors {
      field
      messages
    }
  }
}
`,
  `# The signed-in user: null without a
# token. Take that of your sign-in,
# or make one, with
# AUTH_JWT_SECRET set:
#   outfit-gateway token --user 1
# (in a checkout of the sources:
#   npm run token -- --user 1)
# and write into Headers below:
# { "Authorization": "Bearer ..." }
# It is kept nowhere.
query Viewer {
  viewer {
    user {
      username
    }
    likedOutfits(first: 5) {
      totalCount
    }
  }
}
`,
  `# Comes again whenever it has
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
`,
].map((query) => ({ query }));
