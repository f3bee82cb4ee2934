// REST is data: what a route answers is what its stored document gives over /graphql.
import { type GraphQLEnumType, print } from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { generateOutfits } from '../bench/outfits/generate.ts';
import { schema } from '../src/graphql/schema.ts';
import { type Page, routes } from '../src/rest/routes.ts';
import { databaseKinds, openGateway, type TestGateway } from './gateway.ts';

const choices = (schema.getType('OutfitOrdering') as GraphQLEnumType).getValues();
const orderings = [
  { name: 'none', query: '', variables: {} },
  ...choices.map(({ name, value }) => ({
    name,
    query: `ordering=${value}&`,
    variables: { ordering: name },
  })),
];
const pages = [
  { page: '1', variables: { page: 1 } },
  { page: '2', variables: { page: 2 } },
  { page: 'last', variables: { last: true } },
];

describe.each(databaseKinds)('on %s', (kind) => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await openGateway(kind, [...generateOutfits({ outfits: 65, users: 12 })]);
  });
  afterAll(() => gateway.close());

  const lists = routes.flatMap(({ path, list }) => (list ? [{ path, list }] : []));
  describe.each(lists)('$path', ({ path, list }) => {
    test.each(orderings)('ordered by $name is its document, page by page', async (ordering) => {
      for (const { page, variables } of pages) {
        const response = await gateway.get(`${path}?${ordering.query}page=${page}`);
        expect(response.statusCode).toBe(200);
        const rest = response.json();

        const answer = await gateway.post(print(list), { ...ordering.variables, ...variables });
        expect(answer).not.toHaveProperty('errors');
        const graphql = (answer.data as { page: Page }).page;

        expect(rest.results.length).toBeGreaterThan(0);
        // Text, not values: the order of the keys belongs to the contract.
        expect(JSON.stringify(rest.results)).toBe(JSON.stringify(graphql.results));
        expect(rest.count).toBe(graphql.count);
        for (const link of ['next', 'previous'] as const) {
          const number = rest[link] && Number(new URL(rest[link]).searchParams.get('page'));
          expect(number).toBe(graphql[link]);
        }
      }
    });

    test('a page past the end is 404 where its document has PAGE_NOT_FOUND', async () => {
      const response = await gateway.get(`${path}?page=5`);
      expect(response.statusCode).toBe(404);
      const { errors } = await gateway.post(print(list), { page: 5 });
      expect(errors?.[0]?.extensions?.code).toBe('PAGE_NOT_FOUND');
    });
  });
});

test('there is a route for the listing of the contract', () => {
  expect(routes.map(({ path }) => path)).toContain('/api/outfits/');
  expect(choices).toHaveLength(8);
});
