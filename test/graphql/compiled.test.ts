// A query that comes again is compiled at some point: nobody may notice.
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { openGateway, type TestGateway } from '../support/gateway.ts';

const rows = [...generateOutfits({ outfits: 45, users: 9 })];
const [first] = rows;
const id = first?.id;
const username = first?.user.username;

interface Asked {
  readonly query: string;
  readonly variables?: unknown;
  readonly operationName?: string;
}

/** Times that a query is asked: it is compiled for the fourth. */
const rounds = 7;

const twoOperations = `
  query Newest { outfits { results { ...Short } } }
  query Oldest($few: Int = 2) {
    outfitConnection(ordering: CREATED_ASC, first: $few) { edges { node { ...Short } } }
  }
  fragment Short on Outfit { id: databaseId created }`;

const conditional = `query ($long: Boolean!, $short: Boolean = true) {
  outfits {
    count @include(if: $long)
    pageCount @skip(if: $long)
    results {
      id: databaseId
      ...Long @include(if: $long)
      ... on Outfit @skip(if: $short) { title }
      user @include(if: $long) { id @skip(if: $short) username }
    }
  }
}
fragment Long on Outfit { description likes user { firstName } }`;

const paged = `query ($ordering: OutfitOrdering, $page: Int, $last: Boolean) {
  outfits(ordering: $ordering, page: $page, last: $last) { count page nextPage results { id: databaseId } }
}`;

const documents: Record<string, Asked> = {
  'all fields of an outfit': {
    query: `{ outfits { count pageCount page nextPage previousPage results {
      id: databaseId title description imageKey imageOriginalUrl complete likes quality private backgroundImage
      backgroundColor video playVideo created modified creationDevice modificationDevice
      user { id: databaseId avatarKey username firstName lastName } } } }`,
  },
  aliases: {
    query: `{ a: outfits(ordering: ID_ASC) { n: count r: results { x: databaseId y: databaseId u: user { x: databaseId } } }
      b: outfits(ordering: ID_DESC) { r: results { x: databaseId } } }`,
  },
  'fields that are asked for twice': {
    query: `{ outfits { results { id: databaseId user { id: databaseId } } } outfits { count results { likes user { username } id: databaseId } } }`,
  },
  'fragments in fragments': {
    query: `{ outfits { ...Page } }
      fragment Page on OutfitPage { count results { ...Some ... on Outfit { likes } ... { title } } }
      fragment Some on Outfit { id: databaseId user { ...Owner } }
      fragment Owner on User { username outfits { results { id: databaseId } } }`,
  },
  '__typename everywhere': {
    query: `{ __typename outfits { __typename results { t: __typename user { __typename id: databaseId } } }
      outfitConnection(first: 1) { __typename edges { __typename } pageInfo { __typename } } }`,
  },
  'nothing but __typename': { query: '{ __typename }' },
  'the schema': {
    query: `{ __schema { queryType { name fields { name args { name defaultValue } } } }
      __type(name: "OutfitOrdering") { kind enumValues { name description } } }`,
  },
  'conditions that hold': { query: conditional, variables: { long: true, short: false } },
  'conditions that do not hold': { query: conditional, variables: { long: false } },
  'everything skipped': {
    query: 'query ($no: Boolean!) { outfits @include(if: $no) { count } }',
    variables: { no: false },
  },
  'a connection': {
    query: `query ($first: Int, $ordering: OutfitOrdering) {
      outfitConnection(first: $first, ordering: $ordering) {
        totalCount
        edges { cursor node { id: databaseId } }
        pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
      } }`,
    variables: { first: 3, ordering: 'LIKE_COUNT_DESC' },
  },
  'lists in lists': {
    query: `{ outfits { results { id: databaseId user { username
      newest: outfits { count results { id: databaseId } }
      mostLiked: outfits(ordering: LIKE_COUNT_DESC, last: true) { page results {
        id: databaseId user { outfits(ordering: ID_ASC) { results { id: databaseId } } } } }
    } } } }`,
  },
  'one outfit and one user': {
    query: `query ($id: Int!, $username: String) {
      outfit(databaseId: $id) { id: databaseId user { id: databaseId username outfits { count } } }
      user(username: $username) { id: databaseId outfits(page: 1) { results { id: databaseId } } } }`,
    variables: { id, username },
  },
  'what there is not': {
    query:
      '{ outfit(databaseId: -1) { id: databaseId user { id: databaseId } } user(username: "nobody at all") { id: databaseId } }',
  },
  'variables left out': { query: paged },
  'variables that are null': {
    query: paged,
    variables: { ordering: null, page: null, last: null },
  },
  'variables with values': { query: paged, variables: { ordering: 'ID_ASC', page: 2 } },
  'variables that nobody asked for': { query: paged, variables: { page: 3, more: { a: [1] } } },
  'a default of a variable': { query: twoOperations, operationName: 'Oldest' },
  'a value instead of the default': {
    query: twoOperations,
    operationName: 'Oldest',
    variables: { few: 1 },
  },
  'the other operation of the document': { query: twoOperations, operationName: 'Newest' },
};

// Asked after their document has been compiled for other variables.
const failures: Record<string, Asked> = {
  'a page past the end': { query: paged, variables: { page: 99 } },
  'a page before the first': { query: paged, variables: { page: 0 } },
  'page and last': { query: paged, variables: { page: 1, last: true } },
  'a text for a number': { query: paged, variables: { page: '2' } },
  'a fraction for a whole number': { query: paged, variables: { page: 1.5 } },
  'a number that is too large': { query: paged, variables: { page: 2_147_483_648 } },
  'a list for a number': { query: paged, variables: { page: [1, 2] } },
  'an object for a number': { query: paged, variables: { page: { number: 1 } } },
  'a value that the enum lacks': { query: paged, variables: { ordering: 'TITLE_ASC' } },
  'the inner value of the enum': { query: paged, variables: { ordering: '-created' } },
  'a number for a truth': { query: paged, variables: { last: 1 } },
  'a condition left out': { query: conditional, variables: {} },
  'a condition that is null': { query: conditional, variables: { long: null } },
  'variables that are a list': { query: paged, variables: [1] },
  'variables that are a text': { query: paged, variables: 'page' },
  'no operation named': { query: twoOperations },
  'an operation that there is not': { query: twoOperations, operationName: 'Middle' },
};

// Errors of fields, beside what could be answered.
const partly: Record<string, Asked> = {
  'a field of several': {
    query: '{ good: outfits { count } bad: outfits(page: 99) { count } }',
  },
  'a field that may be null': {
    query: `{ good: user(databaseId: ${first?.userId}) { id: databaseId } bad: user(databaseId: ${first?.userId}) { outfits(page: 99) { count } } both: user(databaseId: 1, username: "a") { id: databaseId } }`,
  },
  'a field deep in a list': {
    query:
      '{ outfitConnection(first: 2) { edges { node { user { outfits(page: 99) { count } } } } } }',
  },
  'a cursor that is none': { query: '{ outfitConnection(after: "x") { totalCount } }' },
};

describe('a query that is asked again and again', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    // Without the cache, so that each is executed.
    gateway = await openGateway('PostgreSQL', rows, {
      CACHE_MAX_BYTES: '0',
      GRAPHQL_MAX_COST: '20000',
    });
  });
  afterAll(() => gateway.close());

  const post = async (asked: Asked) => {
    const response = await gateway.app.inject({
      method: 'POST',
      url: '/graphql',
      payload: { ...asked },
    });
    return answerOf(response);
  };
  const get = async ({ query, variables, operationName }: Asked) => {
    const parameters = new URLSearchParams({ query });
    if (variables !== undefined) parameters.set('variables', JSON.stringify(variables));
    if (operationName !== undefined) parameters.set('operationName', operationName);
    return answerOf(await gateway.get(`/graphql?${parameters}`));
  };
  const answerOf = (response: Awaited<ReturnType<TestGateway['get']>>) => ({
    status: response.statusCode,
    type: response.headers['content-type'],
    body: response.json(),
    // The order of the fields counts too.
    text: response.body,
  });

  /** What is answered while it is certainly not compiled: a comment makes it another document. */
  let asked = 0;
  const unseen = (question: Asked) => ({
    ...question,
    query: `# ${asked++}\n${question.query}`,
  });

  describe.each([
    ['POST', post],
    ['GET', get],
  ] as const)('by %s', (_method, ask) => {
    test.each(Object.entries(documents))(
      'gives the same each time: %s',
      async (_name, question) => {
        const expected = await ask(unseen(question));
        expect(expected.body).not.toHaveProperty('errors');
        for (let round = 0; round < rounds; round++) expect(await ask(question)).toEqual(expected);
      },
    );

    test.each(Object.entries(failures))('fails the same each time: %s', async (_name, question) => {
      const expected = await ask(unseen(question));
      expect(expected.body.errors).not.toHaveLength(0);
      const good = { [paged]: {}, [conditional]: { long: true } }[question.query];
      for (let round = 0; round < rounds; round++) {
        const found = await ask(question);
        expect(withoutPlaces(found)).toEqual(withoutPlaces(expected));
        await ask({ query: question.query, variables: good, operationName: 'Newest' });
        if (good) await ask({ query: question.query, variables: good });
      }
    });

    test.each(Object.entries(partly))(
      'has the same errors each time: %s',
      async (_name, question) => {
        const expected = await ask(unseen(question));
        expect(expected.body.errors[0].extensions.code).toMatch(/^[A-Z_]+$/);
        expect(expected.body.errors[0].path).toEqual(expect.any(Array));
        for (let round = 0; round < rounds; round++) {
          expect(withoutPlaces(await ask(question))).toEqual(withoutPlaces(expected));
        }
      },
    );
  });

  test('texts of the same meaning are told apart, and each is answered as it asks', async () => {
    for (let round = 0; round < rounds; round++) {
      const { body: one } = await post({ query: '{ outfits { results { id: databaseId } } }' });
      const { body: two } = await post({ query: '{ outfits { r: results { id: databaseId } } }' });
      expect(one.data.outfits.results).toEqual(two.data.outfits.r);
    }
  });

  test('a failure inside is masked each time, and does not last', async () => {
    const question = {
      query: '{ outfits(ordering: ID_ASC, page: 2) { results { id: databaseId likes } } }',
    };
    const { pool } = gateway.database;
    for (let round = 0; round < rounds; round++) await post(question);
    const expected = await post(question);
    const fail = (() => Promise.reject(new Error('hidden'))) as () => never;
    const broken = vi.spyOn(pool, 'query').mockImplementation(fail);
    try {
      for (let round = 0; round < 3; round++) {
        const { body } = await post(question);
        expect(body.errors).toMatchObject([
          { message: 'Internal server error.', extensions: { code: 'INTERNAL_SERVER_ERROR' } },
        ]);
        expect(JSON.stringify(body)).not.toContain('hidden');
      }
    } finally {
      broken.mockRestore();
    }
    expect(await post(question)).toEqual(expected);
  });
});

/** An answer but for the lines of the document that errors name: a comment moves them. */
function withoutPlaces<Answer extends { body: { errors: object[] } }>(answer: Answer): Answer {
  const errors = answer.body.errors.map((error) => ({ ...error, locations: undefined }));
  return { ...answer, text: '', body: { ...answer.body, errors } };
}
