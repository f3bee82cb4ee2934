// What serves in one process: the database that it opens, and the service on it, complete but not
// listening. The same whether it is the only process or one of several workers.
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { buildApp } from './app.ts';
import { typed } from './command-line.ts';
import type { Config } from './config.ts';
import { type Database, openDatabase } from './database/database.ts';
import type { Monitor } from './database/monitor.ts';
import { openReplicas, type Replicas } from './database/replicas.ts';
import type { Standby } from './database/standby.ts';
import { createShutdown, type Shutdown } from './http/shutdown.ts';
import { createMetrics, type Metrics } from './observability/metrics.ts';
import { measureReplicas } from './observability/replica-metrics.ts';
import { startUpkeep } from './outfits/fold.ts';
import type { Tracing } from './tracing/tracing.ts';

/** Milliseconds that the database has to close. */
const databaseGrace = 1_000;

/** What a service stands on. */
export interface Ground {
  readonly database: Database;
  /** The standbys that queries are read from; undefined: there are none. */
  readonly replicas: Replicas | undefined;
  readonly tracing: Tracing | undefined;
  /** Takes at most a second, and what is left of the traces another one beside it. */
  close(): Promise<void>;
}

/** @throws EmbeddedDatabaseError when the embedded database cannot be opened */
export async function openGround(config: Config, log: Logger): Promise<Ground> {
  const database = await openDatabase(config, config.requestTimeout * 1000);
  const { otlpEndpoint } = config;
  const tracing =
    otlpEndpoint === undefined
      ? undefined
      : (await import('./tracing/tracing.ts')).startTracing(otlpEndpoint, log);
  const replicas = openReplicas(config, database, config.requestTimeout * 1000, (standby) =>
    tellOf(standby, log),
  );
  for (const { pool } of [database, ...(replicas?.standbys ?? [])]) {
    tracing?.followStatements(pool);
  }
  return {
    database,
    replicas,
    tracing,
    async close() {
      // A statement that does not end must not keep the process: PostgreSQL ends it by itself.
      const closed = Promise.all([replicas?.close(), database.close()]);
      await Promise.all([Promise.race([closed, sleep(databaseGrace)]), tracing?.close()]);
    },
  };
}

function tellOf({ description, problem }: Standby, log: Logger): void {
  if (problem) log.warn(`the ${description} ${problem}: it is not read from`);
  else log.info(`reading from the ${description}`);
}

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
  { log, monitor, drawsPictures, refusesStrangers = true }: ServiceOptions,
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
    isDatabaseAway: () => monitor.problem() !== undefined,
    replicas,
    drawsPictures,
  });
  const upkeep = startUpkeep(database.pool, (wrong) =>
    log.error({ wrong }, `counts are wrong: run ${typed('counts rebuild')}`),
  );
  app.addHook('preClose', async () => upkeep.close());
  metrics?.followCounts(upkeep);
  return { app, metrics, shutdown };
}
