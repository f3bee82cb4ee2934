// The service on its ground, complete but not listening: of the only process, or of one of several workers.
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { buildApp } from '../app.ts';
import type { Config } from '../config.ts';
import type { Database } from '../database/database.ts';
import { Shutdown } from '../http/server/connections.ts';
import { listen } from '../http/server/server.ts';
import { createMetrics, type Metrics } from '../observability/metrics.ts';
import { CountsMaintenance, type WrongCount } from '../outfits/counts.ts';
import { typed } from '../package.ts';
import type { Opening, Serving } from './connect-and-seed.ts';
import { listening } from './exit.ts';
import type { Ground } from './resources.ts';

export interface Service {
  readonly app: FastifyInstance;
  readonly metrics: Metrics | undefined;
  readonly shutdown: Shutdown;
}

type ServiceOptions = Pick<Opening, 'monitor' | 'problem' | 'drawsPictures'> & {
  readonly log: Logger;
  /** Whether a standby of another server is an error: when the gateway starts, not when it goes on. */
  readonly refusesStrangers?: boolean;
};

/** @throws DatabaseNotReadyError when a standby is that of another server */
export async function buildService(
  config: Config,
  { database, replicas, tracing }: Ground,
  { log, monitor, problem, drawsPictures, refusesStrangers = true }: ServiceOptions,
): Promise<Service> {
  await replicas?.start(refusesStrangers);
  const shutdown = new Shutdown();
  const metrics = config.metricsPort === undefined ? undefined : createMetrics(database);
  if (replicas) metrics?.followReplicas(replicas);
  const app = await buildApp(config, database, {
    logger: log,
    metrics,
    tracing,
    shutdown,
    findProblem: () =>
      monitor.problem() === undefined
        ? problem()
        : 'The database is away, not migrated, or refuses a right: the log says which.',
    replicas,
    drawsPictures,
  });
  const maintenance = keepCounts(database, log);
  // To apply many pending changes takes minutes: listening comes first.
  app.addHook('onListen', async () => maintenance.start());
  app.addHook('preClose', async () => maintenance.close());
  metrics?.followCounts(maintenance);
  return { app, metrics, shutdown };
}

export async function openService(
  config: Config,
  ground: Ground,
  opening: Opening,
  log: Logger,
): Promise<Serving> {
  const { app, metrics, shutdown } = await buildService(config, ground, { log, ...opening });
  return {
    measured: metrics,
    listen: async () => void (await listening(listen(app, config))),
    async close(announce) {
      await shutdown.close(app, announce);
      await ground.close();
    },
  };
}

function keepCounts({ pool }: Database, log: Logger): CountsMaintenance {
  const onWrong = (wrong: readonly WrongCount[]) =>
    log.error({ wrong }, `counts are wrong: run ${typed('counts rebuild')}`);
  return new CountsMaintenance(pool, onWrong, {
    onBegin: (pending) =>
      log.info(`applying ${pending} changes to the counts: pages are exact, but slower meanwhile`),
    onBatch: (applied, waiting) =>
      log.info(`${applied} changes applied, ${waiting} nodes of the counts are to be split`),
    onEnd: (applied) => log.info(`${applied} changes applied to the counts`),
  });
}
