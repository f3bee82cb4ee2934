// The requests, as bytes. All systems get the same ones, with the same Host, so that the links in
// their answers are equal too.

const outfitFields = `
  id title description imageKey imageOriginalUrl complete likes
  user { id avatarKey username firstName lastName }
  quality private backgroundImage backgroundColor video playVideo
  created modified creationDevice modificationDevice`;

const listDocument = `query Outfits($ordering: OutfitOrdering, $page: Int) {
  outfits(ordering: $ordering, page: $page) {
    count pageCount page nextPage previousPage
    results {${outfitFields} }
  }
}`;

const connectionDocument = `query Scroll($first: Int, $after: String, $last: Int, $before: String) {
  outfitConnection(first: $first, after: $after, last: $last, before: $before) {
    pageInfo { startCursor endCursor hasNextPage hasPreviousPage }
    edges { cursor node {${outfitFields} } }
  }
}`;

/** @param {string} [query] such as `?page=2` */
export function restList(query = '') {
  return Buffer.from(
    `GET /api/outfits/${query} HTTP/1.1\r\nHost: shop.test\r\nAccept: application/json\r\n\r\n`,
  );
}

/** @param {Record<string, unknown>} [variables] */
export function graphqlList(variables = {}) {
  return post({ query: listDocument, variables });
}

/** @param {Record<string, unknown>} variables */
export function graphqlConnection(variables) {
  return post({ query: connectionDocument, variables });
}

/** @param {object} operation */
function post(operation) {
  const body = JSON.stringify(operation);
  return Buffer.from(
    `POST /graphql HTTP/1.1\r\nHost: shop.test\r\nAccept: application/json\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}
