// Turns on the processor: what one sender asks for is executed in slices, between which others are answered.
import { defaultFieldResolver, type GraphQLError, type GraphQLObjectType } from 'graphql';
import { expect, onTestFinished, test, vi } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { schema } from '../../src/graphql/schema.ts';
import { useGateway } from '../support/gateway.ts';
import { baseOfApp } from '../support/http/event-stream.ts';
import { openAcknowledged } from '../support/http/socket.ts';

const gateway = useGateway('PostgreSQL', [...generateOutfits({ outfits: 300, users: 60 })], {
  // An answer of 33 MB takes a second, and more on a slow machine.
  REQUEST_TIMEOUT: '60s',
});
const fields = 'id title description imageKey created modified likes';

/** Counts the titles that are resolved until the event loop turns. */
function countTitles() {
  const counts = { most: 0, all: 0 };
  let count = 0;
  const { title } = (schema.getType('Outfit') as GraphQLObjectType).getFields();
  const { resolve = defaultFieldResolver } = title ?? {};
  Object.assign(title ?? {}, {
    resolve: (...args: Parameters<typeof resolve>) => {
      if (count === 0) {
        setImmediate(() => {
          count = 0;
        });
      }
      count += 1;
      counts.all += 1;
      counts.most = Math.max(counts.most, count);
      return resolve(...args);
    },
  });
  return counts;
}

test('a large document is executed in slices, and its answer is that of its parts', async () => {
  // biome-ignore lint/suspicious/noExplicitAny: two documents give two shapes.
  const ask = async (query: string) => (await gateway.post(query)).data as any;
  const titles = countTitles();
  const list = `user { outfits(pageSize: 20) { results { ${fields} } } }`;
  const query = `{ outfits(pageSize: 100) { count results { ${fields} ${list} } } }`;
  const { outfits } = await ask(query);
  expect(titles.all).toBeGreaterThan(300);
  expect(titles.most).toBeLessThanOrEqual(120);
  const { id, user } = outfits.results[77];
  const { node } = await ask(`{ node(id: "${id}") { ... on Outfit { ${fields} ${list} } } }`);
  expect(node).toEqual({ ...outfits.results[77], user });
});

/** Counts the texts of this length that are parsed until the event loop turns. */
function countParsed(least = 30_000) {
  const counts = { most: 0, all: 0 };
  let count = 0;
  const { parse } = JSON;
  const parsing = vi.spyOn(JSON, 'parse').mockImplementation((text, ...others) => {
    if (text.length > least) {
      setImmediate(() => {
        count = 0;
      });
      count += 1;
      counts.all += 1;
      counts.most = Math.max(counts.most, count);
    }
    return parse(text, ...others);
  });
  onTestFinished(() => parsing.mockRestore());
  return counts;
}
const large = Array.from({ length: 12 }, (_, index) => ({ [`v${index}`]: 'x'.repeat(40_000) }));

test('large bodies that come together are parsed one after the other, and the event loop turns between them', async () => {
  const counts = countParsed();
  const answers = await Promise.all(large.map((body) => gateway.post('{ __typename }', body)));
  expect(answers).toEqual(large.map(() => ({ data: { __typename: 'Query' } })));
  expect(counts.all).toBe(large.length);
  expect(counts.most).toBeLessThanOrEqual(2);
});

test('large messages of several WebSockets are parsed one after the other', async () => {
  const counts = countParsed();
  const base = await baseOfApp(gateway.app);
  const sockets = await Promise.all(large.map(() => openAcknowledged(base)));
  for (const [index, { subscribe }] of sockets.entries()) {
    subscribe('a', '{ __typename }', { variables: large[index] });
  }
  for (const { next } of sockets) expect(await next()).toMatchObject({ type: 'next', id: 'a' });
  expect(counts.all).toBe(large.length);
  expect(counts.most).toBeLessThanOrEqual(2);
});

test('pages that come together are rendered one after the other, from one answer', async () => {
  const counts = countParsed(5_000);
  const pages = large.map((_body, index) =>
    gateway.get(`/api/outfits/?i=${index}`, { accept: 'text/html' }),
  );
  for (const { statusCode } of await Promise.all(pages)) expect(statusCode).toBe(200);
  expect(counts.all).toBe(large.length);
  expect(counts.most).toBeLessThanOrEqual(2);
});

test.each([
  ['without an error', '', undefined],
  ['with that of a field', 'other: outfit(id: "x") { id }', ['BAD_USER_INPUT']],
])('an answer of more than 33,554,432 characters is refused, %s', async (_name, other, codes) => {
  const ask = async (aliases: number) => {
    const names = Array.from({ length: aliases }, (_, index) => `a${index}: description`);
    const query = `{ outfits(pageSize: 100) { results { ${names.join(' ')} } } ${other} }`;
    return gateway.app.inject({ method: 'POST', url: '/graphql', payload: { query } });
  };
  await gateway.database.pool.query("UPDATE outfits SET description = repeat('x', 10000)");
  const { data, errors } = (await ask(33)).json();
  expect(data.outfits.results).toHaveLength(100);
  expect(errors?.map(({ extensions }: GraphQLError) => extensions['code'])).toEqual(codes);
  const refused = await ask(34);
  expect(refused.statusCode).toBe(400);
  expect(refused.json().errors[0]).toMatchObject({
    message: expect.stringMatching(/executed, but .* more than 33554432 characters/),
    extensions: { code: 'ANSWER_TOO_LARGE' },
  });
});
