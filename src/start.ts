// The process: reads the environment, opens the database, listens, and closes on a signal.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import pretty from 'pino-pretty';
import { canIdentify } from './admission/viewer.ts';
import { buildApp } from './app.ts';
import { type Config, ConfigError, readConfig } from './config.ts';
import { type Database, openDatabase } from './database/database.ts';
import { migrate } from './database/migrations.ts';
import { seedDemo } from './demo/seed.ts';
import { listen } from './http/server.ts';
import { createShutdown } from './http/shutdown.ts';
import { createLog } from './observability/log.ts';
import { createMetrics } from './observability/metrics.ts';
import { serveMetrics } from './observability/metrics-server.ts';
import { countOutfits } from './outfits/pages.ts';
import { closeOnSignal, isEnding } from './signals.ts';

/** Milliseconds that the database has to close. */
const databaseGrace = 1_000;

const help = `Usage: npm start

Starts the gateway. It takes no arguments: settings are environment variables, such as
PORT=8080 npm start. .env.example lists them all.
`;

try {
  const args = process.argv.slice(2);
  if (args.includes('--help') || args.includes('-h')) process.stdout.write(help);
  else if (args.length === 0) await start(readConfig(process.env));
  else throw new ConfigError(`Unexpected argument ${JSON.stringify(args[0])}: see --help.`);
} catch (error) {
  if (!isEnding()) fail(error);
}

async function start(config: Config): Promise<void> {
  // Lines of JSON, unless a person is looking.
  const log = createLog(
    config.logLevel,
    process.stdout.isTTY
      ? pretty({ ignore: 'pid,hostname', translateTime: 'HH:MM:ss' })
      : undefined,
  );

  const database = await openDatabase(config, config.requestTimeout * 1000);
  // A statement that does not end must not keep the process: PostgreSQL ends it by itself.
  const closeDatabase = () => Promise.race([database.close(), sleep(databaseGrace)]);
  closeOnSignal((signal) => {
    log.info(`${signal}: closing`);
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
      const outfits = await fill(database, config, log);
      log.info(`${database.description}, ${outfits} outfits`);
    };
    // A PostgreSQL that is away or not migrated is waited for: whoever starts the gateway, starts
    // or migrates that as well, in any order, and asks /health/ready.
    if (monitor.problem()) monitor.ready.then(announce).catch((error) => log.error({ err: error }));
    else await announce();

    const shutdown = createShutdown();
    const metrics = config.metricsPort === undefined ? undefined : createMetrics(database);
    const isDatabaseAway = () => monitor.problem() !== undefined;
    const app = await buildApp(config, database, {
      logger: log,
      metrics,
      shutdown,
      isDatabaseAway,
    });
    const metricsServer =
      metrics && config.metricsPort !== undefined
        ? await serveMetrics(metrics, { host: config.host, port: config.metricsPort })
        : undefined;
    if (metricsServer) log.info(`metrics:  port ${metricsServer.port}, /metrics`);
    closeOnSignal(async (signal) => {
      log.info(`${signal}: closing`);
      // SIGINT is a person at the terminal, who has nobody to tell.
      await shutdown.close(app, signal === 'SIGTERM');
      metricsServer?.close();
      await closeDatabase();
    });

    const address = await listen(app, config);
    const base =
      config.publicUrl ?? address.replace(/\[::1?\]|127\.0\.0\.1|0\.0\.0\.0/, 'localhost');
    log.info(
      canIdentify(config)
        ? 'writing is possible with a bearer token'
        : 'writing is not possible: set AUTH_JWKS_URL or AUTH_JWT_SECRET to let viewers sign in',
    );
    log.info(`REST:     ${base}/api/outfits/`);
    log.info(`GraphQL:  ${base}/graphql`);
    if (config.graphiql) log.info(`GraphiQL: ${base}/graphql (in a browser)`);
  } catch (error) {
    if (!isEnding()) await database.close();
    throw error;
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

/** Ends the process with one sentence for the errors that say what to change, and a trace for others. */
function fail(error: unknown): never {
  process.stderr.write(`${describeFailure(error)}\n`);
  process.exit(1);
}

function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error ? error.code : undefined;
  if (
    code === 'EADDRINUSE' ||
    code === 'EACCES' ||
    code === 'EADDRNOTAVAIL' ||
    code === 'ENOTFOUND'
  ) {
    return `The gateway cannot listen there (${error.message}): set HOST and PORT (and METRICS_PORT) to addresses that are free.`;
  }
  return error.name === 'Error' ? (error.stack ?? error.message) : error.message;
}
