// The gateway as one process: opens the database, listens, and closes on a signal.
import type { Config } from './config.ts';
import { migrate } from './database/migrations.ts';
import { fail, listening } from './failure.ts';
import { openGround } from './ground.ts';
import { listen } from './http/server.ts';
import { version } from './package.ts';
import { buildService } from './service.ts';
import { closeOnSignal, isEnding } from './signals.ts';
import {
  mediaUrlOf,
  openLog,
  openMetrics,
  openOutfits,
  reservePlaces,
  sayGoodBye,
  sayWhatOpens,
} from './start-up.ts';

/**
 * Starts the gateway as this process, and gives when it serves.
 * @throws what says in a sentence why it cannot
 */
export async function start(config: Config): Promise<void> {
  const log = await openLog(config);
  log.info({ version }, `Outfit gateway ${version}`);

  const places = await reservePlaces(config);
  const { place } = places;
  // Making a first database takes seconds.
  if (config.databaseUrl === undefined) await checkTrustedDocuments(config);
  const ground = await openGround(config, log);
  const { database } = ground;
  closeOnSignal((reason) => {
    sayGoodBye(log, reason);
    return ground.close();
  });
  database.failed.then(fail);
  try {
    const onApply = (name: string) => log.info(`applying migration ${name}`);
    if (database.kind === 'embedded') await migrate(database.pool, onApply);
    const { monitor, drawsPictures, problem } = await openOutfits(database, config, log);
    const parts = { log, monitor, drawsPictures, findProblem: problem };
    const mediaUrl = mediaUrlOf(config, place, drawsPictures);
    const service = await buildService({ ...config, mediaUrl }, ground, parts);
    const { app, metrics, shutdown } = service;
    const metricsServer = await openMetrics(metrics, config, places);
    closeOnSignal(async (reason) => {
      sayGoodBye(log, reason);
      // SIGINT is a person at the terminal, who has nobody to tell.
      await shutdown.close(app, reason !== 'SIGINT');
      metricsServer?.close();
      await ground.close();
    });

    await place.release();
    await listening(listen(app, { host: config.host, port: place.port }));
    sayWhatOpens(log, config, place, metricsServer?.port);
  } catch (error) {
    if (!isEnding()) await ground.close();
    throw error;
  }
}

/** @throws ConfigError for documents that the service would refuse once it has a database */
async function checkTrustedDocuments(config: Config): Promise<void> {
  if (config.trustedDocuments === undefined) return;
  const [{ readTrustedDocuments }, { createFinder }, { schema }] = await Promise.all([
    import('./graphql/trusted-documents.ts'),
    import('./graphql/engine.ts'),
    import('./graphql/schema.ts'),
  ]);
  await readTrustedDocuments(config.trustedDocuments, createFinder({ schema, config }));
}
