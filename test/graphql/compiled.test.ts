// A repeated query is compiled: its answers stay the same.
import { getOperationAST, parse } from 'graphql';
import { describe, expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { compileQuery } from '../../src/graphql/engine/compiled-query.ts';
import { schema } from '../../src/graphql/schema.ts';
import { useGateway } from '../support/gateway.ts';
import { postGraphql } from '../support/http/graphql.ts';

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

const paged = `query ($page: Int) { outfits(page: $page) { count nextPage results { id: databaseId } } }`;

// What the random documents of differential.test.ts lack: several operations, introspection, unknown variables.
const documents: Record<string, GraphQLRequest> = {
  'the schema': {
    query: `{ __schema { queryType { name fields { name args { name defaultValue } } } }
      __type(name: "OutfitOrdering") { kind enumValues { name description } } }`,
  },
  'variables that the operation does not declare': {
    query: paged,
    variables: { page: 3, more: { a: [1] } },
  },
  'an alias that is a name of JavaScript': {
    query:
      '{ outfits { __proto__: __typename count constructor: page } __proto__: outfits { count } }',
  },
  'an alias of an object that is a name of JavaScript': {
    query: '{ outfits { results { __proto__: user { __typename __proto__: id } __x: id id } } }',
  },
  'a variable that is a name of JavaScript': {
    query: 'query ($__proto__: Int) { outfits(page: $__proto__, pageSize: 1) { page } }',
    variables: JSON.parse('{ "__proto__": 2 }'),
  },
  'a default of a variable': { query: twoOperations, operationName: 'Oldest' },
  'the other operation of the document': { query: twoOperations, operationName: 'Newest' },
};

// Asked after their document has been compiled.
const failures: Record<string, GraphQLRequest> = {
  'variables that are a list': { query: paged, variables: [1] },
  'no operation named': { query: twoOperations },
  'an operation that there is not': { query: twoOperations, operationName: 'Middle' },
};

describe('a query that is asked again and again', () => {
  // Without the cache, so that each is executed.
  const gateway = useGateway('PostgreSQL', rows, { CACHE_MAX_SIZE: '0' });

  const ask = async (request: GraphQLRequest) => {
    const { statusCode, headers, body } = await postGraphql(gateway.app, request);
    // As text, as the order of the fields counts too.
    return { statusCode, type: headers['content-type'], body };
  };

  /** What is answered while it is certainly not compiled: a comment makes it another document. */
  let asked = 0;
  const unseen = (request: GraphQLRequest) => ({
    ...request,
    query: `# ${asked++}\n${request.query}`,
  });

  test.each(Object.entries(documents))(
    'a query that is asked again and again gives the same each time: %s',
    async (_name, request) => {
      const expected = await ask(unseen(request));
      expect(expected.body).toMatch(/^\{"data":/);
      for (let round = 0; round < rounds; round++) expect(await ask(request)).toEqual(expected);
    },
  );

  test.each(Object.entries(failures))(
    'a query that is asked again and again fails the same each time: %s',
    async (_name, request) => {
      const expected = await ask(unseen(request));
      expect(expected.body).toMatch(/^\{"errors":/);
      for (let round = 0; round < rounds; round++) {
        expect(await ask(request)).toEqual(expected);
        await ask({ query: request.query, operationName: 'Newest' });
        await ask({ query: request.query });
      }
    },
  );
});

test.each([
  ['{ likesFrom: $likes }', true],
  ['{ search: $text, private: false }', true],
  ['{ ids: [$id] }', false],
])('a variable in filter: %s is compiled: %s', (filter, isCompiled) => {
  const document = parse(
    `query ($likes: Int, $text: String = "x", $id: ID! = "") { outfits(filter: ${filter}) { count } }`,
  );
  const operation = getOperationAST(document);
  const compiled = compileQuery(schema, document, operation ?? expect.fail());
  expect(compiled !== null).toBe(isCompiled);
});
