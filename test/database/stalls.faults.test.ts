// This process stalls (a garbage collection, a long computation): the database is not to blame.
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { expect, onTestFinished, test, vi } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { openGateway } from '../support/gateway.ts';

const never = new Int32Array(new SharedArrayBuffer(4));

/** This thread does nothing for so long, and leaves the processor to other tests. */
function stall(milliseconds: number): void {
  Atomics.wait(never, 0, 0, milliseconds);
}

/** Stalls so often as soon as a check of the monitor has sent its first statement. */
async function stallInChecks(times: number, milliseconds: number): Promise<void> {
  const original = pg.Client.prototype.query;
  const query = vi.spyOn(pg.Client.prototype, 'query');
  let left = times;
  const done = new Promise<void>((settle) => {
    query.mockImplementation(function (this: pg.Client, ...given: unknown[]) {
      const result = Reflect.apply(original, this, given);
      if (left > 0 && String(given[0]).includes('server_version_num')) {
        left -= 1;
        if (left === 0) settle();
        queueMicrotask(() => stall(milliseconds));
      }
      return result;
    } as () => never);
  });
  await done;
  query.mockRestore();
}

test('stalls longer than an answer of the database may take are not taken for an outage', async () => {
  const gateway = await openGateway('PostgreSQL', [...generateOutfits({ outfits: 50, users: 5 })]);
  const changes: (string | undefined)[] = [];
  const monitor = await gateway.database.monitor((problem) => changes.push(problem?.message));
  onTestFinished(() => gateway.close());
  await stallInChecks(3, 2_500);
  expect((await gateway.get('/api/outfits/')).statusCode).toBe(200);
  // With moments between them, in which little of what has arrived is read.
  for (let round = 0; round < 4; round++) {
    stall(1_300);
    await setImmediate();
  }
  expect((await gateway.get('/api/outfits/?page=2')).statusCode).toBe(200);
  await sleep(2_000);
  expect(changes).toEqual([]);
  expect(monitor.problem()).toBeUndefined();
});
