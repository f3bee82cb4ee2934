// The requests, as bytes. All systems get the same ones, with the same Host, so that the links in
// their answers are equal too.

export const outfitFields = `
  id: databaseId title description imageKey imageOriginalUrl complete likes
  user { id: databaseId avatarKey username firstName lastName }
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

/**
 * @param {string} [query] such as `?page=2`
 * @param {string} [encoding] that is taken, such as `br`
 */
export function restList(query = '', encoding) {
  return send('GET', `/api/outfits/${query}`, { encoding });
}

/**
 * @param {Record<string, unknown>} [variables]
 * @param {string} [encoding] that is taken, such as `br`
 */
export function graphqlList(variables = {}, encoding) {
  return send('POST', '/graphql', { body: { query: listDocument, variables }, encoding });
}

/** @param {Record<string, unknown>} variables */
export function graphqlConnection(variables) {
  return post({ query: connectionDocument, variables });
}

const likeDocument = `mutation Like($id: ID!) { likeOutfit(id: $id) { outfit {${outfitFields} } } }`;

const createDocument = `mutation Publish($input: CreateOutfitInput!) {
  createOutfit(input: $input) { outfit {${outfitFields} } errors { field messages } }
}`;

const outfitDocument = `query Outfit($id: Int!) { outfit(databaseId: $id) {${outfitFields} } }`;

const userDocument = `query User($id: Int!) {
  user(databaseId: $id) {
    id: databaseId avatarKey username firstName lastName
    outfits { count pageCount page results {${outfitFields} } }
  }
}`;

/** @param {number} id of an outfit */
const toGlobalId = (id) => Buffer.from(`Outfit:${id}`).toString('base64');

/** What one asks for of one record: of the gateway by GraphQL, of the hand-written one by a path. */
export const records = {
  /** @param {number} id @param {string} token */
  like: (id, token) => ({
    graphql: post({ query: likeDocument, variables: { id: toGlobalId(id) } }, token),
    path: send('POST', `/outfits/${id}/like`, { token }),
  }),
  /** @param {object} input @param {string} token */
  create: (input, token) => ({
    graphql: post({ query: createDocument, variables: { input } }, token),
    path: send('POST', '/outfits', { token, body: input }),
  }),
  /** @param {number} id */
  outfit: (id) => ({
    graphql: post({ query: outfitDocument, variables: { id } }),
    path: send('GET', `/outfits/${id}`),
  }),
  /** @param {number} id */
  user: (id) => ({
    graphql: post({ query: userDocument, variables: { id } }),
    path: send('GET', `/users/${id}`),
  }),
};

/** @param {object} operation @param {string} [token] */
export function post(operation, token) {
  return send('POST', '/graphql', { token, body: operation });
}

/**
 * @param {'GET' | 'POST'} method
 * @param {string} path
 * @param {{ token?: string | undefined, body?: object, encoding?: string | undefined }} [what]
 */
function send(method, path, { token, body, encoding } = {}) {
  const text = body ? JSON.stringify(body) : '';
  const lines = [
    `${method} ${path} HTTP/1.1`,
    'Host: shop.test',
    'Accept: application/json',
    ...(encoding ? [`Accept-Encoding: ${encoding}`] : []),
    ...(token ? [`Authorization: Bearer ${token}`] : []),
    ...(body ? ['Content-Type: application/json'] : []),
    ...(method === 'POST' ? [`Content-Length: ${Buffer.byteLength(text)}`] : []),
  ];
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${text}`);
}
