// Whether the machine is ours alone. A system of two processes loses more to other work than one of
// a single process, so a busy machine bends ratios, however the rounds are interleaved.
import { cpus } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

/** How long the machine is watched. */
export const loadSeconds = 0.25;

/** The share of all cores that is busy while no system is asked anything. */
export async function measureOtherLoad() {
  const before = readTimes();
  await sleep(loadSeconds * 1000);
  const after = readTimes();
  return 1 - (after.idle - before.idle) / Math.max(1, after.all - before.all);
}

function readTimes() {
  let all = 0;
  let idle = 0;
  for (const { times } of cpus()) {
    all += times.user + times.nice + times.sys + times.idle + times.irq;
    idle += times.idle;
  }
  return { all, idle };
}
