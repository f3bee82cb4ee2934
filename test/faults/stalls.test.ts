// This process stalls (a garbage collection, a long computation): the database is not to blame.
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { generateOutfits } from '../../src/demo/generate.ts';
import { openGateway } from '../gateway.ts';

/** Does nothing else for so long. */
function stall(milliseconds: number): void {
  const end = performance.now() + milliseconds;
  while (performance.now() < end) {}
}

test('stalls longer than an answer of the database may take are not taken for an outage', async () => {
  const gateway = await openGateway('PostgreSQL', [...generateOutfits({ outfits: 50, users: 5 })]);
  const changes: (string | undefined)[] = [];
  const monitor = await gateway.database.monitor((problem) => changes.push(problem?.message));
  onTestFinished(() => gateway.close());
  for (let round = 0; round < 6; round++) {
    // At another moment of a check each time.
    await sleep(380 + 8 * round);
    stall(2_500);
    expect((await gateway.get('/api/outfits/')).statusCode).toBe(200);
  }
  // With a moment between them, in which little of what has arrived is read.
  for (let round = 0; round < 6; round++) {
    stall(1_300);
    await setImmediate();
  }
  expect((await gateway.get('/api/outfits/')).statusCode).toBe(200);
  await sleep(2_000);
  expect(changes).toEqual([]);
  expect(monitor.problem()).toBeUndefined();
});
