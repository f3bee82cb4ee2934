// A burst waits its turn, an overload is refused: by numbers, whatever the time of a busy machine.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { ConcurrencyLimit } from '../../src/admission/concurrency-limit.ts';
import { openForTest } from '../support/gateway.ts';
import { extend } from '../support/graphql/schema-extension.ts';
import { postGraphql } from '../support/http/graphql.ts';
import { stopClocks } from '../support/this-process.ts';

/** Work that ends when it is told, by as many senders. */
function start(limit: ConcurrencyLimit) {
  const ends: (() => void)[] = [];
  const work = () => new Promise<void>((settle) => ends.push(settle));
  const begin = (sender: number) => {
    const { signal } = new AbortController();
    return limit.run(work, { sender: String(sender), signal, isRefused: false });
  };
  return { begin, end: () => ends.shift()?.() };
}

const refusal = { status: 503, message: 'The service is busy, try again later.' };

test('behind a burst, half as many may wait as may run, until nobody waits', async () => {
  const limit = new ConcurrencyLimit(2, 600_000);
  const { begin, end } = start(limit);
  const burst = Array.from({ length: 18 }, (_, sender) => begin(sender));
  await expect(begin(18)).rejects.toMatchObject(refusal);
  while (limit.waiting > 1) {
    end();
    await nextTurn();
  }
  await expect(begin(19)).rejects.toMatchObject(refusal);
  end();
  await nextTurn();
  const later = [begin(20), begin(21), begin(22)];
  expect([limit.running, limit.waiting]).toEqual([2, 3]);
  while (limit.running > 0) {
    end();
    await nextTurn();
  }
  await Promise.all([...burst, ...later]);
});

test('a burst after hours without work is taken, and one behind work that hangs is refused', async () => {
  const pass = stopClocks(performance);
  const limit = new ConcurrencyLimit(1, 1_000);
  const { begin, end } = start(limit);
  pass(3_600);
  const burst = Array.from({ length: 5 }, (_, sender) => begin(sender));
  expect([limit.running, limit.waiting]).toEqual([1, 4]);
  pass(1);
  await expect(begin(9)).rejects.toMatchObject(refusal);
  while (limit.running > 0) {
    end();
    await nextTurn();
  }
  await Promise.all(burst);
});

test('of documents with thousands of fields, two of a sender are executed at a time', async () => {
  const executed = new Set<string | undefined>();
  let release = () => {};
  const gate = new Promise<null>((settle) => {
    release = () => settle(null);
  });
  onTestFinished(release);
  const schema = extend('extend type Query { slow: String }', {
    'Query.slow': (_query, _args, _context, { operation }) => {
      executed.add(operation.name?.value);
      return gate;
    },
  });
  const { app } = await openForTest('PostgreSQL', [], { TRUST_PROXY: '127.0.0.1' }, { schema });
  const list = 'outfits(pageSize: 100) { results { id title description imageKey created } }';
  const send = (name: string, address: string) => {
    const query = `query ${name} { slow a: ${list} b: ${list} c: ${list} d: ${list} e: ${list} }`;
    return postGraphql(app, { query }, { 'x-forwarded-for': address });
  };
  const answers = ['A', 'B', 'C'].map((name) => send(name, '10.0.0.1'));
  answers.push(send('D', '10.0.0.2'));
  await expect.poll(() => [...executed].sort()).toEqual(['A', 'B', 'D']);
  release();
  for (const { statusCode } of await Promise.all(answers)) expect(statusCode).toBe(200);
});
