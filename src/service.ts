// What serves in one process: the database that it opens, and the service on it, complete but not
// listening. The same whether it is the only process or one of several workers.
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { buildApp } from './app.ts';
import type { Config } from './config.ts';
import { type Database, openDatabase } from './database/database.ts';
import type { Monitor } from './database/monitor.ts';
import { createShutdown, type Shutdown } from './http/shutdown.ts';
import { createMetrics, type Metrics } from './observability/metrics.ts';
import type { Tracing } from './tracing/tracing.ts';

/** Milliseconds that the database has to close. */
const databaseGrace = 1_000;

/** What a service stands on. */
export interface Ground {
  readonly database: Database;
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
  tracing?.followStatements(database.pool);
  return {
    database,
    tracing,
    async close() {
      // A statement that does not end must not keep the process: PostgreSQL ends it by itself.
      const closed = Promise.race([database.close(), sleep(databaseGrace)]);
      await Promise.all([closed, tracing?.close()]);
    },
  };
}

/** The whole service, not listening. */
export interface Service {
  readonly app: FastifyInstance;
  /** Undefined: nobody asks for them. */
  readonly metrics: Metrics | undefined;
  readonly shutdown: Shutdown;
}

/** @param drawsPictures whether `mediaUrl` is where this service draws the pictures */
export async function buildService(
  config: Config,
  { database, tracing }: Ground,
  { log, monitor, drawsPictures }: { log: Logger; monitor: Monitor; drawsPictures: boolean },
): Promise<Service> {
  const shutdown = createShutdown();
  const metrics = config.metricsPort === undefined ? undefined : createMetrics(database);
  const app = await buildApp(config, database, {
    logger: log,
    metrics,
    tracing,
    shutdown,
    isDatabaseAway: () => monitor.problem() !== undefined,
    drawsPictures,
  });
  return { app, metrics, shutdown };
}
