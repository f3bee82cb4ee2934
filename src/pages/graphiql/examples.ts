// Example operations of GraphiQL; the first one is in the editor on the first visit.

export const examples: readonly { readonly query: string }[] = [
  `# The play button or Ctrl-Enter
# runs it; Ctrl-Space suggests.
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
query Search($words: String! = "coat") {
  outfits(filter: { search: $words, private: false }) {
    count
    results {
      title
    }
  }
}
`,
  `# The signed-in user: null without
# a token in the field above. To
# make one, with AUTH_JWT_SECRET:
#   outfit-gateway token --user 1
query Viewer {
  viewer {
    user {
      username
    }
  }
}
`,
  `# Sent again whenever it changes,
# until you press the button again.
subscription Live {
  outfits(page: 1) {
    results {
      title
      likes
    }
  }
}
`,
].map((query) => ({ query }));
