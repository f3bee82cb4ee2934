// How many workers there are, and what of a limit for the whole gateway each of them gets.
import type { Config, WorkerCount } from '../config.ts';

/** The limits that hold for all workers together; each gets at least 1, unless there is none at all. */
const shared = [
  'databasePoolMax',
  'maxConcurrentRequests',
  'maxStreams',
  'cacheMaxBytes',
] as const satisfies readonly (keyof Config)[];

/**
 * @param processors that this machine lets the process use
 * @param quota what the kernel says of its share of them (`cpu.max` of cgroups); undefined: nothing
 */
export function countWorkers(
  wanted: WorkerCount,
  processors: number,
  quota: string | undefined,
): number {
  if (wanted !== 'auto') return wanted;
  const [microseconds = Number.NaN, period = Number.NaN] = (quota ?? '').split(' ').map(Number);
  const share = Math.max(Math.floor(microseconds / period), 1);
  return Number.isNaN(share) ? processors : Math.min(share, processors);
}

/** The configurations of so many workers: together they keep the limits of `config`. */
export function shareOut(config: Config, workers: number): Config[] {
  return Array.from({ length: workers }, (_, index) => ({
    ...config,
    ...Object.fromEntries(shared.map((limit) => [limit, shareOf(config[limit], index, workers)])),
  }));
}

function shareOf(limit: number, index: number, workers: number): number {
  if (limit === 0) return 0;
  return Math.max(Math.floor(limit / workers) + (index < limit % workers ? 1 : 0), 1);
}
