// users(search): names by their parts, against plain JavaScript on the same names.
import fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';
import { useGateway } from '../support/gateway.ts';
import { plain } from '../support/models/filter-model.ts';

const people = [
  ['ameliabennett', 'Amelia', 'Bennett'],
  ['amelia_b', 'Amélie', 'Bénard'],
  ['ben', '', ''],
  ['BEN10', 'Benjamin', 'Amelia'],
  ['春子', '春子', '山田'],
  ['stras', 'Οδυσσεύς', '100%_Benn'],
  ['li', 'Li', 'Ng'],
  ['me-ben', "O'Benn", 'li 春'],
] as const;
const users = people.map((names, index) => ({ id: 3 * index - 4, names }));

interface Answer {
  readonly data: {
    readonly users: {
      readonly totalCount: number;
      readonly nodes: readonly { readonly databaseId: number }[];
      readonly pageInfo: { readonly endCursor: string | null; readonly hasNextPage: boolean };
    } | null;
  };
  readonly errors?: { message: string; extensions?: { code?: string } }[];
}

const gateway = useGateway('PostgreSQL');
beforeAll(async () => {
  await gateway.database.pool.query(
    `INSERT INTO users (id, username, first_name, last_name)
     SELECT * FROM unnest($1::int[], $2::text[], $3::text[], $4::text[])`,
    [users.map(({ id }) => id), ...[0, 1, 2].map((at) => users.map(({ names }) => names[at]))],
  );
});

const ask = (search: string, after: string | null = null, first = 2) =>
  gateway.post(
    `query ($search: String!, $first: Int, $after: String) {
      users(search: $search, first: $first, after: $after) {
        searchTooShort totalCount nodes { databaseId } pageInfo { endCursor hasNextPage }
      }
    }`,
    { search, first, after },
  ) as Promise<Answer>;

test('users(search) walks exactly the users in whose names every word occurs, lowest id first', async () => {
  const words = fc
    .tuple(fc.constantFrom(...people.flat()), fc.nat(5), fc.integer({ min: 1, max: 6 }))
    .map(([name, from, length]) => [...name].slice(from, from + length).join(''));
  const searches = fc.array(words, { minLength: 1, maxLength: 2 }).map((all) => all.join(' '));
  await fc.assert(
    fc.asyncProperty(searches, fc.boolean(), async (text, isUpper) => {
      const search = isUpper ? text.toUpperCase() : text;
      const given = search.split(' ').filter(Boolean);
      const found: number[] = [];
      let after: string | null = null;
      for (let more = true; more; ) {
        const { data, errors } = await ask(search, after);
        const isShort = (word: string) => [...word].length < 3 && !/[春子山田]/.test(word);
        if (given.length === 0 || given.some(isShort)) {
          expect(data.users).toMatchObject({ searchTooShort: true, totalCount: 0, nodes: [] });
          return;
        }
        const { totalCount, nodes, pageInfo } = data.users ?? expect.fail(String(errors));
        found.push(...nodes.map(({ databaseId }) => databaseId));
        more = pageInfo.hasNextPage;
        after = pageInfo.endCursor;
        if (!more) expect(totalCount).toBe(found.length);
      }
      const expected = users.filter(({ names }) =>
        given.every((word) => names.some((name) => plain(name).includes(plain(word)))),
      );
      expect(found).toEqual(expected.map(({ id }) => id));
    }),
    { numRuns: 80 },
  );
});

test.each([
  ['ben \u0000', 'search must be Unicode text without NUL characters.'],
  ['b'.repeat(101), 'search must have at most 100 characters.'],
])('users(search: %j) is an error with a code, and the field is null', async (search, message) => {
  const { data, errors } = await ask(search);
  expect(data).toEqual({ users: null });
  const extensions = { code: 'BAD_USER_INPUT' };
  expect(errors).toEqual([expect.objectContaining({ message, extensions })]);
});

test.each(['', 'be', 'stras be'])(
  'users(search: %j) finds nobody and says that it is too short',
  async (search) => {
    const { data, errors } = await ask(search);
    expect(errors).toBeUndefined();
    expect(data.users).toEqual({
      ...{ searchTooShort: true, totalCount: 0, nodes: [] },
      pageInfo: { endCursor: null, hasNextPage: false },
    });
    expect((await ask('stras')).data.users).toMatchObject({ searchTooShort: false });
  },
);

test('users(search) finds a user under a new name at once, and no more under the old one', async () => {
  const namesOf = async (search: string) => (await ask(search)).data.users?.totalCount;
  expect([await namesOf('stras'), await namesOf('gravel')]).toEqual([1, 0]);
  const rename = 'UPDATE users SET username = $1 WHERE id = 11';
  await gateway.database.pool.query(rename, ['Gravelines']);
  expect([await namesOf('stras'), await namesOf('gravel')]).toEqual([0, 1]);
  await gateway.database.pool.query(rename, ['stras']);
});
