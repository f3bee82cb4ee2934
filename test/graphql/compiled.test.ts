// A repeated query is compiled: its answers stay the same.
import { getOperationAST, parse } from 'graphql';
import { describe, expect, test, vi } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { compileQuery } from '../../src/graphql/engine/compiled-query.ts';
import { schema } from '../../src/graphql/schema.ts';
import { type TestGateway, useGateway } from '../support/gateway.ts';

const rows = [...generateOutfits({ outfits: 45, users: 9 })];

interface GraphQLRequest {
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

// What the random documents of differential.test.ts lack: several operations, introspection, unknown variables.
// Aliases, fragments, lists, connections and errors of fields are compared there.
const documents: Record<string, GraphQLRequest> = {
  'the schema': {
    query: `{ __schema { queryType { name fields { name args { name defaultValue } } } }
      __type(name: "OutfitOrdering") { kind enumValues { name description } } }`,
  },
  'conditions that hold': { query: conditional, variables: { long: true, short: false } },
  'conditions that do not hold': { query: conditional, variables: { long: false } },
  'variables that the operation does not declare': {
    query: paged,
    variables: { page: 3, more: { a: [1] } },
  },
  'a default of a variable': { query: twoOperations, operationName: 'Oldest' },
  'a value instead of the default': {
    query: twoOperations,
    operationName: 'Oldest',
    variables: { few: 1 },
  },
  'the other operation of the document': { query: twoOperations, operationName: 'Newest' },
};

// Asked after their document has been compiled for other variables.
const failures: Record<string, GraphQLRequest> = {
  'a page past the end': { query: paged, variables: { page: 99 } },
  'a text for a number': { query: paged, variables: { page: '2' } },
  'the inner value of the enum': { query: paged, variables: { ordering: '-created' } },
  'a condition left out': { query: conditional, variables: {} },
  'variables that are a list': { query: paged, variables: [1] },
  'no operation named': { query: twoOperations },
  'an operation that there is not': { query: twoOperations, operationName: 'Middle' },
};

describe('a query that is asked again and again', () => {
  // Without the cache, so that each is executed.
  const gateway = useGateway('PostgreSQL', rows, {
    CACHE_MAX_SIZE: '0',
    GRAPHQL_MAX_COST: '20000',
  });

  const ask = async (asked: GraphQLRequest) =>
    answerOf(await gateway.app.inject({ method: 'POST', url: '/graphql', payload: { ...asked } }));
  const answerOf = (response: Awaited<ReturnType<TestGateway['get']>>) => ({
    status: response.statusCode,
    type: response.headers['content-type'],
    body: response.json(),
    // The order of the fields counts too.
    text: response.body,
  });

  /** What is answered while it is certainly not compiled: a comment makes it another document. */
  let asked = 0;
  const unseen = (request: GraphQLRequest) => ({
    ...request,
    query: `# ${asked++}\n${request.query}`,
  });

  test.each(Object.entries(documents))('gives the same each time: %s', async (_name, request) => {
    const expected = await ask(unseen(request));
    expect(expected.body).not.toHaveProperty('errors');
    for (let round = 0; round < rounds; round++) expect(await ask(request)).toEqual(expected);
  });

  test.each(Object.entries(failures))('fails the same each time: %s', async (_name, request) => {
    const expected = await ask(unseen(request));
    expect(expected.body.errors).not.toHaveLength(0);
    const good = { [paged]: {}, [conditional]: { long: true } }[request.query];
    for (let round = 0; round < rounds; round++) {
      const found = await ask(request);
      expect(withoutPlaces(found)).toEqual(withoutPlaces(expected));
      await ask({ query: request.query, variables: good, operationName: 'Newest' });
      if (good) await ask({ query: request.query, variables: good });
    }
  });

  test('texts of the same meaning are told apart, and each is answered as it asks', async () => {
    for (let round = 0; round < rounds; round++) {
      const { body: one } = await ask({ query: '{ outfits { results { id: databaseId } } }' });
      const { body: two } = await ask({ query: '{ outfits { r: results { id: databaseId } } }' });
      expect(one.data.outfits.results).toEqual(two.data.outfits.r);
    }
  });

  test('a failure inside is masked each time, and does not last', async () => {
    const request = {
      query: '{ outfits(ordering: ID_ASC, page: 2) { results { id: databaseId likes } } }',
    };
    const { pool } = gateway.database;
    for (let round = 0; round < rounds; round++) await ask(request);
    const expected = await ask(request);
    const fail = (() => Promise.reject(new Error('hidden'))) as () => never;
    const broken = vi.spyOn(pool, 'query').mockImplementation(fail);
    try {
      for (let round = 0; round < 3; round++) {
        const { body } = await ask(request);
        expect(body.errors).toMatchObject([
          { message: 'Internal server error.', extensions: { code: 'INTERNAL_SERVER_ERROR' } },
        ]);
        expect(JSON.stringify(body)).not.toContain('hidden');
      }
    } finally {
      broken.mockRestore();
    }
    expect(await ask(request)).toEqual(expected);
  });
});

/** An answer but for the lines of the document that errors name: a comment moves them. */
function withoutPlaces<Answer extends { body: { errors: object[] } }>(answer: Answer): Answer {
  const errors = answer.body.errors.map((error) => ({ ...error, locations: undefined }));
  return { ...answer, text: '', body: { ...answer.body, errors } };
}

test.each([
  ['{ likesFrom: $likes }', true],
  ['{ search: $text, private: false }', true],
  ['{ ids: [$id] }', false],
])('a variable in filter: %s is compiled: %s', (filter, isCompiled) => {
  const document = parse(
    `query ($likes: Int, $text: String = "x", $id: ID! = "") { outfits(filter: ${filter}) { count } }`,
  );
  const operation = getOperationAST(document);
  if (!operation) throw new Error('There is no operation.');
  expect(compileQuery(schema, document, operation) !== null).toBe(isCompiled);
});
