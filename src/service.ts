// The service on its ground, complete but not listening. The same whether its process is the only one or one of
// several workers.
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { buildApp } from './app.ts';
import type { Config } from './config.ts';
import type { Database } from './database/database.ts';
import type { Monitor } from './database/monitor.ts';
import type { Ground } from './ground.ts';
import { createShutdown, type Shutdown } from './http/shutdown.ts';
import { createMetrics, type Metrics } from './observability/metrics.ts';
import { measureReplicas } from './observability/replica-metrics.ts';
import { createUpkeep, type Upkeep, type WrongCount } from './outfits/fold.ts';
import { typed } from './package.ts';

/** The whole service, not listening; it ends with its app. */
export interface Service {
  readonly app: FastifyInstance;
  /** Undefined: nobody asks for them. */
  readonly metrics: Metrics | undefined;
  readonly shutdown: Shutdown;
}

export interface ServiceOptions {
  readonly log: Logger;
  readonly monitor: Monitor;
  /** Why the gateway is not ready although the database can be used, in one sentence; undefined: it is. */
  readonly findProblem: () => string | undefined;
  /** Whether `mediaUrl` is where this service draws the pictures. */
  readonly drawsPictures: boolean;
  /** Whether a standby of another server is an error: when the gateway starts, not when it goes on. */
  readonly refusesStrangers?: boolean;
}

/**
 * @throws DatabaseNotReadyError when a standby is that of another server
 */
export async function buildService(
  config: Config,
  { database, replicas, tracing }: Ground,
  { log, monitor, findProblem, drawsPictures, refusesStrangers = true }: ServiceOptions,
): Promise<Service> {
  await replicas?.start(refusesStrangers);
  const shutdown = createShutdown();
  const metrics = config.metricsPort === undefined ? undefined : createMetrics(database);
  if (metrics && replicas) measureReplicas(metrics.registry, replicas);
  const app = await buildApp(config, database, {
    logger: log,
    metrics,
    tracing,
    shutdown,
    findProblem: () =>
      monitor.problem() === undefined
        ? findProblem()
        : 'The database is away, not migrated, or refuses a right: the log says which.',
    replicas,
    drawsPictures,
  });
  const upkeep = keepCounts(database, log);
  // A fold of many changes takes minutes: listening comes first.
  app.addHook('onListen', async () => upkeep.start());
  app.addHook('preClose', async () => upkeep.close());
  metrics?.followCounts(upkeep);
  return { app, metrics, shutdown };
}

function keepCounts({ pool }: Database, log: Logger): Upkeep {
  const onWrong = (wrong: readonly WrongCount[]) =>
    log.error({ wrong }, `counts are wrong: run ${typed('counts rebuild')}`);
  return createUpkeep(pool, onWrong, {
    onBegin: (pending) =>
      log.info(`folding ${pending} changes into the counts: pages are exact, but slower meanwhile`),
    onBatch: (folded, waiting) =>
      log.info(`${folded} changes folded, ${waiting} nodes of the counts are to be split`),
    onEnd: (folded) => log.info(`${folded} changes folded into the counts`),
  });
}
