// REST is data: documents that only a test has, with variables of every type, become legacy paths.
import { Validator } from '@seriousme/openapi-schema-validator';
import { expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import type { Route } from '../../src/rest/routes.ts';
import { keepLog, openGateway, useGateway } from '../support/gateway.ts';
import { documentOf, extend } from '../support/graphql/schema-extension.ts';
import { createChecker } from '../support/http/openapi-answers.ts';

const rows = [...generateOutfits({ outfits: 45, users: 6 })];
const [first] = rows;
const owner = first?.userId ?? 0;
const own = rows.filter(({ userId }) => userId === owner);

const schema = extend(
  `extend type Query {
     told(
       "How often." number: Int, part: Float, flag: Boolean, words: [String!], numbers: [Int!], id: ID, moment: DateTime,
       ordering: OutfitOrdering, orderings: [OutfitOrdering!]
     ): Told!
   }
   type Told { count: Int! nextPage: Int previousPage: Int results: [String!]! lists: [[String!]]! }
   input Range { from: Int }
   extend type OutfitPage { inRange(range: Range): Int, nested(lists: [[Int]]): Int }`,
  {
    'Query.told': (_root, args) => ({ count: 1, results: [JSON.stringify(args)] }),
    'Told.count': (told) => (told as { count: number }).count,
    'Told.lists': () => [['a'], null],
  },
);

const listOf = (path: string, text: string): Route => ({
  path,
  name: 'Test',
  description: 'A path of a test.',
  list: documentOf(text),
});

const page = 'count next: nextPage previous: previousPage';
const routes: readonly Route[] = [
  // A filter, and a page size.
  listOf(
    '/api/first/',
    `query ($size: Int! = 3, $ordering: OutfitOrdering, $after: String! = "-") {
       page: told(number: $size, ordering: $ordering, words: [$after]) { ${page} results }
     }`,
  ),
  listOf(
    '/api/told/',
    `query ($number: Int, $part: Float, $flag: Boolean, $word: [String!], $numbers: [Int!], $id: ID,
       $moment: DateTime, $ordering: OutfitOrdering, $orderings: [OutfitOrdering!]) {
       page: told(number: $number, part: $part, flag: $flag, words: $word, numbers: $numbers, id: $id,
         moment: $moment, ordering: $ordering, orderings: $orderings) { ${page} results }
     }`,
  ),
  listOf(
    '/api/needed/',
    `query ($number: Int!) { page: told(number: $number) { ${page} results: lists } }`,
  ),
  listOf(
    '/api/titles/',
    `query ($page: Int, $flag: Boolean = true) {
       page: outfits(page: $page) {
         ${page}
         results { id: databaseId ... on Outfit { title @include(if: $flag) } ... on Node { key: id } __typename video }
       }
     }`,
  ),
  {
    path: '/api/outfits/:id/',
    name: 'Outfit',
    description: 'One outfit.',
    record: documentOf(
      'query ($id: Int!) { record: outfit(databaseId: $id) { id: databaseId title owner: user { id: databaseId } } }',
    ),
  },
  {
    path: '/api/users/:username/newest/',
    name: 'User',
    description: 'A user with a page of outfits.',
    record: documentOf(
      `query ($username: String!, $page: Int, $ordering: OutfitOrdering) {
         record: user(username: $username) { id: databaseId outfits(page: $page, ordering: $ordering) { count results { id: databaseId } } }
       }`,
    ),
  },
];

const gateway = useGateway('PostgreSQL', rows, {}, { schema, routes });

const get = async (url: string) => {
  const response = await gateway.get(url);
  return { status: response.statusCode, body: response.json() };
};
const told = async (query: string) => {
  const { status, body } = await get(`/api/told/?${query}`);
  return status === 200 ? JSON.parse(body.results[0]) : body;
};

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
  expect(await told(query)).toEqual(expected);
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
  expect(await get(`/api/told/?${query}`)).toEqual({ status: 400, body: expected });
});

test('defaults of the document hold for what is left out', async () => {
  const { body } = await get('/api/first/');
  expect(JSON.parse(body.results[0])).toEqual({ number: 3, words: ['-'] });
  const given = await get('/api/first/?size=9&after=b&ordering=id');
  const expected = { number: 9, words: ['b'], ordering: 'id' };
  expect(JSON.parse(given.body.results[0])).toEqual(expected);
});

test('a variable that must be there is asked for', async () => {
  const body = { number: ['This field is required.'] };
  expect(await get('/api/needed/')).toEqual({ status: 400, body });
  expect((await get('/api/needed/?number=1')).status).toBe(200);
});

test('parameters of the path and of the query string go together', async () => {
  const name = first?.user.username;
  const { body } = await get(`/api/users/${name}/newest/?ordering=id&username=nobody`);
  expect(body).toMatchObject({ id: owner, outfits: { count: own.length } });
  expect((await get(`/api/users/${name}/newest/?page=99`)).status).toBe(404);
  const refused = { detail: 'page must be 1 or more, but it is 0.' };
  expect(await get(`/api/users/${name}/newest/?page=0`)).toEqual({ status: 400, body: refused });
});

test('the path without its slash leads to the one with it', async () => {
  const response = await gateway.get('/api/users/a%2Fb%20c/newest?x=1');
  expect(response.statusCode).toBe(301);
  expect(response.headers['location']).toBe('/api/users/a%2Fb%20c/newest/?x=1');
});

test('the OpenAPI document describes them, and no answer contradicts it', async () => {
  const { body: document } = await get('/api/openapi.json');
  expect(await new Validator().validate(document)).toEqual({ valid: true });
  const { operationId, parameters } = document.paths['/api/told/'].get;
  expect(operationId).toBe('getApiTold');
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
  const firstOf = (path: string) => document.paths[path].get.parameters[0];
  expect(firstOf('/api/needed/')).toMatchObject({ in: 'query', required: true });
  expect(firstOf('/api/first/').schema).toMatchObject({ type: 'integer', default: 3 });
  expect(firstOf('/api/outfits/{id}/')).toMatchObject({ in: 'path', required: true });

  const check = createChecker(document);
  for (const [name, url, status] of [
    ['/api/needed/', '/api/needed/?number=1', 200],
    ['/api/needed/', '/api/needed/', 400],
    ['/api/told/', '/api/told/?number=1&flag=nope', 400],
    ['/api/titles/', '/api/titles/', 200],
    ['/api/titles/', '/api/titles/?flag=0', 200],
    ['/api/outfits/{id}/', `/api/outfits/${first?.id}/`, 200],
    ['/api/outfits/{id}/', `/api/outfits/${'0'.repeat(200)}/`, 404],
    ['/api/outfits/{id}', `/api/outfits/${first?.id}`, 301],
    ['/api/outfits/{id}', `/api/outfits/${'0'.repeat(200)}`, 404],
  ] as const) {
    const response = await gateway.get(url);
    expect([url, response.statusCode]).toEqual([url, status]);
    check('GET', name, response);
  }
});

test('the log names the paths whose operation is interpreted', async () => {
  const { logger, lines } = keepLog('info');
  const gateway = await openGateway('PostgreSQL', [], {}, { schema, routes, logger });
  await gateway.close();
  const told = lines().filter(({ msg }) => / is interpreted, not compiled: /.test(msg));
  const named = told.map(({ msg }) => msg.split(' ', 1)[0]);
  expect(named).toContain('/api/first/');
  expect(named).not.toContain('/api/needed/');
});
