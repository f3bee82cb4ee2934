// Errors of graphql-js itself, while it validates and executes: each has a code, a status and a place.
import { expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { useGateway } from '../support/gateway.ts';
import { postGraphql } from '../support/http/graphql.ts';

const gateway = useGateway('PostgreSQL', [...generateOutfits({ outfits: 45, users: 9 })]);
const accept = 'application/graphql-response+json';

const root = 'The root of a subscription takes no @skip and no @include with a variable.';
const twoOperations =
  'query A { __typename } subscription B($i: Boolean!) { outfit(databaseId: 1) @include(if: $i) { likes } }';
test.each<[string, object, string, number, RegExp | string]>([
  [
    'a subscription with a condition at its root, beside the operation that is meant',
    { query: twoOperations, operationName: 'A', variables: { i: true } },
    ...(['GRAPHQL_VALIDATION_FAILED', 400, root] as const),
  ],
  [
    'a subscription with a condition in a fragment at its root',
    {
      query:
        'subscription ($i: Boolean = true) { ...F } fragment F on Subscription { outfit(databaseId: 1) @skip(if: $i) { id } }',
    },
    ...(['GRAPHQL_VALIDATION_FAILED', 400, root] as const),
  ],
  [
    'a condition that is null',
    {
      query: 'query ($i: Boolean = true) { outfits(page: 1) { page count @include(if: $i) } }',
      variables: { i: null },
    },
    ...(['BAD_USER_INPUT', 200, /^Argument "if" .* must not be null/] as const),
  ],
  [
    'a condition at the root that is null',
    {
      query: 'query ($i: Boolean = true) { outfits(page: 1) @skip(if: $i) { page } }',
      variables: { i: null },
    },
    ...(['BAD_USER_INPUT', 400, /^Argument "if" .* must not be null/] as const),
  ],
  [
    'an argument that is null',
    { query: 'query ($id: ID = "x") { node(id: $id) { id } }', variables: { id: null } },
    ...(['BAD_USER_INPUT', 200, /^Argument "id" .* must not be null/] as const),
  ],
  [
    'an item of an argument that is null',
    {
      query: 'query ($id: Int = 1) { outfits(filter: { userDatabaseIds: [$id] }) { count } }',
      variables: { id: null },
    },
    ...(['BAD_USER_INPUT', 200, /^Argument "filter" has invalid value/] as const),
  ],
  [
    'a DateTime that is none',
    { query: '{ outfits(filter: { createdFrom: "yesterday" }) { count } }' },
    ...(['GRAPHQL_VALIDATION_FAILED', 400, /^A DateTime is an RFC 3339 timestamp/] as const),
  ],
  [
    'a DateTime that is a number',
    { query: '{ outfits(filter: { createdFrom: 5 }) { count } }' },
    ...(['GRAPHQL_VALIDATION_FAILED', 400, /^A DateTime is an RFC 3339 timestamp/] as const),
  ],
])(
  'an error has a code, a status and a place: %s',
  async (_name, payload, code, status, message) => {
    for (let round = 0; round < 5; round++) {
      const response = await postGraphql(gateway.app, payload, { accept });
      const { errors } = response.json();
      expect(errors).toEqual([
        expect.objectContaining({ message: expect.stringMatching(message), extensions: { code } }),
      ]);
      expect(errors[0].locations[0]).toEqual({ line: 1, column: expect.any(Number) });
      expect(response.statusCode).toBe(status);
    }
  },
);

test.each([
  ['2018-05-01T09:30:00.0000000Z', true],
  ['2018-05-01T11:30:00.120000000+02:00', true],
  ['2018-05-01T09:30:00.1234560Z', true],
  ['2018-05-01T09:30:00.0000001Z', false],
  ['2018-05-01T09:30:00.12345601Z', false],
  [`2018-05-01T09:30:00.${'0'.repeat(1000)}Z`, false],
])(
  'a DateTime may have zeros behind six digits of fraction, and nothing else: %s',
  async (from, isOne) => {
    const query = 'query ($from: DateTime) { outfits(filter: { createdFrom: $from }) { count } }';
    const response = await postGraphql(gateway.app, { query, variables: { from } });
    expect('data' in response.json()).toBe(isOne);
  },
);

test('a body may begin with a byte order mark', async () => {
  const payload = `\ufeff${JSON.stringify({ query: '{ \ufeff__typename }' })}`;
  expect((await postGraphql(gateway.app, payload)).json()).toEqual({
    data: { __typename: 'Query' },
  });
});

test('a condition of a filter that is null counts as omitted', async () => {
  const names =
    'ids userIds userDatabaseIds createdFrom createdBefore likesFrom likesBelow hasVideo private';
  const filter = Object.fromEntries(
    `${names} quality creationDevices hashtags search`.split(' ').map((name) => [name, null]),
  );
  const query = 'query ($filter: OutfitFilter) { outfits(filter: $filter) { count } }';
  const response = await postGraphql(gateway.app, { query, variables: { filter } });
  expect(response.json()).toEqual({ data: { outfits: { count: 45 } } });
});
