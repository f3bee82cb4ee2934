// The one Yoga takes plugins of its ecosystem, one line each, for every user of its pipeline.
import { useDisableIntrospection } from '@envelop/disable-introspection';
import { GraphQLError } from 'graphql';
import { useExtendContext } from 'graphql-yoga';
import { describe, expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import type { EngineOptions } from '../../src/graphql/engine.ts';
import { openForTest, useGateway } from '../support/gateway.ts';
import { extend } from '../support/graphql/schema-extension.ts';
import { postGraphql } from '../support/http/graphql.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const rows = [...generateOutfits({ outfits: 45, users: 9 })];
const environment = { AUTH_JWT_SECRET: secret };

type Plugins = NonNullable<EngineOptions['plugins']>;
type Context = { readonly run: { readonly caller: { readonly viewer?: { userId: number } } } };

describe('plugins that change the context, and refuse', () => {
  const plugins: Plugins = [
    useExtendContext(({ run }: Context) => ({ currentUser: run.caller.viewer?.userId ?? null })),
    useDisableIntrospection(),
  ];
  const schema = extend('extend type Query { currentUser: Int }', {
    'Query.currentUser': (_root, _args, context) =>
      (context as unknown as { currentUser: number | null }).currentUser,
  });
  const gateway = useGateway('PostgreSQL', rows, environment, { schema, plugins });

  test('what a plugin adds to the context is seen by resolvers, and shared with nobody', async () => {
    const query = '{ currentUser outfits { count } }';
    for (let round = 0; round < 5; round++) {
      for (const viewer of [1, undefined, 2]) {
        const response = await postGraphql(gateway.app, { query }, await signIn(viewer));
        const expected = { currentUser: viewer ?? null, outfits: { count: 45 } };
        expect(response.json()).toEqual({ data: expected });
      }
    }
  });

  test('a rule of a plugin refuses an operation that was answered before without it', async () => {
    const ask = async (query: string) => (await postGraphql(gateway.app, { query })).json();
    expect(await ask('{ __typename }')).toEqual({ data: { __typename: 'Query' } });
    const { errors } = await ask('{ __schema { queryType { name } } }');
    expect(errors[0].message).toMatch(/introspection/i);
    expect(errors[0].extensions.code).toBe('GRAPHQL_VALIDATION_FAILED');
  });
});

describe('a plugin that changes results', () => {
  type Result = { extensions?: object };
  type Change = (result: Result, set: (changed: object) => void, number: number) => void;
  let changed = 0;
  let change: Change = () => {};
  const copy: Change = (result, set, number) => set({ ...result, extensions: { number } });
  const inPlace: Change = (result, _set, number) => {
    result.extensions = { number };
  };
  const refuse: Change = (_result, set, number) => {
    set({ data: null, errors: [new GraphQLError('No.', { extensions: { number } })] });
  };
  const onExecuteDone = ({ result, setResult }: { result: Result; setResult: () => void }) =>
    change(result, setResult, ++changed);
  const gateway = useGateway('PostgreSQL', rows, environment, {
    plugins: [{ onExecute: () => ({ onExecuteDone }) }],
  });

  const page = '{ outfits { count } }';
  // More fields than are encoded in one piece.
  const large = `{ outfits(pageSize: 45) { results { ${Array.from({ length: 30 }, (_, index) => `f${index}: title`).join(' ')} } } }`;
  test.for([
    ['in a copy', copy, page],
    ['in place', inPlace, page],
    ['to errors', refuse, page],
    ['in a copy, of a large answer,', copy, large],
  ] as const)('that changes them %s sees each of them: none is kept', async ([, by, query]) => {
    change = by;
    const before = changed;
    for (const number of [1, 2, 3]) {
      const response = await postGraphql(gateway.app, { query });
      const { data, errors, extensions = errors[0].extensions } = response.json();
      expect(extensions).toEqual({ number: before + number });
      expect(Boolean(data?.outfits)).toBe(by !== refuse);
      expect(response.headers['cache-control'] ?? '').not.toContain('public');
    }
  });

  test('sees those of REST, whose pages stay what they are', async () => {
    change = copy;
    const before = changed;
    for (let round = 0; round < 3; round++) {
      expect((await gateway.get('/api/outfits/')).json().count).toBe(45);
    }
    expect(changed).toBe(before + 3);
  });
});

test('a plugin that refuses before anything is executed gives its status and code', async () => {
  const plugins: Plugins = [
    {
      onParams: ({ request }: { request: Request }) => {
        const extensions = { code: 'FORBIDDEN', http: { status: 403 } };
        if (!request.headers.has('x-key')) throw new GraphQLError('No.', { extensions });
      },
    },
  ];
  const { app } = await openForTest('PostgreSQL', rows, environment, { plugins });
  const response = await postGraphql(app, { query: '{ outfits { count } }' });
  expect(response.statusCode).toBe(403);
  expect(response.json()).toEqual({
    errors: [{ message: 'No.', extensions: { code: 'FORBIDDEN' } }],
  });
});
