// The gateway as one process: opens the database, listens, and closes on a signal.
import type { Config } from './config.ts';
import { migrate } from './database/migrations.ts';
import { fail, listening } from './failure.ts';
import { openGround } from './ground.ts';
import { listen, reservePlace } from './http/server.ts';
import { serveMetrics } from './observability/metrics-server.ts';
import { buildService } from './service.ts';
import { closeOnSignal, isEnding } from './signals.ts';
import { mediaUrlOf, openLog, openOutfits, sayGoodBye, sayWhatOpens } from './start-up.ts';
import { version } from './version.ts';

/**
 * Starts the gateway as this process, and gives when it serves.
 * @throws what says in a sentence why it cannot
 */
export async function start(config: Config): Promise<void> {
  const log = await openLog(config);
  log.info({ version }, `Outfit gateway ${version}`);

  const place = await listening(reservePlace(config));
  const ground = await openGround(config, log);
  const { database } = ground;
  closeOnSignal((signal) => {
    sayGoodBye(log, signal);
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
    const metricsServer =
      metrics && config.metricsPort !== undefined
        ? await listening(serveMetrics(metrics, { host: config.host, port: config.metricsPort }))
        : undefined;
    closeOnSignal(async (signal) => {
      sayGoodBye(log, signal);
      // SIGINT is a person at the terminal, who has nobody to tell.
      await shutdown.close(app, signal === 'SIGTERM');
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
