// The service: built, not listening.
import type { Logger } from 'pino';
import { buildApp } from '../app.ts';
import { Attachment } from '../attach/attachment.ts';
import type { Config } from '../config/config.ts';
import { commandText } from '../config/package.ts';
import type { Database } from '../database/database.ts';
import { DatabaseAwayError } from '../database/errors.ts';
import { Shutdown } from '../http/server/connections.ts';
import { listen } from '../http/server/server.ts';
import { Metrics } from '../observability/metrics.ts';
import { CountsMaintenance, type WrongCount } from '../outfits/counts.ts';
import { deleteExpiredAnswers } from '../outfits/writes/idempotency.ts';
import type { Startup } from './connect-and-seed.ts';
import { explainListenError } from './exit.ts';
import type { Resources } from './resources.ts';

/** Milliseconds between two deletions of expired answers. */
const sweepInterval = 600_000;

/** Of tables that are attached, `writer` is who writes them. */
export type Gateway = Awaited<ReturnType<typeof openService>>;

/** Built, not listening. @throws DatabaseNotReadyError when a standby belongs to another primary */
export async function openService(
  config: Config,
  resources: Resources,
  { awaitsSeed, monitor, drawsPictures, problem }: Startup,
  log: Logger,
) {
  const { database, replicas, tracing } = resources;
  await replicas?.start(true);
  const shutdown = new Shutdown();
  const metrics = config.metricsPort === undefined ? undefined : new Metrics(database);
  if (replicas) metrics?.followReplicas(replicas);
  const attachment = database.kind === 'embedded' ? undefined : new Attachment(database.pool, log);
  await attachment?.start();
  if (attachment) metrics?.followAttachment(attachment);
  const { pool, prisma, read, snapshots } = database;
  const checkServers: Database['checkServers'] = (task) => {
    if (awaitsSeed()) throw new DatabaseAwayError('The database is not filled yet.');
    database.checkServers(task);
  };
  const filled = { checkServers, pool, prisma, read, snapshots };
  const app = await buildApp(config, filled, {
    logger: log,
    metrics,
    attachment,
    tracing,
    shutdown,
    findProblem: () =>
      monitor.problem() === undefined
        ? problem()
        : 'The database is unavailable, not migrated, or refuses a privilege: the log says which.',
    replicas,
    servePictures: drawsPictures ? (await import('./demo/media.ts')).servePictures : undefined,
  });
  const onWrong = (wrong: readonly WrongCount[]) =>
    log.error({ wrong }, `counts are wrong: run ${commandText('counts rebuild')}`);
  const maintenance = new CountsMaintenance(pool, onWrong, (sentence) => log.info(sentence));
  // Applying many pending changes takes minutes: listening comes first.
  app.addHook('onListen', async () => maintenance.start());
  app.addHook('preClose', async () => maintenance.close());
  const sweeping = setInterval(
    () => deleteExpiredAnswers(database.pool).catch(() => {}),
    sweepInterval,
  );
  app.addHook('preClose', async () => clearInterval(sweeping));
  app.addHook('preClose', async () => attachment?.close());
  metrics?.followCounts(maintenance);
  // Fastify has a child of the log, with a level of its own.
  process.on('SIGUSR2', () => {
    app.log.level = log.level;
  });
  return {
    measured: metrics,
    /** Whether nothing can be read for now, as the database is away. */
    isAway: () => monitor.problem() !== undefined,
    writer: attachment?.writer,
    listen: async () => void (await explainListenError(listen(app, config))),
    /** Closes its resources too. @param announce whether readiness fails for a second before anything closes */
    async close(announce: boolean) {
      await shutdown.close(app, announce);
      await resources.close();
    },
  };
}
