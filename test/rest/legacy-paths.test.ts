// docs/legacy-paths.md: its operations as files of REST_DOCUMENTS, and the requests that it shows; and the operations of
// CONTRIBUTING.md.
import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { makeFolder } from '../support/cli/folder.ts';
import { type TestGateway, useGateway, userId } from '../support/gateway.ts';
import { hrefsOf, textsOf } from '../support/http/html.ts';

const rows = [...generateOutfits({ outfits: 45, users: 6 })].map((row, index) => ({
  ...row,
  id: index + 1,
}));
const newest = rows.toSorted((a, b) => Number(b.created - a.created) || b.id - a.id);
const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const folder = makeFolder(afterAll);

/** A gateway with a file of REST_DOCUMENTS, as somebody who has the package starts it. */
function use(documents: string) {
  const file = join(folder, `${randomUUID()}.graphql`);
  writeFileSync(file, documents);
  return useGateway('PostgreSQL', rows, documents === '' ? {} : { REST_DOCUMENTS: file });
}

interface Section {
  readonly title: string;
  readonly documents: string;
  readonly shown: readonly (readonly [target: string, status: number, text: string])[];
}

function readSection(text: string): Section {
  const [title = ''] = text.split('\n', 1);
  const blockOf = (language: string) =>
    new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``).exec(text)?.[1] ?? '';
  const shown = [...blockOf('http').matchAll(/^GET (.+)\n(\d+) (.+)$/gm)].map(
    ([, target = '', status, text = '']) => [target, Number(status), text] as const,
  );
  return { title, documents: blockOf('graphql stored'), shown };
}

const sections = read('docs/legacy-paths.md').split(/^## /m).slice(1).map(readSection);
const documentsOf = (title: string) =>
  sections.find((one) => one.title.includes(title))?.documents ?? '';

test('docs/legacy-paths.md shows requests in each section', () => {
  expect(sections.length).toBe(9);
  for (const { title, shown } of sections) expect(shown.length, title).toBeGreaterThan(0);
});

describe.each(sections)('$title', ({ documents, shown }) => {
  const gateway = use(documents);
  test('the OpenAPI document is there', async () => {
    expect((await gateway.get('/api/openapi.json')).statusCode).toBe(200);
  });

  test.each(shown)('GET %s', async (target, status, text) => {
    const response = await gateway.get(target);
    expect(response.body).toContain(text);
    expect(response.statusCode).toBe(status);
    // From memory too.
    expect((await gateway.get(target)).body).toBe(response.body);
    const html = await gateway.get(target, { accept: 'text/html' });
    expect([html.statusCode, html.headers['content-type']]).toEqual([
      status,
      'text/html; charset=utf-8',
    ]);
    const shown = textsOf(html.body, 'pre').findLast((text) => /^[{[]/.test(text)) ?? '';
    expect(JSON.parse(shown)).toEqual(response.json());
    // What only the table of paths knows.
    if (status === 200) expect(hrefsOf(html.body).join()).toContain('/graphql?query=');
  });
});

describe('the example of CONTRIBUTING.md', () => {
  const text = read('CONTRIBUTING.md').split('## How to add a REST path')[1] ?? '';
  const gateway = use(/```graphql\n([\s\S]*?)```/.exec(text)?.[1] ?? '');

  test('the example of CONTRIBUTING.md is a list by likes, and a user', async () => {
    const { results } = (await gateway.get('/api/popular/')).json();
    const likes = rows.map((row) => row.likes).sort((a, b) => b - a);
    expect(results.map((one: { likes: number }) => one.likes)).toEqual(likes.slice(0, 20));
    const { id, username } = newest[0]?.user ?? {};
    expect((await gateway.get(`/api/users/${id}/`)).json()).toEqual({ id, username });
  });
});

/** Ids of a page, or its status. */
const ask = async (gateway: TestGateway, query: string) => {
  const response = await gateway.get(`/api/outfits/?${query}`);
  if (response.statusCode !== 200) return { status: response.statusCode, body: response.body };
  const { count, next, previous, results } = response.json();
  const ids = results.map(({ id }: { id: number }) => id) as number[];
  const queryOf = (link: string | null) => link?.split('?')[1] ?? null;
  return { count, ids, next: queryOf(next), previous: queryOf(previous) };
};
const idsFrom = (start: number, size: number) =>
  newest.slice(start, start + size).map(({ id }) => id);

describe('limit and offset, as Django REST Framework reads them', () => {
  const gateway = use(documentsOf('LimitOffset'));
  test.each<[query: string, limit: number, offset: number, among?: (own: string) => string]>([
    ['', 20, 0],
    ['limit=7', 7, 0],
    ['limit=7&offset=3', 7, 3],
    ['limit=%2B7&offset=%2003%20', 7, 3],
    ['limit=7&offset=40', 7, 40],
    ['limit=7&offset=44', 7, 44],
    ['limit=7&offset=45', 7, 45],
    ['limit=7&offset=46', 7, 46],
    ['limit=101', 100, 0],
    [`limit=${'9'.repeat(400)}&offset=2`, 100, 2],
    [`limit=5&offset=${10n ** 30n}`, 5, 2_147_483_646],
    ['limit=0&offset=2', 20, 2],
    ['limit=-1&offset=-1', 20, 0],
    ['limit=x&offset=x', 20, 0],
    ['limit=1.5&offset=1e1', 20, 0],
    ['limit=&offset=', 20, 0],
    ['limit=5&offset=9&limit=6&offset=8', 6, 8],
    ['limit=5&offset=9&a=%20b&page=3', 5, 9, (own) => `a=+b&${own}&page=3`],
    ['limit=5&offset=9&ordering=-created', 5, 9, (own) => `${own}&ordering=-created`],
    ['limit=%00&offset=%FF', 20, 0],
  ])('%s', async (query, limit, offset, among = (own) => own) => {
    const link = (to: number) => among(`limit=${limit}${to > 0 ? `&offset=${to}` : ''}`);
    expect(await ask(gateway, query)).toEqual({
      count: 45,
      ids: idsFrom(offset, limit),
      next: offset + limit < 45 ? link(offset + limit) : null,
      previous: offset > 0 ? link(Math.max(0, offset - limit)) : null,
    });
  });
});

describe('page_size', () => {
  const gateway = use(documentsOf('page_size'));
  test.each([
    ['page_size=7', 7, 1],
    ['page_size=7&page=3', 7, 3],
    ['page_size=7&page=last', 7, 7],
    ['page_size=1&page=45', 1, 45],
    ['page_size=45&page=last', 45, 1],
    ['page_size=1000', 100, 1],
    [`page_size=${10n ** 30n}`, 100, 1],
    ['page_size=0&page=2', 20, 2],
    ['page_size=-5', 20, 1],
    ['page_size=2.5', 20, 1],
    ['page_size=', 20, 1],
    ['page_size=3&page_size=4&page=2', 4, 2],
  ])('%s', async (query, size, page) => {
    const { ids, count } = await ask(gateway, query);
    expect({ ids, count }).toEqual({ ids: idsFrom((page - 1) * size, size), count: 45 });
  });

  test.each(['page_size=7&page=8', 'page_size=1&page=2147483647'])(
    '%s is past the end',
    async (query) => {
      const body = '{"detail":"Invalid page."}';
      expect(await ask(gateway, query)).toEqual({ status: 404, body });
    },
  );

  test('the OpenAPI document has its range', async () => {
    const { paths } = (await gateway.get('/api/openapi.json')).json();
    const { parameters } = paths['/api/outfits/'].get;
    expect(parameters).toContainEqual({
      name: 'page_size',
      in: 'query',
      required: false,
      description: expect.stringMatching(/^Outfits per page, from 1 to 100/),
      schema: { type: 'integer', format: 'int32', minimum: 1, maximum: 100 },
    });
  });
});

describe('user', () => {
  const gateway = use(documentsOf('?user=5'));
  const users = [...new Set(rows.map(({ userId }) => userId))];
  const of = (...ids: (number | undefined)[]) =>
    newest.filter(({ userId }) => ids.includes(userId)).map(({ id }) => id);
  test('user is one user, several, or all', async () => {
    const [a, b] = users;
    expect((await ask(gateway, `user=${a}`)).ids).toEqual(of(a).slice(0, 20));
    expect((await ask(gateway, `user=${a}&user=${b}`)).count).toBe(of(a, b).length);
    expect((await ask(gateway, 'user=')).count).toBe(45);
    expect((await ask(gateway, 'user=-1&user=0')).count).toBe(0);
    const many = Array.from({ length: 101 }, (_, index) => `user=${index}`).join('&');
    expect(await ask(gateway, many)).toMatchObject({ status: 400 });
  });

  test('users by number and by id are both conditions of a filter in GraphQL', async () => {
    const [user = 0] = users;
    const count = async (filter: string) =>
      (await gateway.post(`{ outfits(filter: { ${filter} }) { count } }`)).data;
    const result = (count: number) => ({ outfits: { count } });
    expect(await count(`userDatabaseIds: [${user}], userIds: ["${userId(user)}"]`)).toEqual(
      result(of(user).length),
    );
    expect(await count(`userDatabaseIds: [${user + 1000}], userIds: ["${userId(user)}"]`)).toEqual(
      result(0),
    );
    expect(await count('userDatabaseIds: []')).toEqual(result(0));
  });

  test('pages of a user in GraphQL have a size and an offset', async () => {
    const [user = 0] = users;
    const own = of(user).toSorted((a, b) => a - b);
    const list = 'outfits(ordering: ID_ASC, pageSize: 2, offset: 1)';
    const { data } = await gateway.post(
      `{ user(databaseId: ${user}) { ${list} { results { databaseId } nextOffset previousOffset page } } }`,
    );
    const results = own.slice(1, 3).map((databaseId) => ({ databaseId }));
    expect(data).toEqual({
      user: { outfits: { results, nextOffset: 3, previousOffset: 0, page: 1 } },
    });
  });

  test('the page before an offset past the end is the last page', async () => {
    const { data } = await gateway.post(
      '{ outfits(pageSize: 20, offset: 999) { nextPage pageCount previousPage } }',
    );
    expect(data).toEqual({ outfits: { nextPage: null, pageCount: 3, previousPage: 3 } });
  });
});
