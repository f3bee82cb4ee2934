// An answer that is given to others depends on nothing of the viewer, whatever a field's author does.
import { expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { useGateway } from '../support/gateway.ts';
import { extend } from '../support/graphql/schema-extension.ts';
import { getGraphql } from '../support/http/graphql.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const rows = [...generateOutfits({ outfits: 25, users: 6 })];

let executions = 0;
const schema = extend(
  `extend type Query { me: Int, greeting: String!, key: String }
   extend type Outfit { mine: Boolean! }`,
  {
    'Query.me': (_root, _args, { viewer }) => {
      executions++;
      return viewer?.userId ?? null;
    },
    // Its author expects a viewer, and hides it in text.
    'Query.greeting': (_root, _args, context) => {
      const { viewer } = { ...context };
      return viewer ? `Hello, ${viewer.userId}` : 'Hello, nobody';
    },
    'Query.key': (_root, _args, { idempotencyKey }) => idempotencyKey ?? null,
    'Outfit.mine': (outfit, _args, { viewer }) =>
      (outfit as { userId: number }).userId === viewer?.userId,
  },
);

const newestFirst = rows.toSorted((a, b) => Number(b.created - a.created)).slice(0, 20);

type Answer = (viewer: number | undefined) => object;
const documents: Record<string, [query: string, answer: Answer]> = {
  'a field': ['{ me }', (id) => ({ me: id ?? null })],
  'a text': ['{ greeting }', (id) => ({ greeting: `Hello, ${id ?? 'nobody'}` })],
  'a field of each outfit': [
    '{ outfits { results { id: databaseId mine } } }',
    (viewer) => ({
      outfits: { results: newestFirst.map(({ id, userId }) => ({ id, mine: userId === viewer })) },
    }),
  ],
};

const gateway = useGateway('PostgreSQL', rows, { AUTH_JWT_SECRET: secret }, { schema });

const viewers = [undefined, rows[0]?.userId, rows[1]?.userId, undefined, rows[0]?.userId];

const ask = async (query: string, viewer: number | undefined, headers = {}) =>
  getGraphql(gateway.app, { query }, { ...(await signIn(viewer)), ...headers });

test.each(Object.entries(documents))(
  'what asks for the viewer is answered for each viewer alone: %s',
  async (_name, [query, expected]) => {
    // More often than a query is interpreted.
    for (let round = 0; round < 6; round++) {
      for (const viewer of viewers) {
        const response = await ask(query, viewer);
        expect(response.json()).toEqual({ data: expected(viewer) });
        expect(response.headers['cache-control']).toBe('private, no-cache');
      }
    }
  },
);

test('those who ask at the same moment get their own answers', async () => {
  const query = '{ me greeting }';
  const asked = Array.from({ length: 60 }, (_, index) => viewers[index % viewers.length]);
  const answers = await Promise.all(asked.map((viewer) => ask(query, viewer)));
  for (const [index, answer] of answers.entries()) {
    expect(answer.json().data.me).toBe(asked[index] ?? null);
  }
});

test('a header of one request is not in the answer of another', async () => {
  for (const key of ['a', 'b', undefined, 'c']) {
    const response = await ask('{ key }', undefined, key ? { 'idempotency-key': key } : {});
    expect(response.json()).toEqual({ data: { key: key ?? null } });
  }
});

test('the same list without such a field is still shared', async () => {
  const query = '{ outfits { results { id: databaseId } } }';
  const first = await ask(query, rows[0]?.userId);
  expect(first.headers['cache-control']).toBe('no-cache');
  expect((await ask(query, undefined)).body).toBe(first.body);
});

test('once it is known to ask for the viewer, a document is executed once for each', async () => {
  const query = '{ me first: me }';
  await ask(query, undefined);
  executions = 0;
  await ask(query, rows[0]?.userId);
  expect(executions).toBe(2);
});
