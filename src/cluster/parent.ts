// The parent of the workers: does once what a start does once, and answers no request itself.
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import type { Logger } from 'pino';
import { type Config, ConfigError } from '../config.ts';
import { fail } from '../failure.ts';
import { openGround } from '../ground.ts';
import { version } from '../package.ts';
import { closeOnSignal, restartOnHangUp } from '../signals.ts';
import {
  mediaUrlOf,
  openLog,
  openMetrics,
  openOutfits,
  reservePlaces,
  sayGoodBye,
  sayWhatOpens,
} from '../start-up.ts';
import { CombinedMetrics } from './combined-metrics.ts';
import { countWorkers, shareOut } from './shares.ts';
import { Workers } from './workers.ts';

/**
 * Starts the gateway as several processes on one port, and gives when they serve.
 * @throws ConfigError for the embedded database; OperatorError when one of them cannot serve
 */
export async function startWorkers(config: Config): Promise<void> {
  if (config.databaseUrl === undefined) {
    throw new ConfigError(
      `WORKERS is "${config.workers}", but the embedded database is for one process: set DATABASE_URL to a PostgreSQL database, or WORKERS to 1.`,
    );
  }
  const log = await openLog(config, true);
  const count = countWorkers(config.workers, availableParallelism(), readQuota());
  log.info({ version }, `Outfit gateway ${version}`);
  warnOfFewConnections(log, config, count);

  const places = await reservePlaces(config);
  const { place } = places;
  // Traces and standbys are for requests, of which there are none here; one connection is enough to fill
  // the database.
  const single = {
    ...config,
    databasePoolMax: 1,
    databaseReadUrls: [],
    otlpEndpoint: undefined,
  };
  const ground = await openGround(single, log);
  closeOnSignal((reason) => {
    sayGoodBye(log, reason);
    return ground.close();
  });
  const { drawsPictures, problem, opened } = await openOutfits(ground.database, config, log);
  const mediaUrl = mediaUrlOf(config, place, drawsPictures);
  const settings = { ...config, mediaUrl, port: place.port };
  const assignments = shareOut(settings, count).map((one) => ({ config: one, drawsPictures }));

  const metrics = new CombinedMetrics(count);
  const workers = new Workers(assignments, log, metrics, problem, fail);
  opened.then(() => workers.tellProblem());
  ground.database.onMove((server) => workers.lookForServer(server));
  restartOnHangUp(() => workers.restart());
  const metricsServer = await openMetrics(metrics, config, places);
  closeOnSignal(async (reason) => {
    sayGoodBye(log, reason);
    await Promise.all([workers.close(reason !== 'SIGINT'), ground.close()]);
    metricsServer?.close();
  });

  await workers.build();
  await place.release();
  const processIds = await workers.listen();
  log.info({ workers: processIds }, `workers: ${processIds.join(', ')}`);
  sayWhatOpens(log, config, place, metricsServer?.port);
}

function warnOfFewConnections(log: Logger, { databasePoolMax }: Config, count: number): void {
  if (databasePoolMax >= count) return;
  log.warn(
    `DATABASE_POOL_MAX is ${databasePoolMax}, but each of the ${count} workers needs a connection: ${count} are used. Raise it, or lower WORKERS.`,
  );
}

/** What a container may use, which Node.js does not always know; undefined: there is no such limit. */
function readQuota(): string | undefined {
  try {
    return readFileSync('/sys/fs/cgroup/cpu.max', 'utf8');
  } catch {
    return undefined;
  }
}
