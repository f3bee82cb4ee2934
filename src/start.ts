// outfit-gateway start: opens the database, listens, and closes on a signal.
import { setTimeout as sleep } from 'node:timers/promises';
import type { DestinationStream, Logger } from 'pino';
import { logAddresses } from './addresses.ts';
import { findWriteObstacle } from './admission/write-guard.ts';
import { buildApp } from './app.ts';
import { readArgumentsAndSettings } from './commands/arguments.ts';
import { describeError, type Io } from './commands/command.ts';
import { describeSettings } from './commands/settings-help.ts';
import { type Config, ConfigError, readConfig } from './config.ts';
import { type Database, openDatabase } from './database/database.ts';
import { migrate } from './database/migrations.ts';
import { isDemo } from './demo/recognise.ts';
import { seedDemo } from './demo/seed.ts';
import { listen, reservePlace } from './http/server.ts';
import { createShutdown } from './http/shutdown.ts';
import { createLog } from './observability/log.ts';
import { createMetrics } from './observability/metrics.ts';
import { serveMetrics } from './observability/metrics-server.ts';
import { reserveIds } from './outfits/bulk.ts';
import { countOutfits } from './outfits/pages.ts';
import { closeOnSignal, isEnding } from './signals.ts';
import { version } from './version.ts';

/** Milliseconds that the database has to close. */
const databaseGrace = 1_000;

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
    await start(config);
  } catch (error) {
    if (!isEnding()) fail(error);
  }
  return new Promise(() => {});
}

async function start(config: Config): Promise<void> {
  const isPretty = (config.logFormat ?? (process.stdout.isTTY ? 'pretty' : 'json')) === 'pretty';
  const log = createLog(config.logLevel, isPretty ? await createPrettyLines() : undefined);
  log.info({ version }, `Outfit gateway ${version}`);

  const database = await openDatabase(config, config.requestTimeout * 1000);
  const { otlpEndpoint } = config;
  const tracing =
    otlpEndpoint === undefined
      ? undefined
      : (await import('./tracing/tracing.ts')).startTracing(otlpEndpoint, log);
  tracing?.followStatements(database.pool);
  // A statement that does not end must not keep the process: PostgreSQL ends it by itself.
  const closeDatabase = () => Promise.race([database.close(), sleep(databaseGrace)]);
  closeOnSignal((signal) => {
    sayGoodBye(log, signal);
    return closeDatabase();
  });
  database.failed.then(fail);
  try {
    const onApply = (name: string) => log.info(`applying migration ${name}`);
    if (database.kind === 'embedded') await migrate(database.pool, onApply);
    const monitor = await database.monitor((problem) => {
      if (problem) log.error(problem.message);
      else log.info(`${database.description} can be used`);
    });
    const announce = async () => {
      if (config.firstId !== undefined) await reserveIds(database.pool, config.firstId);
      const outfits = await fill(database, config, log);
      log.info(`${database.description}, ${outfits} outfits`);
    };
    // A PostgreSQL that is away or not migrated is waited for: whoever starts the gateway, starts
    // or migrates that as well, in any order, and asks /health/ready.
    if (monitor.problem()) monitor.ready.then(announce).catch((error) => log.error({ err: error }));
    else await announce();

    const place = await listening(reservePlace(config));
    const base = config.publicUrl ?? place.url;
    const drawsPictures =
      !config.hasMediaUrl &&
      // What a database has that is away is not known: what it will be filled with is.
      (monitor.problem() ? config.seed === 'demo' : await isDemo(database.read));
    const mediaUrl = drawsPictures ? `${base}/media` : config.mediaUrl;

    const shutdown = createShutdown();
    const metrics = config.metricsPort === undefined ? undefined : createMetrics(database);
    const isDatabaseAway = () => monitor.problem() !== undefined;
    const app = await buildApp({ ...config, mediaUrl }, database, {
      logger: log,
      metrics,
      tracing,
      shutdown,
      isDatabaseAway,
      drawsPictures,
    });
    const metricsServer =
      metrics && config.metricsPort !== undefined
        ? await listening(serveMetrics(metrics, { host: config.host, port: config.metricsPort }))
        : undefined;
    closeOnSignal(async (signal) => {
      sayGoodBye(log, signal);
      // SIGINT is a person at the terminal, who has nobody to tell.
      await shutdown.close(app, signal === 'SIGTERM');
      metricsServer?.close();
      await Promise.all([closeDatabase(), tracing?.close()]);
    });

    await place.release();
    await listening(listen(app, { host: config.host, port: place.port }));
    log.info(describeWriting(config));
    const { legacyMode, legacyUrl } = config;
    if (legacyMode.kind !== 'off') log.info(`LEGACY_MODE=${legacyMode.kind}, beside ${legacyUrl}`);
    logAddresses(log, config, { url: place.url, metricsPort: metricsServer?.port });
  } catch (error) {
    if (!isEnding()) await database.close();
    throw error;
  }
}

/** The log for a person, without what the messages say already. */
async function createPrettyLines(): Promise<DestinationStream> {
  const { default: pretty } = await import('pino-pretty');
  const ignore = 'pid,hostname,address,version';
  return pretty({ ignore, translateTime: 'SYS:HH:MM:ss', sync: true });
}

function sayGoodBye(log: Logger, signal: NodeJS.Signals): void {
  log.info(signal === 'SIGINT' ? 'SIGINT: closing, good-bye' : `${signal}: closing`);
}

function describeWriting(config: Config): string {
  switch (findWriteObstacle(config)) {
    case 'off':
      return 'WRITES=off: every write is refused';
    case 'legacy':
      return 'writing is not possible: the old service takes all writes';
    case 'identity':
      return 'writing is not possible: set AUTH_JWKS_URL or AUTH_JWT_SECRET to let viewers sign in';
    case undefined:
      return 'writing is possible with a bearer token';
  }
}

/** Seeds an empty database, as configured. Gives the number of outfits. */
async function fill(database: Database, config: Config, log: Logger): Promise<number> {
  const outfits = await countOutfits(database.read, { private: 'all' });
  if (outfits > 0 || config.seed === 'none') return outfits;
  log.info(
    'the database is empty: filling it with a demonstration set (SEED=none leaves it empty)',
  );
  await seedDemo(database.pool, (saved) => log.info(`${saved} demonstration outfits saved`));
  return countOutfits(database.read, { private: 'all' });
}

/** @throws ConfigError that says what to change, for an address that cannot be taken */
function listening<Result>(work: Promise<Result>): Promise<Result> {
  return work.catch((error: NodeJS.ErrnoException) => {
    if (!/^(?:EADDRINUSE|EACCES|EADDRNOTAVAIL|ENOTFOUND)$/.test(error.code ?? '')) throw error;
    throw new ConfigError(
      `The gateway cannot listen there (${error.message}): set HOST and PORT (and METRICS_PORT) to addresses that are free.`,
    );
  });
}

/** Ends the process with one sentence for the errors that say what to change, and a trace for others. */
function fail(error: unknown): never {
  process.stderr.write(`${describeError(error)}\n`);
  process.exit(1);
}
