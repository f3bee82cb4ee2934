// The parent of the workers: each gets its share of the limits. It answers no request itself.
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import type { Logger } from 'pino';
import type { Config } from '../../config.ts';
import type { Opening, Serving } from '../connect-and-seed.ts';
import { fail } from '../exit.ts';
import { type Ground, sayGoodBye } from '../resources.ts';
import { closeOnSignal, restartOnHangUp } from '../signals.ts';
import { CombinedMetrics } from './combined-metrics.ts';
import { Workers } from './workers.ts';

export async function openWorkers(
  config: Config,
  ground: Ground,
  { drawsPictures, problem, opened }: Opening,
  log: Logger,
): Promise<Serving> {
  const count = countWorkers(config.workers, availableParallelism(), readQuota());
  const { databasePoolMax } = config;
  if (databasePoolMax < count) {
    log.warn(
      `DATABASE_POOL_MAX is ${databasePoolMax}, but each of the ${count} workers needs a connection: ${count} are used. Raise it, or lower WORKERS.`,
    );
  }
  const metrics = new CombinedMetrics(count);
  const workers = new Workers({
    assignments: shareOut(config, count).map((share) => ({ config: share, drawsPictures })),
    log,
    metrics,
    findProblem: problem,
    onHopeless: fail,
  });
  opened.then(() => workers.tellProblem());
  ground.database.onFailover((server) => workers.probeServer(server));
  restartOnHangUp(() => workers.restart());
  const close = async (announce: boolean) => {
    await Promise.all([workers.close(announce), ground.close()]);
  };
  closeOnSignal((reason) => {
    sayGoodBye(log, reason);
    return close(false);
  });
  await workers.build();
  return {
    measured: metrics,
    close,
    async listen() {
      const processIds = await workers.listen();
      log.info({ workers: processIds }, `workers: ${processIds.join(', ')}`);
    },
  };
}

/** What a container may use, which Node.js does not always know. */
function readQuota(): string | undefined {
  try {
    return readFileSync('/sys/fs/cgroup/cpu.max', 'utf8');
  } catch {
    return undefined;
  }
}

/** @param quota of processors, as `cpu.max` of cgroups has it */
export function countWorkers(
  wanted: Config['workers'],
  processors: number,
  quota: string | undefined,
): number {
  if (wanted !== 'auto') return wanted;
  const [microseconds = Number.NaN, period = Number.NaN] = (quota ?? '').split(' ').map(Number);
  const share = Math.max(Math.floor(microseconds / period), 1);
  return Number.isNaN(share) ? processors : Math.min(share, processors);
}

/** The limits that hold for all workers together; each gets at least 1, unless there is none at all. */
const shared = [
  'databasePoolMax',
  'maxConcurrentRequests',
  'maxStreams',
  'cacheMaxBytes',
] as const satisfies readonly (keyof Config)[];

export function shareOut(config: Config, workers: number): Config[] {
  return Array.from({ length: workers }, (_, index) => ({
    ...config,
    ...Object.fromEntries(shared.map((limit) => [limit, shareOf(config[limit], index, workers)])),
  }));
}

function shareOf(limit: number, index: number, workers: number): number {
  return limit && Math.max(Math.floor(limit / workers) + (index < limit % workers ? 1 : 0), 1);
}
