// Errors of graphql-js itself, while it validates and executes: each has a code, a status and a place.
import { expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { useGateway } from '../support/gateway.ts';
import { postGraphql } from '../support/http/graphql.ts';

const gateway = useGateway('PostgreSQL', [...generateOutfits({ outfits: 45, users: 9 })]);
const accept = 'application/graphql-response+json';

const root = 'The root of a subscription takes no @skip and no @include with a variable.';
const invalid = ['GRAPHQL_VALIDATION_FAILED', 400] as const;
const nullIf = /^Argument "if" .* must not be null/;
const noDateTime = /^A DateTime is an RFC 3339 timestamp/;
const variable = 'query ($i: Boolean = true)';
const i = null;
test.each<[string, object, string, number, RegExp | string]>([
  [
    'query A { __typename } subscription B($i: Boolean!) { outfit(databaseId: 1) @include(if: $i) { likes } }',
    ...([{ operationName: 'A', variables: { i: true } }, ...invalid, root] as const),
  ],
  [
    'subscription ($i: Boolean = true) { ...F } fragment F on Subscription { outfit(databaseId: 1) @skip(if: $i) { id } }',
    ...([{}, ...invalid, root] as const),
  ],
  [
    `${variable} { outfits(page: 1) { page count @include(if: $i) } }`,
    ...([{ variables: { i } }, 'BAD_USER_INPUT', 200, nullIf] as const),
  ],
  [
    `${variable} { outfits(page: 1) @skip(if: $i) { page } }`,
    ...([{ variables: { i } }, 'BAD_USER_INPUT', 400, nullIf] as const),
  ],
  [
    'query ($i: ID = "x") { node(id: $i) { id } }',
    ...([{ variables: { i } }, 'BAD_USER_INPUT', 200, /^Argument "id" .* not be null/] as const),
  ],
  [
    'query ($i: Int = 1) { outfits(filter: { userDatabaseIds: [$i] }) { count } }',
    ...([{ variables: { i } }, 'BAD_USER_INPUT', 200, /^Argument "filter" has invalid/] as const),
  ],
  ['{ outfits(filter: { createdFrom: "yesterday" }) { count } }', {}, ...invalid, noDateTime],
  ['{ outfits(filter: { createdFrom: 5 }) { count } }', {}, ...invalid, noDateTime],
])(
  'the error of %s with %j has a code, a status and a place',
  async (query, more, code, status, message) => {
    for (let round = 0; round < 5; round++) {
      const response = await postGraphql(gateway.app, { query, ...more }, { accept });
      const { errors } = response.json();
      expect(errors).toEqual([
        expect.objectContaining({ message: expect.stringMatching(message), extensions: { code } }),
      ]);
      expect(errors[0].locations[0]).toEqual({ line: 1, column: expect.any(Number) });
      expect(response.statusCode).toBe(status);
    }
  },
);

test('a condition on the root of a subscription hides no other error', async () => {
  const query = 'subscription ($i: Boolean!) { outfit(databaseId: 1) @include(if: $i) { no } }';
  const { errors } = (await postGraphql(gateway.app, { query }, { accept })).json();
  const messages = errors.map(({ message }: Error) => message);
  expect(messages.toSorted()).toEqual([expect.stringContaining('field "no"'), root]);
});

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
