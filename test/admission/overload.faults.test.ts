// More clients than there is room for: who is let in is served as ever, and the others are told at once. Answers from
// memory need no room.
import { beforeEach, expect, test } from 'vitest';
import { baseOf, demoEnvironment, runServer } from '../support/cli/process.ts';
import { type Address, type Answer, addressOf, keepBusy } from '../support/faults/clients.ts';
import { send } from '../support/faults/load.ts';

let environment: Record<string, string>;

beforeEach(async () => {
  environment = { ...(await demoEnvironment()), HOST: '127.0.0.1' };
});

/** The time below which `share` of the answers were. */
function quantile(answers: readonly Answer[], share: number): number {
  const times = answers.map(({ milliseconds }) => milliseconds).sort((a, b) => a - b);
  return times[Math.floor(times.length * share)] ?? Number.POSITIVE_INFINITY;
}

async function load(address: Address, clients: number, milliseconds: number) {
  const over = AbortSignal.timeout(milliseconds);
  const { answers } = await keepBusy(address, clients, '/api/outfits/', over);
  return {
    taken: answers.filter(({ status }) => status === 200),
    refused: answers.filter(({ status }) => status === 503),
    count: answers.length,
  };
}

const capacity = 32;

test('answers from memory are given to all at ten times capacity', async () => {
  const settings = { MAX_CONCURRENT_REQUESTS: String(capacity) };
  const base = await baseOf(runServer({ ...environment, ...settings }));
  const flooded = await load(addressOf(base), 10 * capacity, 2_500);
  expect(flooded.taken.length).toBeGreaterThan(9 * capacity);
  expect(flooded.taken).toHaveLength(flooded.count);
});

test('at ten times capacity, answers take at most three times as long as usual, and the excess gets 503 quickly', async () => {
  const settings = { CACHE_MAX_SIZE: '0', MAX_CONCURRENT_REQUESTS: String(capacity) };
  const server = runServer({ ...environment, ...settings });
  const base = await baseOf(server);
  const address = addressOf(base);
  await load(address, capacity, 1_000);
  // Three rounds of each, since whatever else the machine does slows one or the other.
  const begin = performance.now();
  const usual: number[] = [];
  const overloaded: number[] = [];
  const refused: Answer[] = [];
  for (let round = 0; round < 3; round += 1) {
    const calm = await load(address, capacity, 1_500);
    expect(calm.refused).toEqual([]);
    usual.push(quantile(calm.taken, 0.5));
    const flooded = await load(address, 10 * capacity, 4_000);
    expect(flooded.taken.length + flooded.refused.length).toBe(flooded.count);
    expect(flooded.taken.length).toBeGreaterThan(100);
    // It begins as a burst, which waits its turn.
    overloaded.push(quantile(flooded.taken.slice(flooded.taken.length / 2), 0.5));
    refused.push(...flooded.refused);
  }
  expect(Math.min(...overloaded)).toBeLessThan(3 * Math.max(...usual));
  expect(refused.length).toBeGreaterThan(9 * capacity);
  // Not after having waited in vain: half of REQUEST_TIMEOUT is the longest that anyone waits.
  expect(quantile(refused, 0.99)).toBeLessThan(5_000);
  for (const { head } of refused) expect(head).toMatch(/^retry-after: 1\r$/im);
  // The log has a line a second, not one for each.
  const seconds = (performance.now() - begin) / 1_000;
  expect(server.output().match(/"status":503/g)?.length).toBeLessThan(seconds + 2);

  expect(await send(base, '/api/outfits/')).toMatchObject({ status: 200 });
});
