// outfit-gateway start: opens the database, listens, and closes on a signal.
import { readArgumentsAndSettings } from './commands/arguments.ts';
import type { Io } from './commands/command.ts';
import { describeSettings } from './commands/settings-help.ts';
import { type Config, readConfig } from './config.ts';
import { migrate } from './database/migrations.ts';
import { fail, listening } from './failure.ts';
import { listen } from './http/server.ts';
import { serveMetrics } from './observability/metrics-server.ts';
import { buildService, openGround } from './service.ts';
import { closeOnSignal, isEnding } from './signals.ts';
import { locate, monitorAndFill, openLog, sayGoodBye, sayWhatOpens } from './start-up.ts';
import { version } from './version.ts';

export const help = `Usage: outfit-gateway [start] [--SETTING VALUE ...]

Starts the gateway. Settings are options, variables such as PORT=8080, or lines in the file .env:
an option wins over the environment, and that over the file. .env.example says more of each. Others
on this machine can read options in the list of processes: keep passwords and secrets out of them.

${describeSettings()}

  -h, --help   prints this
  --version    prints the version
`;

export const failureCode = 1;

/** Runs until a signal ends the process, or what it cannot go on without fails. */
export async function run(io: Io): Promise<never> {
  const config = readConfig(readArgumentsAndSettings(io, {}, false).env);
  try {
    if (config.workers === 1) await start(config);
    else await (await import('./cluster/parent.ts')).startWorkers(config);
  } catch (error) {
    if (!isEnding()) fail(error);
  }
  return new Promise(() => {});
}

async function start(config: Config): Promise<void> {
  const log = await openLog(config);
  log.info({ version }, `Outfit gateway ${version}`);

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
    const monitor = await monitorAndFill(database, config, log);
    const { place, mediaUrl, drawsPictures } = await locate(database, monitor, config);
    const parts = { log, monitor, drawsPictures };
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
