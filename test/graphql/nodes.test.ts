// Global object identification: every outfit and user has an id of its own, and is found by it.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { statementsOf } from '../support/databases/statements.ts';
import { outfitId, useGateway, userId } from '../support/gateway.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const rows = [...generateOutfits({ outfits: 60, users: 9 })];
const hidden = rows.find((row) => row.private) ?? rows[0];
const shown = rows.find((row) => !row.private) ?? rows[0];
const outfitIdOf = (text: string) => Buffer.from(`Outfit:${text}`).toString('base64');
/** A number would make a proper id. */
const isNoNumber = (text: string) => !/^-?\d+$/.test(text);

const gateway = useGateway('PostgreSQL', rows, {
  PRIVATE_OUTFITS: 'owner',
  AUTH_JWT_SECRET: secret,
});

// biome-ignore lint/suspicious/noExplicitAny: the documents of this file give many shapes
const ask = async (query: string, variables = {}, headers = {}): Promise<any> =>
  gateway.post(query, variables, headers);

test('only nodes have an id, as caches of clients take equal ids for one record', async () => {
  const { data } = await ask('{ __schema { types { name fields { name } } } }');
  type Type = { name: string; fields: { name: string }[] | null };
  const hasId = ({ fields }: Type) => fields?.some(({ name }) => name === 'id');
  const names = (data.__schema.types as Type[]).filter(hasId).map(({ name }) => name);
  expect(names.toSorted()).toEqual(['Node', 'Outfit', 'User']);
});

test('what a list gives is found again by its id', async () => {
  const fields = '{ id databaseId title user { id databaseId username } }';
  const { data } = await ask(`{ outfits { results ${fields} } }`);
  expect(data.outfits.results).toHaveLength(20);
  for (const { user, ...outfit } of data.outfits.results) {
    expect([outfit.id, user.id]).toEqual([outfitId(outfit.databaseId), userId(user.databaseId)]);
    const again = await ask(
      `query ($id: ID!, $user: ID!) {
        outfit(id: $id) { ...Shown }
        user(id: $user) { username }
        node(id: $id) { __typename ...Shown }
        nodes(ids: [$user, $id]) { __typename id ... on User { username } ...Shown }
      }
      fragment Shown on Outfit { id databaseId title }`,
      { id: outfit.id, user: user.id },
    );
    const { id, username } = user;
    const node = { __typename: 'Outfit', ...outfit };
    const nodes = [{ __typename: 'User', id, username }, node];
    expect(again).toEqual({ data: { outfit, user: { username }, node, nodes } });
  }
});

test('an invisible node is null, like one that does not exist', async () => {
  const ids = [hidden, shown].map((row) => outfitId(row?.id ?? 0));
  const query = `query ($ids: [ID!]!, $id: ID!) {
    nodes(ids: $ids) { id } node(id: $id) { id } outfit(id: $id) { id } }`;
  const variables = { ids: [...ids, outfitId(999_999), userId(999_999)], id: ids[0] };
  const [first, second] = ids;
  expect((await ask(query, variables)).data).toEqual({
    nodes: [null, { id: second }, null, null],
    node: null,
    outfit: null,
  });
  const own = await ask(query, variables, await signIn(hidden?.userId));
  expect(own.data).toEqual({
    nodes: [{ id: first }, { id: second }, null, null],
    node: { id: first },
    outfit: { id: first },
  });
});

test.each([
  ['outfit', userId(1), 'id is an id of type User, but it must be one of type Outfit.'],
  ['user', outfitId(1), 'id is an id of type Outfit, but it must be one of type User.'],
  [
    'node',
    '1',
    'id is not an id of this service: "1". For a number, use outfit(databaseId:) or user(databaseId:).',
  ],
  ['user', 'x', 'id is not an id of this service: "x". For a number, use databaseId.'],
  ['outfit', '', 'id is not an id of this service: "". For a number, use databaseId.'],
])('%s(id: %j) is an error that says why', async (field, id, message) => {
  expect(await ask(`query ($id: ID!) { ${field}(id: $id) { id } }`, { id })).toMatchObject({
    data: { [field]: null },
    errors: [{ message, extensions: { code: 'BAD_USER_INPUT' } }],
  });
});

test('of many ids, the error names the one that is wrong, and 100 are the most', async () => {
  const query = 'query ($ids: [ID!]!) { nodes(ids: $ids) { id } }';
  const sent = await statementsOf(gateway, async () => {
    expect(await ask(query, { ids: [outfitId(1), userId(1), '%'] })).toMatchObject({
      errors: [{ message: expect.stringMatching(/^ids\[2\] is not an id/) }],
    });
    await new Promise(setImmediate);
  });
  // Nothing is read: a failed load would have no handler.
  expect(sent).toEqual([]);
  const ids = Array.from({ length: 101 }, (_, index) => outfitId(index + 1));
  expect((await ask(query, { ids: ids.slice(1) })).data.nodes).toHaveLength(100);
  expect(await ask(query, { ids })).toMatchObject({
    errors: [
      {
        message: 'ids must be at most 100, but they are 101.',
        extensions: { code: 'BAD_USER_INPUT' },
      },
    ],
  });
});

test.each(['likeOutfit', 'unlikeOutfit', 'deleteOutfit'])(
  '%s takes global ids only',
  async (field) => {
    const token = await signIn(hidden?.userId);
    const document = `mutation ($id: ID!) { ${field}(id: $id) { __typename } }`;
    for (const id of [String(hidden?.id), userId(1), 'Outfit:1']) {
      expect(await ask(document, { id }, token)).toMatchObject({
        errors: [{ extensions: { code: 'BAD_USER_INPUT' } }],
      });
    }
  },
);

test('any other text is an error, and never that of the service', async () => {
  const typed = fc.tuple(
    fc.constantFrom('Outfit', 'User', 'Query', ''),
    fc.string().filter(isNoNumber),
  );
  const texts = fc.oneof(
    fc.string({ unit: 'binary' }),
    typed.map((parts) => Buffer.from(parts.join(':')).toString('base64')),
    fc.constantFrom(...['007', '1.0', ' 1', '1e2', '-0', '2147483648', '1:2'].map(outfitIdOf)),
  );
  await fc.assert(
    fc.asyncProperty(texts, async (id) => {
      const { errors } = await ask('query ($id: ID!) { node(id: $id) { id } }', { id });
      expect(errors?.[0]?.extensions.code).toBe('BAD_USER_INPUT');
    }),
    { numRuns: 100 },
  );
});
