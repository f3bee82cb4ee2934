// Starts the gateway: what is done once, however many processes then serve.
import { type Config, ConfigError, findWriteObstacle } from '../config.ts';
import { migrate } from '../database/migrations.ts';
import { reservePlace, urlOf } from '../http/server/server.ts';
import { serveMetrics } from '../observability/metrics-server.ts';
import { version } from '../package.ts';
import { openOutfits } from './connect-and-seed.ts';
import { fail, listening } from './exit.ts';
import { openGround, openLog, sayGoodBye } from './resources.ts';
import { closeOnSignal, isEnding } from './signals.ts';

export async function start(config: Config): Promise<void> {
  const isOne = config.workers === 1;
  if (!isOne && config.databaseUrl === undefined) {
    throw new ConfigError(
      `WORKERS is "${config.workers}", but the embedded database is for one process: set DATABASE_URL to a PostgreSQL database, or WORKERS to 1.`,
    );
  }
  const log = await openLog(config, !isOne);
  log.info({ version }, `Outfit gateway ${version}`);

  // Before anything that takes long: a wrong address is said at once.
  const { host, metricsPort } = config;
  const reserve = (port: number) => listening(reservePlace({ host, port }));
  const place = await reserve(config.port);
  const metricsPlace = metricsPort === undefined ? undefined : await reserve(metricsPort);
  // Making a first database takes seconds.
  if (config.databaseUrl === undefined && config.trustedDocuments !== undefined) {
    await (await import('../app.ts')).checkTrustedDocuments(config.trustedDocuments, config);
  }
  // A parent of workers only fills the database: traces and standbys are for requests.
  const parent = { databasePoolMax: 1, databaseReadUrls: [], otlpEndpoint: undefined };
  const ground = await openGround(isOne ? config : { ...config, ...parent }, log);
  const { database } = ground;
  closeOnSignal((reason) => {
    sayGoodBye(log, reason);
    return ground.close();
  });
  database.failed.then(fail);
  try {
    const onApply = (name: string) => log.info(`applying migration ${name}`);
    if (database.kind === 'embedded') await migrate(database.pool, onApply);
    const opening = await openOutfits(database, config, log);
    const mediaUrl = opening.drawsPictures
      ? `${config.publicUrl ?? place.url}/media`
      : config.mediaUrl;
    const settings = { ...config, mediaUrl, port: place.port };
    const open = isOne
      ? (await import('./service.ts')).openService
      : (await import('./cluster/parent.ts')).openWorkers;
    const serving = await open(settings, ground, opening, log);
    const { measured } = serving;
    await metricsPlace?.release();
    const metricsServer =
      measured &&
      metricsPlace &&
      (await listening(serveMetrics(measured, { host, port: metricsPlace.port })));
    closeOnSignal(async (reason) => {
      sayGoodBye(log, reason);
      // SIGINT is a person at the terminal, who has nobody to tell.
      await serving.close(reason !== 'SIGINT');
      metricsServer?.close();
    });

    await place.release();
    await serving.listen();
    log.info(describeWriting(config));
    const { legacyMode, legacyUrl } = config;
    if (legacyMode.kind !== 'off') log.info(`LEGACY_MODE=${legacyMode.kind}, beside ${legacyUrl}`);
    for (const [name, address] of addressesOf(config, place.url, metricsServer?.port)) {
      log.info({ address }, `${`${name}:`.padEnd(9)} ${address}`);
    }
  } catch (error) {
    if (!isEnding()) await ground.close();
    throw error;
  }
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

/** The addresses that open now, `url` for this machine. */
function addressesOf(
  { browsable, graphiql, host, legacyMode, publicUrl }: Config,
  url: string,
  metricsPort: number | undefined,
) {
  const base = publicUrl ?? url;
  const all = [
    publicUrl !== undefined && ['Local', `${url}/`],
    browsable && ['Gallery', `${base}/`],
    ['REST', `${base}/api/outfits/`],
    [graphiql ? 'GraphiQL' : 'GraphQL', `${base}/graphql`],
    // Or else the old service answers it for some or all.
    browsable && legacyMode.percent === 100 && ['API docs', `${base}/api/docs`],
    metricsPort !== undefined && ['Metrics', `${urlOf(host, metricsPort)}/metrics`],
  ];
  return all.filter((one) => one !== false);
}
