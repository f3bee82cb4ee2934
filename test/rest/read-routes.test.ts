// REST_DOCUMENTS: a file of GraphQL operations, with variables of every type, becomes REST paths at start, or stops it
// with a sentence.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Validator } from '@seriousme/openapi-schema-validator';
import { afterAll, expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { schema as ownSchema } from '../../src/graphql/schema.ts';
import { readRoutes } from '../../src/rest/read-routes.ts';
import { makeFolder } from '../support/cli/folder.ts';
import { useGateway } from '../support/gateway.ts';
import { extend } from '../support/graphql/schema-extension.ts';
import { hrefsOf, textsOf } from '../support/http/html.ts';
import { createChecker } from '../support/http/openapi-answers.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const folder = makeFolder(afterAll);

const file = join(folder, 'rest.graphql');
const read = (content: string | Buffer) => {
  writeFileSync(file, content);
  return readRoutes(ownSchema, file);
};

const user = 'record: user(databaseId: $id) { username }';
const list = 'page: outfits { count next: nextPage results { id } }';
const at = (argument: string, selection = list) => `query A @route(${argument}) { ${selection} }`;

const ownPath = /as path of @route, which must be a path of your API/;
const withId = (query: string) => query.replace('query A', 'query A($id: [Int!])');
const making =
  '(input: { imageKey: $image }, validateOnly: $validate_only) { record: outfit { id } errors { field code messages } }';

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
    /A cannot be served: \$n says which page, which is a parameter of the query string only/,
    'query A($n: Int) @route(path: "/a/:n/") { page: outfits(page: $n) { count } }',
  ],
  [
    /\$end says which page/,
    'query A($end: Boolean) @route(path: "/a/:end") { page: outfits(last: $end) { count } }',
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
    `mutation A($image: String, $validate_only: Boolean) @route(path: "/a") { created: createOutfit${making} }`,
  ],
  [
    /its variables must be fields of its input, but for validateOnly: \$validate_only/,
    `mutation A($image: String) @route(path: "/a") { created: createOutfit${making.replace(', validateOnly: $validate_only', '')} }`,
  ],
  [
    /A cannot be served: its variables must be fields/,
    `mutation A($id: ID, $title: String) @route(path: "/a/:id") { created: updateOutfit${making.replace(/input.*only/, 'id: $id, input: { title: $title }')} }`,
  ],
  [/operation A /, `subscription A @route(path: "/a") { ${list} }`],
])('a file stops the start with the sentence %s', (sentence, content) => {
  expect(() => read(content)).toThrow(sentence);
  expect(() => read(content)).toThrow(`REST_DOCUMENTS is "${file}", but `);
});

test('the start is stopped by a file that does not exist', () => {
  expect(() => readRoutes(ownSchema, join(folder, 'none'))).toThrow(/it cannot be read \(ENOENT/);
});

const rows = [...generateOutfits({ outfits: 45, users: 6 })].map((row, index) => ({
  ...row,
  id: index + 1,
  // As long as Django allows.
  user: { ...row.user, username: row.user.username.padEnd(150, 'x') },
}));
const newest = rows.toSorted((a, b) => Number(b.created - a.created) || b.id - a.id);
const owner = rows[0]?.userId ?? 0;
const own = newest.filter(({ userId }) => userId === owner);
const ownIds = own.map(({ id }) => id).sort((a, b) => a - b);

const schema = extend(
  `extend type Query {
     told(
       "How often." number: Int, part: Float, flag: Boolean, words: [String!], numbers: [Int!], id: ID, moment: DateTime,
       ordering: OutfitOrdering, orderings: [OutfitOrdering!]
     ): Told!
   }
   type Told { count: Int! results: [String!]! lists: [[String!]]! }`,
  {
    'Query.told': (_root, args) => ({ count: 1, results: [JSON.stringify(args)] }),
    'Told.count': (told) => (told as { count: number }).count,
    'Told.lists': () => [['a'], null],
  },
);

/** Paths of another API. */
const routes = `
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
query Newest($username: String!, $page: Int, $ordering: OutfitOrdering) @route(path: "/people/:username/newest/") {
  record: user(username: $username) { id: databaseId outfits(page: $page, ordering: $ordering) { count results { id: databaseId } } }
}
query Told($number: Int, $part: Float, $flag: Boolean, $word: [String!], $numbers: [Int!], $id: ID, $moment: DateTime,
  $ordering: OutfitOrdering, $orderings: [OutfitOrdering!])
@route(path: "/api/told/") {
  page: told(number: $number, part: $part, flag: $flag, words: $word, numbers: $numbers, id: $id, moment: $moment,
    ordering: $ordering, orderings: $orderings) { count results }
}
query First($size: Int! = 3, $ordering: OutfitOrdering, $after: String! = "-") @route(path: "/api/first/") {
  page: told(number: $size, ordering: $ordering, words: [$after]) { results }
}
query Needed($number: Int!) @route(path: "/api/needed/") { page: told(number: $number) { results: lists } }
query Titles($page: Int, $flag: Boolean = true) @route(path: "/api/titles/") {
  page: outfits(page: $page) {
    results { id: databaseId ... on Outfit { title @include(if: $flag) } ... on Node { key: id } __typename video }
  }
}
fragment Look on Outfit { key: databaseId heading: title by: user { handle: username } }
fragment OutfitRecord on Outfit { id: databaseId heading: title }
`;
writeFileSync(join(folder, 'another.graphql'), routes);

const settings = { REST_DOCUMENTS: join(folder, 'another.graphql'), AUTH_JWT_SECRET: secret };
const gateway = useGateway('PostgreSQL', rows, settings, { schema });
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
  [
    `/people/${rows[0]?.user.username}/newest/?ordering=id&username=nobody`,
    200,
    {
      id: owner,
      outfits: { count: own.length, results: ownIds.map((id) => ({ id })) },
    },
  ],
  [
    `/people/${rows[0]?.user.username}/newest/?page=0`,
    400,
    { detail: 'page must be 1 or more, but it is 0.' },
  ],
  [
    `/people/${rows[0]?.user.username}/newest/?page=99`,
    404,
    { detail: expect.stringContaining('99') },
  ],
  ['/api/first/', 200, { results: ['{"number":3,"words":["-"]}'] }],
  [
    '/api/first/?size=9&after=b&ordering=id',
    200,
    { results: ['{"number":9,"words":["b"],"ordering":"id"}'] },
  ],
  ['/api/needed/', 400, { number: ['This field is required.'] }],
  ['/api/needed/?number=1', 200, { results: [['a'], null] }],
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
  'GET %s of a file with the paths of another API is answered',
  async (target, status, body, headers = {}) => {
    const response = await gateway.get(target);
    expect(response.json()).toEqual(body);
    expect(response.statusCode).toBe(status);
    expect({ ...response.headers, ...headers }).toEqual(response.headers);
    for (const [name, value] of Object.entries(headers)) expect(response.headers[name]).toBe(value);
    const again = await gateway.get(target, { 'if-none-match': String(response.headers['etag']) });
    expect(again.statusCode).toBe(status === 200 ? 304 : status);
    const html = await gateway.get(target, { accept: 'text/html' });
    expect(html.statusCode).toBe(status);
    expect(JSON.parse(textsOf(html.body, 'pre').at(-1) ?? '')).toEqual(body);
  },
);

test('the page of a page past the end leads to the first one by the parameter of its operation', async () => {
  const html = await gateway.get('/v2/looks/?p=24&size=2', { accept: 'text/html' });
  expect(hrefsOf(html.body)).toEqual(expect.arrayContaining(['?p=1&size=2', '?p=last&size=2']));
});

test.each([
  ['number=7', { number: 7 }],
  ['number=+7', { number: 7 }],
  ['number=%20-7%20', { number: -7 }],
  ['number=1&number=2', { number: 2 }],
  ['number=', {}],
  ['part=1.5', { part: 1.5 }],
  ['part=2', { part: 2 }],
  ['flag=true', { flag: true }],
  ['flag=0', { flag: false }],
  ['flag=no', { flag: false }],
  ['word=a', { words: ['a'] }],
  ['word=a&word=b+c&word=', { words: ['a', 'b c'] }],
  ['numbers=3&numbers=-1', { numbers: [3, -1] }],
  ['id=7', { id: '7' }],
  ['id=x%2Fy', { id: 'x/y' }],
  ['ordering=-like_count', { ordering: '-like_count' }],
  ['orderings=id&orderings=-id', { orderings: ['id', '-id'] }],
  ['unknown=1', {}],
])('%s is read by the type of its variable', async (query, expected) => {
  const { results } = (await gateway.get(`/api/told/?${query}`)).json();
  expect(JSON.parse(results[0])).toEqual(expected);
});

test.each([
  ['number=x', { number: ['A valid integer is required.'] }],
  ['number=1.5', { number: ['A valid integer is required.'] }],
  ['number=2147483648', { number: ['A valid integer is required.'] }],
  [`number=${'9'.repeat(400)}`, { number: ['A valid integer is required.'] }],
  ['part=x', { part: ['A valid number is required.'] }],
  [`part=${'9'.repeat(400)}`, { part: ['A valid number is required.'] }],
  ['flag=maybe', { flag: ['Must be a valid boolean.'] }],
  ['word=a&word=%00', { word: ['Null characters are not allowed.'] }],
  ['numbers=1&numbers=x', { numbers: ['A valid integer is required.'] }],
  ['id=%00', { id: ['Null characters are not allowed.'] }],
  ['moment=today', { moment: [expect.stringContaining('RFC 3339')] }],
  ['ordering=x', { ordering: [expect.stringMatching(/^Select a valid choice. x is not one/)] }],
  ['orderings=id&orderings=x', { orderings: [expect.stringMatching(/^Select a valid choice/)] }],
])('%s is a 400 that names the parameter', async (query, expected) => {
  const response = await gateway.get(`/api/told/?${query}`);
  expect([response.statusCode, response.json()]).toEqual([400, expected]);
});

test('the path without its slash redirects with its parameters encoded', async () => {
  const response = await gateway.get('/people/a%2Fb%20c?x=1');
  expect(response.statusCode).toBe(301);
  expect(response.headers['location']).toBe('/people/a%2Fb%20c/?x=1');
});

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
  expect(Object.keys(document.paths)).toHaveLength(16);
  const check = createChecker(document);
  const outfit = `/api/outfits/${rows[0]?.id}`;
  for (const [path, target, status] of [
    ['/v2/looks/', '/v2/looks/?size=2&p=2', 200],
    ['/v2/looks/', '/v2/looks/?p=99', 404],
    ['/api/bare/', '/api/bare/?per_page=2', 200],
    ['/api/skipped/', '/api/skipped/?skip=50', 200],
    ['/api/users/{id}/outfits/', '/api/users/999/outfits/', 200],
    ['/api/outfits/popular/', '/api/outfits/popular/', 200],
    ['/api/needed/', '/api/needed/?number=1', 200],
    ['/api/needed/', '/api/needed/', 400],
    ['/api/titles/', '/api/titles/', 200],
    ['/api/titles/', '/api/titles/?flag=0', 200],
    ['/api/outfits/{id}/', `${outfit}/`, 200],
    ['/api/outfits/{id}/', `/api/outfits/${'0'.repeat(200)}/`, 404],
    ['/api/outfits/{id}', outfit, 301],
    ['/api/outfits/{id}', `/api/outfits/${'0'.repeat(200)}`, 301],
  ] as const) {
    const response = await gateway.get(target);
    expect([target, response.statusCode]).toEqual([target, status]);
    check('GET', path, response);
  }
  expect(document.paths['/api/bare/'].get.responses[200].headers).toHaveProperty('X-Total-Pages');
  const { operationId, parameters } = document.paths['/api/told/'].get;
  expect(operationId).toBe('told');
  expect(parameters).toMatchObject([
    { name: 'number', in: 'query', required: false, description: 'How often.' },
    { name: 'part', schema: { type: 'number' } },
    { name: 'flag', schema: { type: 'boolean' } },
    { name: 'word', schema: { type: 'array', items: { type: 'string' } } },
    { name: 'numbers', schema: { type: 'array', items: { type: 'integer' } } },
    { name: 'id', schema: { type: 'string' } },
    { name: 'moment', schema: { $ref: '#/components/schemas/DateTime' } },
    { name: 'ordering', schema: { type: 'string' } },
    { name: 'orderings', schema: { type: 'array', items: { type: 'string' } } },
    { name: 'If-None-Match', in: 'header' },
  ]);
  const parametersOf = (path: string) => document.paths[path].get.parameters;
  expect(parametersOf('/api/skipped/')).toMatchObject([{ name: 'skip' }, { name: 'take' }, {}]);
  expect(parametersOf('/api/needed/')[0]).toMatchObject({ in: 'query', required: true });
  expect(parametersOf('/api/first/')[0].schema).toMatchObject({ type: 'integer', default: 3 });
  expect(parametersOf('/v2/looks/{key}')[0]).toMatchObject({ in: 'path', required: true });
});
