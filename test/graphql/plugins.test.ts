// The one Yoga takes plugins of its ecosystem, one line each, for every user of its pipeline.
import { useDisableIntrospection } from '@envelop/disable-introspection';
import { GraphQLError } from 'graphql';
import { useExtendContext, usePayloadFormatter } from 'graphql-yoga';
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
  let formatted = 0;
  const plugins: Plugins = [
    usePayloadFormatter((result) => ({ ...result, extensions: { number: ++formatted } })),
  ];
  const gateway = useGateway('PostgreSQL', rows, environment, { plugins });

  test('sees each of them, since no answer that it has changed is kept', async () => {
    const before = formatted;
    for (const number of [1, 2, 3]) {
      const response = await postGraphql(gateway.app, { query: '{ outfits { count } }' });
      const extensions = { number: before + number };
      expect(response.json()).toEqual({ data: { outfits: { count: 45 } }, extensions });
      expect(response.headers['cache-control'] ?? '').not.toContain('public');
    }
  });

  test('sees those of REST, whose pages stay what they are', async () => {
    const before = formatted;
    for (let round = 0; round < 3; round++) {
      expect((await gateway.get('/api/outfits/')).json().count).toBe(45);
    }
    expect(formatted).toBe(before + 3);
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
