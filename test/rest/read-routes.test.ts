// REST_DOCUMENTS: a file of GraphQL operations becomes REST paths at start, or stops it with a sentence.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Validator } from '@seriousme/openapi-schema-validator';
import { afterAll, expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { schema } from '../../src/graphql/schema.ts';
import { readRoutes } from '../../src/rest/read-routes.ts';
import { makeFolder } from '../support/cli/folder.ts';
import { useGateway } from '../support/gateway.ts';
import { createChecker } from '../support/http/openapi-answers.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const folder = makeFolder(afterAll);

const file = join(folder, 'rest.graphql');
const read = (content: string | Buffer) => {
  writeFileSync(file, content);
  return readRoutes(schema, file);
};

const user = 'record: user(databaseId: $id) { username }';
const list = 'page: outfits { count next: nextPage results { id } }';
const at = (argument: string, selection = list) => `query A @route(${argument}) { ${selection} }`;

const ownPath = /as path of @route, which must be a path of your API/;
const withId = (query: string) => query.replace('query A', 'query A($id: [Int!])');
const making =
  '(input: { imageKey: $image }) { record: outfit { id } errors { field code messages } }';

test.each<[sentence: RegExp, content: string | Buffer]>([
  [/it cannot be read/, Buffer.from([0xff])],
  [/line 2 of it is not GraphQL \(Syntax Error: /, `query A {\n  page: }`],
  [/line 1 of it is not GraphQL/, ''],
  [/a definition that is not an operation or a fragment/, 'type A { a: Int }'],
  [/an operation in it has no name/, `{ ${list} }`],
  [/two definitions in it have the name A/, `${at('path: "/a"')} ${at('path: "/b"')}`],
  [/no operation has its fragment F/, `fragment F on User { id } ${at('path: "/a"')}`],
  [/A cannot be run: Unknown fragment "F"/, at('path: "/a"', 'page: outfits { results { ...F } }')],
  [/operation A has no path: write @route/, `query A { ${list} }`],
  [/operation A has no path: add path/, at('name: "A"')],
  [/has methods in @route, which has only path, name/, at('path: "/a", methods: GET')],
  [/has "\/graphql" as path of @route, which must be a path of your API/, at('path: "/graphql"')],
  [ownPath, at('path: "/outfits/"')],
  [ownPath, at('path: "/a?b=1"')],
  [/has 7 as path of @route/, at('path: 7')],
  [/cannot be run: Cannot query field "cost"/, at('path: "/a"', 'page: outfits { cost }')],
  [/has no variable \$id, which its path \/a\/:id\/ names/, at('path: "/a/:id/"')],
  [/field has the alias page \(a list\) or record/, at('path: "/a"', 'outfits { count }')],
  [
    /operation A /,
    'mutation A @route(path: "/a") { page: deleteOutfit(input: { id: "a" }) { id } }',
  ],
  [
    /its envelope names nothing, but page has count, next, results/,
    at('path: "/a", envelope: { items: nothing }'),
  ],
  [
    /the header X-Total-Count names total, but page has/,
    at('path: "/a", headers: ["X-Total-Count: total"]'),
  ],
  [
    /the header "Vary: count" must be a name of your own/,
    at('path: "/a", headers: ["Vary: count"]'),
  ],
  [
    /only a list has an envelope and headers/,
    `query A($id: Int!) @route(path: "/a/:id", envelope: results) { ${user} }`,
  ],
  [
    /\$f of a stored document is OutfitFilter/,
    'query A($f: OutfitFilter) @route(path: "/a") { page: outfits(filter: $f) { count } }',
  ],
  [
    /operation B answers GET \/a\/:user, as the operation A does/,
    `${withId(at('path: "/a/:id/"', list.replace('outfits', 'outfits(filter: { userDatabaseIds: $id })')))}
     query B($user: Int!) @route(path: "/a/:user") { record: user(databaseId: $user) { id } }`,
  ],
  [
    /\/a has a mutation only/,
    `mutation A($image: String) @route(path: "/a") { created: createOutfit${making} }`,
  ],
  [/operation A /, `subscription A @route(path: "/a") { ${list} }`],
])('a file stops the start with the sentence %s', (sentence, content) => {
  expect(() => read(content)).toThrow(sentence);
  expect(() => read(content)).toThrow(`REST_DOCUMENTS is "${file}", but `);
});

test('the start is stopped by a file that does not exist', () => {
  expect(() => readRoutes(schema, join(folder, 'none'))).toThrow(/it cannot be read \(ENOENT/);
});

const rows = [...generateOutfits({ outfits: 45, users: 6 })].map((row, index) => ({
  ...row,
  id: index + 1,
}));
const newest = rows.toSorted((a, b) => Number(b.created - a.created) || b.id - a.id);
const owner = rows[0]?.userId ?? 0;
const own = newest.filter(({ userId }) => userId === owner);

/** Ten paths of another API. */
const tenRoutes = `
query Looks($p: Int, $last: Boolean, $size: Int, $sort: OutfitOrdering)
@route(path: "/v2/looks/", name: "Looks", envelope: { meta: { total: total, pages: pages, self: "looks", version: 2, extra: null }, links: [prev, next], data: items }) {
  page: outfits(page: $p, last: $last, pageSize: $size, ordering: $sort) {
    total: count pages: pageCount next: nextPage prev: previousPage items: results { ...Look }
  }
}
query Look($key: Int!) @route(path: "/v2/looks/:key", name: "Look") { record: outfit(databaseId: $key) { ...Look } }
mutation MakeLook($picture: String, $heading: String, $validate_only: Boolean) @route(path: "/v2/looks/") {
  created: createOutfit(input: { imageKey: $picture, title: $heading }, validateOnly: $validate_only) {
    record: outfit { ...Look } errors { field code messages }
  }
}
query Bare($page: Int, $last: Boolean, $per_page: Int)
@route(path: "/api/bare/", envelope: results, headers: ["X-Total-Count: count", "X-Total-Pages: pageCount", "Link: previous next"]) {
  page: outfits(page: $page, last: $last, pageSize: $per_page) { count pageCount next: nextPage previous: previousPage results { id: databaseId } }
}
query Skipped($skip: Int, $take: Int) @route(path: "/api/skipped/") {
  page: outfits(offset: $skip, pageSize: $take) { total: count more: nextOffset rows: results { id: databaseId } }
}
query OfUser($id: [Int!], $page: Int, $last: Boolean) @route(path: "/api/users/:id/outfits/", name: "Outfits of a user") {
  page: outfits(filter: { userDatabaseIds: $id }, page: $page, last: $last, pageSize: 3) { count next: nextPage previous: previousPage results { id: databaseId } }
}
query Person($username: String!) @route(path: "/people/:username/") { record: user(username: $username) { id: databaseId username } }
query Popular($min: Int) @route(path: "/api/outfits/popular/", envelope: { results: results }) {
  page: outfits(ordering: LIKE_COUNT_DESC, pageSize: 5, filter: { likesFrom: $min }) { results { likes } }
}
query Total @route(path: "/api/total/") { record: outfits { total: count } }
query Me @route(path: "/api/me/") { record: viewer { user { id: databaseId } } }
fragment Look on Outfit { key: databaseId heading: title by: user { handle: username } }
fragment OutfitRecord on Outfit { id: databaseId heading: title }
`;
writeFileSync(join(folder, 'ten.graphql'), tenRoutes);

const gateway = useGateway('PostgreSQL', rows, {
  REST_DOCUMENTS: join(folder, 'ten.graphql'),
  AUTH_JWT_SECRET: secret,
});
const looks = newest.map(({ id, title, user }) => ({
  key: id,
  heading: title,
  by: { handle: user.username },
}));
const ids = (from: number, size: number) =>
  newest.slice(from, from + size).map(({ id }) => ({ id }));
const to = (path: string) => `http://shop.test${path}`;

test.each<
  [target: string, status: number, body: unknown, headers?: Record<string, string | undefined>]
>([
  [
    '/v2/looks/?size=2&p=2',
    200,
    {
      meta: { total: 45, pages: 23, self: 'looks', version: 2, extra: null },
      links: [to('/v2/looks/?p=1&size=2'), to('/v2/looks/?p=3&size=2')],
      data: looks.slice(2, 4),
    },
  ],
  [
    '/v2/looks/?size=50&sort=nope',
    400,
    { sort: [expect.stringContaining('Select a valid choice. nope')] },
  ],
  ['/v2/looks/?p=24&size=2', 404, { detail: 'Invalid page.' }],
  [`/v2/looks/${newest[0]?.id}`, 200, looks[0]],
  ['/v2/looks/99', 404, { detail: 'Not found.' }],
  [
    '/api/bare/?per_page=2&page=2',
    200,
    ids(2, 2),
    {
      'x-total-count': '45',
      'x-total-pages': '23',
      link: `<${to('/api/bare/?page=1&per_page=2')}>; rel="prev", <${to('/api/bare/?page=3&per_page=2')}>; rel="next"`,
    },
  ],
  ['/api/bare/?per_page=50', 200, ids(0, 45), { 'x-total-count': '45', link: undefined }],
  [
    '/api/skipped/?skip=4&take=2',
    200,
    { total: 45, more: to('/api/skipped/?skip=6&take=2'), rows: ids(4, 2) },
  ],
  [
    `/api/users/${owner}/outfits/`,
    200,
    {
      count: own.length,
      next: own.length > 3 ? to(`/api/users/${owner}/outfits/?page=2`) : null,
      previous: null,
      results: own.slice(0, 3).map(({ id }) => ({ id })),
    },
  ],
  ['/api/users/999/outfits/', 200, { count: 0, next: null, previous: null, results: [] }],
  ['/api/users/x/outfits/', 404, { detail: 'Not found.' }],
  [`/people/${rows[0]?.user.username}/`, 200, { id: owner, username: rows[0]?.user.username }],
  [
    '/api/outfits/popular/',
    200,
    {
      results: rows
        .map(({ likes }) => likes)
        .sort((a, b) => b - a)
        .slice(0, 5)
        .map((likes) => ({ likes })),
    },
  ],
  ['/api/total/', 200, { total: 45 }],
  ['/api/me/', 404, { detail: 'Not found.' }],
  [
    '/api/outfits/?page=3',
    200,
    {
      count: 45,
      next: null,
      previous: to('/api/outfits/?page=2'),
      results: newest.slice(40).map(({ id, title }) => ({ id, heading: title })),
    },
  ],
])(
  'GET %s of a file with ten paths of another API is answered',
  async (target, status, body, headers = {}) => {
    const response = await gateway.get(target);
    expect(response.json()).toEqual(body);
    expect(response.statusCode).toBe(status);
    expect({ ...response.headers, ...headers }).toEqual(response.headers);
    for (const [name, value] of Object.entries(headers)) expect(response.headers[name]).toBe(value);
    const again = await gateway.get(target, { 'if-none-match': String(response.headers['etag']) });
    expect(again.statusCode).toBe(status === 200 ? 304 : status);
    const html = await gateway.get(target, { accept: 'text/html' });
    expect([html.statusCode, html.headers['content-type']]).toEqual([
      status,
      'text/html; charset=utf-8',
    ]);
  },
);

test('POST to a path of a file creates by the names of the file, also at the built-in path', async () => {
  const headers = await signIn(owner);
  const post = (url: string, payload: object) =>
    gateway.app.inject({ method: 'POST', url, headers, payload });
  const picture = `outfits/${crypto.randomUUID()}.png`;
  const made = await post('/v2/looks/', { picture, heading: 'New' });
  expect([made.statusCode, made.json()]).toEqual([
    201,
    { key: expect.any(Number), heading: 'New', by: { handle: rows[0]?.user.username } },
  ]);
  const refused = await post('/v2/looks/', { heading: 'x'.repeat(256) });
  expect([refused.statusCode, Object.keys(refused.json())]).toEqual([400, ['picture', 'heading']]);
  const other = await post('/api/outfits/', {
    image_key: picture.replace('png', 'jpeg'),
    title: 'Old',
  });
  expect(other.json()).toEqual({ id: expect.any(Number), heading: 'Old' });
  const options = await gateway.app.inject({ method: 'OPTIONS', url: '/v2/looks/', headers });
  expect(Object.keys(options.json().actions.POST)).toEqual(['key', 'heading', 'by']);
});

test('the OpenAPI document has the paths of a file, and their answers do not contradict it', async () => {
  const document = (await gateway.get('/api/openapi.json')).json();
  expect(await new Validator().validate(document)).toEqual({ valid: true });
  expect(Object.keys(document.paths)).toHaveLength(11);
  const check = createChecker(document);
  for (const [path, target] of [
    ['/v2/looks/', '/v2/looks/?size=2&p=2'],
    ['/v2/looks/', '/v2/looks/?p=99'],
    ['/api/bare/', '/api/bare/?per_page=2'],
    ['/api/skipped/', '/api/skipped/?skip=50'],
    ['/api/users/{id}/outfits/', '/api/users/999/outfits/'],
    ['/api/outfits/popular/', '/api/outfits/popular/'],
  ] as const) {
    check('GET', path, await gateway.get(target));
  }
  expect(document.paths['/api/bare/'].get.responses[200].headers).toHaveProperty('X-Total-Pages');
  expect(document.paths['/api/skipped/'].get.parameters.slice(0, 2)).toMatchObject([
    { name: 'skip' },
    { name: 'take' },
  ]);
});
