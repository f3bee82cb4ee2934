// Documents that are asked for by id or hash: trusted ones from a file, and automatic persisted queries.
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { getIntrospectionQuery } from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { buildApp } from '../../src/app.ts';
import { readConfig } from '../../src/config/config.ts';
import { makeFolder } from '../support/cli/folder.ts';
import { failure, migratedEnvironmentOf, runServer } from '../support/cli/process.ts';
import { outfitId, useGateway } from '../support/gateway.ts';
import { getGraphql as get, postGraphql as post } from '../support/http/graphql.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const hash = (algorithm: string, text: string) => createHash(algorithm).update(text).digest('hex');
const sha256 = (text: string) => hash('sha256', text);

const count = 'query Count { outfits { count } }';
const page = 'query Page($page: Int) { outfits(page: $page) { page } }';
const like = 'mutation Like($id: ID!) { likeOutfit(id: $id) { outfit { id likes } } }';
const twice = 'query One { outfits { count } } query Two { outfits { page } }';
const countAnswer = { data: { outfits: { count: 25 } } };

/** @see https://www.apollographql.com/docs/graphos/platform/security/persisted-queries */
const apolloManifest = (...operations: object[]) => ({
  format: 'apollo-persisted-query-manifest',
  version: 1,
  operations,
});

const folder = makeFolder(afterAll);
const gateway = useGateway('PostgreSQL', [...generateOutfits({ outfits: 25, users: 3 })]);
const apps: FastifyInstance[] = [];
afterAll(async () => {
  for (const app of apps) await app.close();
});

/** A gateway on the same database that has read a file with this content. */
async function withDocuments(content: unknown, environment: Record<string, string> = {}) {
  const TRUSTED_DOCUMENTS = join(folder, `${apps.length}.json`);
  writeFileSync(TRUSTED_DOCUMENTS, typeof content === 'string' ? content : JSON.stringify(content));
  const app = await buildApp(readConfig({ TRUSTED_DOCUMENTS, ...environment }), gateway.database);
  apps.push(app);
  return app;
}

const byHash = (text: string) => ({ persistedQuery: { version: 1, sha256Hash: sha256(text) } });
/** Undefined: there is no error. */
function codeOf(response: { json(): { errors?: { extensions: { code: string } }[] } }) {
  return response.json().errors?.[0]?.extensions.code;
}

describe('automatic persisted queries', () => {
  test('automatic persisted queries are asked for by hash once they came with their text', async () => {
    const { app } = gateway;
    const extensions = byHash(count);
    for (const miss of [
      await post(app, { extensions, operationName: 'Count', variables: {} }),
      await get(app, { extensions: JSON.stringify(extensions) }),
      await post(app, { query: null, extensions }),
      await post(app, { query: '', extensions }),
    ]) {
      expect(miss.statusCode).toBe(200);
      expect(miss.headers['cache-control']).toBe('no-store');
      expect(miss.body).toBe(
        '{"errors":[{"message":"PersistedQueryNotFound","extensions":{"code":"PERSISTED_QUERY_NOT_FOUND"}}]}',
      );
    }
    expect((await post(app, { query: count, extensions })).json()).toEqual(countAnswer);
    expect((await post(app, { extensions })).json()).toEqual(countAnswer);
    const hit = await get(app, { extensions: JSON.stringify(extensions) });
    expect(hit.json()).toEqual(countAnswer);
    expect((await post(app, { documentId: `sha256:${sha256(count)}` })).json()).toEqual(
      countAnswer,
    );
  });

  test('automatic persisted queries by GET do not write', async () => {
    const headers = await signIn(1);
    const app = await withDocuments({ like }, { AUTH_JWT_SECRET: secret });
    const id = outfitId(1);
    const variables = JSON.stringify({ id });
    for (const name of [{ documentId: 'like' }, { extensions: JSON.stringify(byHash(like)) }]) {
      const response = await get(app, { ...name, variables }, headers);
      expect(response.statusCode).toBe(405);
      expect(response.headers['allow']).toBe('POST');
    }
    const written = await post(app, { documentId: 'like', variables: { id } }, headers);
    expect(written.json().data.likeOutfit.outfit.id).toBe(id);
  });

  test('automatic persisted queries are refused under the hash of another text, which then stays unknown', async () => {
    const extensions = byHash('{ outfits { pageCount } }');
    for (const response of [
      await post(gateway.app, { query: count, extensions }),
      await get(gateway.app, { query: count, extensions: JSON.stringify(extensions) }),
    ]) {
      expect(response.statusCode).toBe(400);
      expect(codeOf(response)).toBe('DOCUMENT_MISMATCH');
    }
    const later = await post(gateway.app, { extensions });
    expect(codeOf(later)).toBe('PERSISTED_QUERY_NOT_FOUND');
  });

  test('automatic persisted queries that are not valid are not kept', async () => {
    for (const text of ['{ nothing }', '{', 'subscription { outfits { nothing } }']) {
      const extensions = byHash(text);
      const response = await post(gateway.app, { query: text, extensions });
      expect(response.json().errors).toHaveLength(1);
      expect(codeOf(await post(gateway.app, { extensions }))).toBe('PERSISTED_QUERY_NOT_FOUND');
    }
  });

  test('automatic persisted queries are kept within bounds: the first ones make room, and long ones are not kept', async () => {
    const { app } = gateway;
    const padded = (number: number, length: number) =>
      `query Q${number} { __typename } #${'x'.repeat(length)}`;
    const register = (text: string) => post(app, { query: text, extensions: byHash(text) });
    const long = padded(0, 100_000);
    expect((await register(long)).json()).toEqual({ data: { __typename: 'Query' } });
    expect(codeOf(await post(app, { extensions: byHash(long) }))).toBe('PERSISTED_QUERY_NOT_FOUND');

    const texts = Array.from({ length: 160 }, (_, number) => padded(number + 1, 30_000));
    for (const text of texts) await register(text);
    const codes = [];
    for (const text of texts) codes.push(codeOf(await post(app, { extensions: byHash(text) })));
    expect(codes[0]).toBe('PERSISTED_QUERY_NOT_FOUND');
    expect(codes.at(-1)).toBeUndefined();
    expect(codes.filter((code) => code === undefined).length).toBeGreaterThan(100);
  });

  test.each<[string, object]>([
    ['another version', { persistedQuery: { version: 2, sha256Hash: sha256(count) } }],
    ['no version', { persistedQuery: { sha256Hash: sha256(count) } }],
    ['no hash', { persistedQuery: { version: 1 } }],
    ['a hash that is no text', { persistedQuery: { version: 1, sha256Hash: [1] } }],
  ])('with %s are bad requests', async (_name, extensions) => {
    for (const query of [undefined, count]) {
      const response = await post(gateway.app, { query, extensions });
      expect(response.statusCode).toBe(400);
      expect(codeOf(response)).toBe('BAD_REQUEST');
    }
  });

  test.each([{}, { persistedQuery: null }, { persistedQuery: 'x' }, { other: {} }])(
    'automatic persisted queries are not meant by the extensions %j',
    async (extensions) => {
      expect((await post(gateway.app, { extensions })).statusCode).toBe(400);
      const response = await post(gateway.app, { extensions, query: count });
      expect(response.json()).toEqual(countAnswer);
    },
  );
});

describe('trusted documents', () => {
  test.each<[string, unknown, string]>([
    ['names of an own making', { 'Count-1': count, page }, 'Count-1'],
    ["Relay's compiler (MD5)", { [hash('md5', count)]: count }, hash('md5', count)],
    ['the client preset (SHA-1)', { [hash('sha1', count)]: count }, hash('sha1', count)],
    ['the client preset (SHA-256)', { [sha256(count)]: count }, sha256(count)],
    ['GraphQL over HTTP', { [`sha256:${sha256(count)}`]: count }, `sha256:${sha256(count)}`],
    ["Apollo's generator", apolloManifest({ id: sha256(count), body: count }), sha256(count)],
  ])('of a file of %s are asked for by id, by SHA-256 and as text', async (_name, file, id) => {
    const extensions = JSON.stringify(byHash(count));
    for (const TRUSTED_DOCUMENTS_ONLY of ['off', 'on']) {
      const app = await withDocuments(file, { TRUSTED_DOCUMENTS_ONLY });
      for (const response of [
        await post(app, { documentId: id }),
        await post(app, { documentId: `sha256:${sha256(count)}`, operationName: 'Count' }),
        await post(app, { documentId: id, query: count }),
        await post(app, { extensions: byHash(count) }),
        await post(app, { extensions: byHash(count), query: count }),
        await post(app, { extensions: { persistedQuery: { version: 1, sha256Hash: id } } }),
        await post(app, { query: count }),
        await get(app, { documentId: id }),
        await get(app, { extensions }),
      ]) {
        expect(response.json()).toEqual(countAnswer);
        expect(response.statusCode).toBe(200);
      }
      const { headers } = await get(app, { documentId: id });
      const known = { 'if-none-match': String(headers.etag) };
      expect((await get(app, { documentId: id }, known)).statusCode).toBe(304);
    }
  });

  test('trusted documents take variables and the name of an operation', async () => {
    const app = await withDocuments({ page, twice });
    const second = { data: { outfits: { page: 2 } } };
    const paged = { documentId: 'page', variables: { page: 2 } };
    expect((await post(app, paged)).json()).toEqual(second);
    expect((await get(app, { ...paged, variables: '{"page":2}' })).json()).toEqual(second);
    const two = { documentId: 'twice', operationName: 'Two' };
    expect((await post(app, two)).json()).toEqual({ data: { outfits: { page: 1 } } });
    expect((await post(app, { documentId: 'twice' })).json().errors).toHaveLength(1);
  });

  test('trusted documents that are unknown, or not what the text says, are errors with codes', async () => {
    const app = await withDocuments({ count });
    for (const [payload, code] of [
      [{ documentId: 'nope' }, 'DOCUMENT_NOT_FOUND'],
      [{ documentId: 'nope', query: count }, 'DOCUMENT_NOT_FOUND'],
      [{ documentId: `sha256:${sha256(page)}` }, 'DOCUMENT_NOT_FOUND'],
      [{ documentId: 'count', query: page }, 'DOCUMENT_MISMATCH'],
      [{ documentId: 'count', query: `${count} ` }, 'DOCUMENT_MISMATCH'],
      [{ documentId: ['count'] }, 'BAD_REQUEST'],
      [{ documentId: '' }, 'BAD_REQUEST'],
      [{ documentId: 'count', extensions: byHash(count) }, 'BAD_REQUEST'],
    ] as const) {
      const response = await post(app, payload);
      expect([payload, response.statusCode, codeOf(response)]).toEqual([payload, 400, code]);
    }
    const repeated = await app.inject({ url: '/graphql?documentId=count&documentId=count' });
    expect(codeOf(repeated)).toBe('BAD_REQUEST');
    const echo = await post(app, { documentId: 'x'.repeat(100_000) });
    expect(echo.body.length).toBeLessThan(300);
  });

  test('trusted documents are not replaced by what clients register', async () => {
    const app = await withDocuments({ [sha256(count)]: count });
    await post(app, { query: page, extensions: byHash(page) });
    await post(app, { query: page, documentId: sha256(count) });
    expect((await post(app, { documentId: sha256(count) })).json()).toEqual(countAnswer);
    expect((await post(app, { extensions: byHash(page) })).json()).toEqual({
      data: { outfits: { page: 1 } },
    });
  });
});

describe('TRUSTED_DOCUMENTS_ONLY', () => {
  let app: FastifyInstance;
  beforeAll(async () => {
    app = await withDocuments({ count, page }, { TRUSTED_DOCUMENTS_ONLY: 'on' });
  });

  test('TRUSTED_DOCUMENTS_ONLY refuses all others, however they come', async () => {
    const other = '{ outfits { count } }';
    const persistedQuery = { version: 1, sha256Hash: sha256(count) };
    for (const payload of [
      { query: other },
      { query: `${count} ` },
      { query: '{' },
      { query: '' },
      { query: getIntrospectionQuery() },
      { query: other, extensions: byHash(other) },
      { extensions: byHash(other) },
      { documentId: 'other' },
      { documentId: `sha256:${sha256(other)}`, query: other },
    ]) {
      const response = await post(app, payload);
      expect([payload, response.statusCode]).toEqual([payload, 403]);
      expect(codeOf(response)).toBe('DOCUMENT_NOT_TRUSTED');
      expect(response.json()).not.toHaveProperty('data');
    }
    const mismatch = await post(app, { query: other, extensions: { persistedQuery } });
    expect(codeOf(mismatch)).toBe('DOCUMENT_MISMATCH');
    expect((await get(app, { query: other })).statusCode).toBe(403);
    // Nothing of this was kept.
    expect((await post(app, { extensions: byHash(other) })).statusCode).toBe(403);
  });

  test('TRUSTED_DOCUMENTS_ONLY has no GraphiQL, and leaves REST as it is', async () => {
    const html = await get(app, {}, { accept: 'text/html' });
    expect(html.statusCode).toBe(406);
    const rest = await app.inject({ url: '/api/outfits/', headers: { host: 'shop.test' } });
    expect(rest.body).toBe((await gateway.get('/api/outfits/')).body);
  });
});

describe('a file that cannot be taken', () => {
  const ranged = (variable: string) => `query (${variable}) { outfitConnection(first: $n) {
    edges { node { user { outfits { results { user { outfits { count } } } } } } } } }`;
  const filtered = (filter: string) =>
    ['a', 'b', 'c', 'd'].map((name) => `${name}: outfits(filter: ${filter}) { count }`).join(' ');
  const deep = `{ ${'node(id: "x") { ... on User { outfits { results { user { '.repeat(9)} id ${'}'.repeat(45)} }`;
  const manifest = (version: number) => ({ ...apolloManifest(), version });
  const twoOfOne = [count, page].map((body) => ({ id: 'a', body }));
  test.each<[RegExp, unknown]>([
    [/it is not JSON \(.+\)/, '{"a":\n'],
    [/it is neither an object of texts by their ids nor a manifest/, [count]],
    [/it is neither/, manifest(2)],
    [/there is no document in it/, {}],
    [/the id "[0-9a-f]{64}" is not the hash/, { [sha256(page)]: count }],
    [/is not the hash/, { [`sha256:${sha256(page)}`]: count }],
    [/the document "bad" cannot be run: Syntax Error/, { bad: 'query {' }],
    [/"bad" cannot be run: Cannot query field "nope"/, { count, bad: '{ nope }' }],
    [/"bad" cannot be run: it has no operation/, { bad: 'fragment F on Outfit { id }' }],
    [/the document "deep" cannot be run: .*levels/, { deep }],
    // With the default of a variable.
    [
      /the document "costly" cannot be run: The document can give 6401 objects, but at most 3000/,
      { costly: ranged('$n: Int = 100') },
    ],
    [
      /the document "heavy" cannot be run: The filters of the document \(hasVideo\) weigh 16/,
      { heavy: `{ ${filtered('{ hasVideo: true }')} }` },
    ],
    [/two documents in it have the id "a"/, apolloManifest(...twoOfOne)],
  ])('a file stops the start with the sentence %s', async (what, content) => {
    const start = withDocuments(content);
    await expect(start).rejects.toThrow(what);
    await expect(start).rejects.toThrow(/^TRUSTED_DOCUMENTS is "[^"]+\.json", but [^\n]+[^.\n]\.$/);
  });

  test('a file that cannot be taken does not refuse documents that some variables make cheap enough', async () => {
    const taken = `query ($f: OutfitFilter) { ${filtered('$f')} }`;
    await withDocuments({ ranged: ranged('$n: Int!'), filtered: taken });
  });

  test('a file that cannot be taken is named by the process, in one sentence', async () => {
    const environment = await migratedEnvironmentOf('PostgreSQL');
    const server = runServer({ ...environment, TRUSTED_DOCUMENTS: join(folder, 'missing.json') });
    expect(await failure(server, 2)).toMatch(
      /^TRUSTED_DOCUMENTS is ".*missing\.json", but it cannot be read \(ENOENT: .*\)\.$/,
    );
  });
});
