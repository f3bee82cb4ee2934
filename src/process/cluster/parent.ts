// The parent of the workers: splits the limits among them, and restarts them. It answers no request itself.
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import type { Logger } from 'pino';
import type { Config } from '../../config.ts';
import type { Gateway, Startup } from '../connect-and-seed.ts';
import { fail } from '../exit.ts';
import { logShutdown, type Resources } from '../resources.ts';
import { closeOnSignal, restartOnHangUp } from '../signals.ts';
import { CombinedMetrics } from './combined-metrics.ts';
import { Workers } from './workers.ts';

export async function openWorkers(
  config: Config,
  resources: Resources,
  startup: Startup,
  log: Logger,
): Promise<Gateway> {
  const count = countWorkers(config.workers, availableParallelism(), readQuota());
  const { databasePoolMax } = config;
  if (databasePoolMax < count) {
    log.warn(
      `DATABASE_POOL_MAX is ${databasePoolMax}, but each of the ${count} workers needs a connection: ${count} are used. Raise it, or lower WORKERS.`,
    );
  }
  const metrics = new CombinedMetrics(count);
  const workers = new Workers({
    starts: splitLimits(config, count).map((share) => ({
      config: share,
      drawsPictures: startup.drawsPictures,
    })),
    log,
    metrics,
    findProblem: () => startup.problem(),
    onCrashLoop: fail,
  });
  startup.prepared.then(() => workers.sendReadiness());
  resources.database.onFailover((server) => workers.probeServer(server));
  restartOnHangUp(() => workers.restart());
  process.on('SIGUSR2', () => workers.sendReadiness());
  const close = async (announce: boolean) => {
    await Promise.all([workers.close(announce), resources.close()]);
  };
  closeOnSignal((reason) => {
    logShutdown(log, reason);
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

/** CPU quota of the container: `availableParallelism` does not always respect it. */
function readQuota(): string | undefined {
  try {
    return readFileSync('/sys/fs/cgroup/cpu.max', 'utf8');
  } catch {
    return undefined;
  }
}

/** @param quota content of `cpu.max` @see https://docs.kernel.org/admin-guide/cgroup-v2.html#cpu-interface-files */
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

/** Limits of the gateway as a whole. Each worker gets an equal share, at least 1, except of a limit of 0. */
const shared = [
  'databasePoolMax',
  'maxConcurrentRequests',
  'maxStreams',
  'maxSockets',
  'cacheMaxSize',
] as const satisfies readonly (keyof Config)[];

export function splitLimits(config: Config, workers: number): Config[] {
  return Array.from({ length: workers }, (_, index) => ({
    ...config,
    ...Object.fromEntries(shared.map((limit) => [limit, shareOf(config[limit], index, workers)])),
  }));
}

function shareOf(limit: number, index: number, workers: number): number {
  return limit && Math.max(Math.floor(limit / workers) + (index < limit % workers ? 1 : 0), 1);
}
