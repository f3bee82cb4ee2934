// The engine and plain graphql give the same answers to random documents, to the byte: data, order of fields, errors.
import { execute, getOperationAST, parse } from 'graphql';
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { ContextFactory } from '../../src/graphql/context.ts';
import { compileQuery } from '../../src/graphql/plugins/compiled-queries.ts';
import { schema } from '../../src/graphql/schema.ts';
import { textOf } from '../support/databases/statements.ts';
import {
  openForTest,
  openGateway,
  outfitId,
  type TestGateway,
  userId,
} from '../support/gateway.ts';
import { generateDocument } from '../support/graphql/random-documents.ts';
import { amount } from '../support/lane.ts';
import { Dice } from '../support/models/dice.ts';

const rows = [...generateOutfits({ outfits: 45, users: 9 })];
const ids = rows.slice(0, 4).flatMap(({ id, userId }) => [id, userId]);
const names = rows.slice(0, 3).map(({ user }) => user.username);
const conditions = [
  ...rows.slice(0, 2).map(({ id }) => outfitId(id)),
  ...rows.slice(0, 2).map((row) => userId(row.userId)),
  '2022-01-01T00:00:00Z',
  'the',
];
const values = { Int: [-1, 0, 1, 1, 2, 3, ...ids], String: ['', 'x', ...names, ...conditions] };

// Thousands of errors are expected, and no message has their location.
const { stackTraceLimit } = Error;

// One statement at a time: which errors come before the one that ends an answer depends on it.
const settings = { DATABASE_POOL_MAX: '1', GRAPHQL_MAX_COST: '20000' };
const documents = amount(0, 160);
/** How often each document is sent: a query is compiled for the fourth time. */
const rounds = 5;
/** Each waits for its database most of the time. */
let gateways: readonly TestGateway[];
beforeAll(async () => {
  Error.stackTraceLimit = 0;
  const opening = Array.from({ length: 3 }, () =>
    openGateway('PostgreSQL', rows, { ...settings, CACHE_MAX_SIZE: '0' }),
  );
  gateways = await Promise.all(opening);
});
afterAll(async () => {
  Error.stackTraceLimit = stackTraceLimit;
  for (const gateway of gateways) await gateway.close();
});

interface Answer {
  readonly data?: unknown;
  readonly errors?: readonly { message: string; path?: unknown; locations?: unknown }[];
}

/** The data as text, since the order of its fields counts. Of many errors of variables, the gateway returns five. */
function print({ data, errors = [] }: Answer) {
  const told = errors.filter(({ message }) => !message.startsWith('Too many errors'));
  const shown = data ? errors : told.slice(0, 5);
  return {
    data: JSON.stringify(data ?? null),
    errors: shown.map(({ message, path, locations }) => ({ message, path, locations })),
  };
}

interface Sent {
  readonly query: string;
  readonly variables?: Record<string, unknown>;
  readonly operationName?: string;
}

/** Sends a document, and gives what graphql answers; undefined for one over a limit, which is not executed. */
async function compareOne({ app, config, database }: TestGateway, sent: Sent, message: string) {
  const { body } = await app.inject({ method: 'POST', url: '/graphql', payload: sent });
  if (/"code":"(?:TOO_MANY_|QUERY_TOO_)/.test(body)) return undefined;
  const { query, variables: variableValues, operationName } = sent;
  const caller = { viewer: undefined, idempotencyKey: undefined };
  const contextValue = new ContextFactory(config, database).createPersonal(caller);
  const document = parse(query);
  const given = { schema, document, variableValues, operationName, contextValue };
  const expected: Answer = JSON.parse(JSON.stringify(await execute(given)));
  const answer: Answer = JSON.parse(body);
  expect(print(answer), message).toEqual(print(expected));
  // JSON.parse keeps the order of keys: none here is a number.
  expect(body).toContain(answer.data ? JSON.stringify(answer.data) : '');
  return expected;
}

/** Counts answers, and those with data and no errors. */
async function compareWithGraphql(gateway: TestGateway, sent: number) {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const dice = new Dice(seed);
  let [answers, whole] = [0, 0];
  for (let index = 0; index < sent; index++) {
    const { text: query, variables: sets } = generateDocument(schema, dice, values);
    for (let round = 0; round < rounds; round++) {
      const payload = { query, variables: sets[round] ?? {} };
      const message = `seed ${seed}, document ${index}, round ${round}: ${JSON.stringify(payload)}`;
      const expected = await compareOne(gateway, payload, message);
      if (!expected) continue;
      answers++;
      if (expected.data && !expected.errors) whole++;
    }
  }
  return { answers, whole };
}

test(`${documents} random documents are answered as graphql answers them, compiled or not`, async () => {
  const sent = Math.ceil(documents / gateways.length);
  const comparing = gateways.map((gateway) => compareWithGraphql(gateway, sent));
  for (const { answers, whole } of await Promise.all(comparing)) {
    expect(answers).toBeGreaterThan(2 * sent);
    // Enough of them are answers, and enough are not.
    expect(whole).toBeGreaterThan(answers / 10);
    expect(whole).toBeLessThan(answers);
  }
});

test(`${documents} random documents are answered from memory as without a cache, header by header`, async () => {
  const [uncached] = gateways;
  const cached = await openForTest('PostgreSQL', rows, settings);
  const statements = vi.spyOn(pg.Client.prototype, 'query');
  onTestFinished(() => statements.mockRestore());
  let fromMemory = 0;
  const seed = Math.floor(Math.random() * 2 ** 31);
  const dice = new Dice(seed);
  const send = async (gateway: TestGateway | undefined, payload: object) => {
    const response = await gateway?.app.inject({ method: 'POST', url: '/graphql', payload });
    const { date: _, 'x-request-id': _id, ...headers } = response?.headers ?? {};
    return { status: response?.statusCode, headers, body: response?.body };
  };
  for (let index = 0; index < documents; index++) {
    const { text: query, variables: sets } = generateDocument(schema, dice, values);
    for (const variables of sets.slice(0, 2)) {
      const payload = { query, variables };
      const expected = await send(uncached, payload);
      const message = `seed ${seed}, document ${index}: ${JSON.stringify(payload)}`;
      // Read, then taken from memory round Yoga.
      for (let round = 0; round < 3; round++) {
        statements.mockClear();
        expect(await send(cached, payload), message).toEqual(expected);
        const reads = statements.mock.calls.filter(([text]) => /outfits|users/.test(textOf(text)));
        if (round > 0 && expected.status === 200 && reads.length === 0) fromMemory++;
      }
    }
  }
  expect(fromMemory).toBeGreaterThan(documents);
});

const twoOperations = `
  query Newest { outfits { results { ...Short } } }
  query Oldest($few: Int = 2) {
    outfitConnection(ordering: CREATED_ASC, first: $few) { edges { node { ...Short } } }
  }
  fragment Short on Outfit { id: databaseId created }`;

// What random documents lack.
test.each<[string, Sent]>([
  [
    'variables that the operation does not declare',
    { query: 'query ($page: Int) { outfits(page: $page) { page } }', variables: { a: [1] } },
  ],
  [
    'an alias that is a name of JavaScript',
    {
      query: '{ outfits { __proto__: __typename constructor: page } __proto__: outfits { count } }',
    },
  ],
  [
    'an alias of an object that is a name of JavaScript',
    {
      query: '{ outfits { results { __proto__: user { __typename __proto__: id } __x: id id } } }',
    },
  ],
  [
    'a variable that is a name of JavaScript',
    {
      query: 'query ($__proto__: Int) { outfits(page: $__proto__, pageSize: 1) { page } }',
      variables: JSON.parse('{ "__proto__": 2 }'),
    },
  ],
  ['a default of a variable', { query: twoOperations, operationName: 'Oldest' }],
  ['the other operation of the document', { query: twoOperations, operationName: 'Newest' }],
])('a document is answered as graphql answers it, compiled or not: %s', async (name, sent) => {
  const [gateway = expect.fail()] = gateways;
  for (let round = 0; round < rounds; round++) {
    expect(await compareOne(gateway, sent, `${name}, round ${round}`)).toHaveProperty('data');
  }
});

test.each([
  ['{ likesFrom: $likes }', true],
  ['{ search: $text, private: false }', true],
  ['{ ids: [$id] }', false],
])('a variable in filter: %s is compiled: %s', (filter, isCompiled) => {
  const document = parse(
    `query ($likes: Int, $text: String = "x", $id: ID! = "") { outfits(filter: ${filter}) { count } }`,
  );
  const operation = getOperationAST(document) ?? expect.fail();
  expect(compileQuery(schema, document, operation) !== null).toBe(isCompiled);
});
