// Start of the gateway: the steps from the settings to the first request.
import type { Logger } from 'pino';
import { type Config, canSignIn, findOtherOwner } from '../config/config.ts';
import { version } from '../config/package.ts';
import { migrate } from '../database/migrations.ts';
import { checkAddress, urlOf } from '../http/server/server.ts';
import { serveMetrics } from '../observability/metrics-server.ts';
import { connectAndSeed } from './connect-and-seed.ts';
import { explainListenError, fail } from './exit.ts';
import { logShutdown, openLog, openResources, type Resources } from './resources.ts';
import type { Gateway } from './service.ts';
import {
  closeOnSignal,
  isShuttingDown,
  type ShutdownReason,
  switchLevelOnSignal,
} from './signals.ts';

export async function start(config: Config): Promise<void> {
  const log = openLog(config);
  switchLevelOnSignal(log);
  log.info({ version }, `Outfit gateway ${version}`);

  // The cheap checks first: a wrong address fails at once, a new embedded database takes seconds.
  const { host, metricsPort, legacyMode, legacyPaths, legacyUrl } = config;
  if (metricsPort) await explainListenError(checkAddress({ host, port: metricsPort }));
  const port = await explainListenError(checkAddress(config));
  if (config.databaseUrl === undefined && config.trustedDocuments !== undefined) {
    await (await import('../app.ts')).checkTrustedDocuments(config.trustedDocuments, config);
  }
  const resources = await openResources(config, log);
  const closeBy = (close: (reason: ShutdownReason) => Promise<void>) =>
    closeOnSignal((reason) => {
      logShutdown(log, reason);
      return close(reason);
    });
  closeBy(() => resources.close());
  void resources.database.failed.then((error) => fail(error, config.logFormat));
  try {
    const gateway = await buildGateway({ ...config, port }, resources, log);
    const { measured, writer } = gateway;
    const metricsServer =
      measured && metricsPort !== undefined
        ? await explainListenError(serveMetrics(measured, { host, port: metricsPort }))
        : undefined;
    closeBy(async (reason) => {
      // SIGINT comes from a terminal: no load balancer watches the readiness.
      await gateway.close(reason !== 'SIGINT');
      metricsServer?.close();
    });
    // Last: a connection that is accepted is answered.
    await gateway.listen();
    log.info(describeWriting(config, writer));
    if (legacyMode.kind !== 'off') {
      log.info(`LEGACY_MODE=${legacyMode.kind}, old service ${legacyUrl}`);
      log.info(
        `paths below ${legacyPaths.join(' and ')} that are not served here go to the old service`,
      );
    }
    logAddresses(log, config, urlOf(host, port), metricsServer?.port);
    if (gateway.isAway()) log.warn('these answer 503 until the database can be used');
  } catch (error) {
    if (!isShuttingDown()) await resources.close();
    throw error;
  }
}

async function buildGateway(config: Config, resources: Resources, log: Logger): Promise<Gateway> {
  const { database } = resources;
  const onApply = (name: string) => log.info(`applying migration ${name}`);
  if (database.kind === 'embedded') await migrate(database.pool, onApply);
  const startup = await connectAndSeed(database, config, log);
  const { host, port, publicUrl = urlOf(host, port) } = config;
  const mediaUrl = startup.drawsPictures ? `${publicUrl}/media` : config.mediaUrl;
  const { openService } = await import('./service.ts');
  return openService({ ...config, mediaUrl }, resources, startup, log);
}

function describeWriting(config: Config, writer: Gateway['writer']): string {
  const owner = findOtherOwner(config);
  if (owner === 'off') return 'WRITES=off: every write is refused';
  if (writer === 'old service') {
    return 'writing is not possible: the old service writes its tables';
  }
  if (owner === 'legacy' && !writer) {
    return 'writing is not possible: the old service takes all writes';
  }
  if (!canSignIn(config)) {
    return 'writing is not possible: set AUTH_JWKS_URL, AUTH_JWT_SECRET or AUTH_WEBHOOK_URL to let viewers sign in';
  }
  const { authJwksUrl, authJwtSecret, authWebhookUrl } = config;
  const writers = [
    ...((authJwksUrl ?? authJwtSecret) ? ['a bearer token'] : []),
    ...(authWebhookUrl ? ['a credential that AUTH_WEBHOOK_URL accepts'] : []),
  ];
  return `writing is possible with ${writers.join(', or ')}`;
}

/** @param url address of the gateway for this machine */
function logAddresses(
  log: Logger,
  { browsable, graphiql, host, legacyMode, publicUrl }: Config,
  url: string,
  metricsPort: number | undefined,
): void {
  const base = publicUrl ?? url;
  const addresses = [
    publicUrl !== undefined && ['Local', `${url}/`],
    browsable && ['Gallery', `${base}/`],
    ['REST', `${base}/api/outfits/`],
    [graphiql ? 'GraphiQL' : 'GraphQL', `${base}/graphql`],
    // With less than 100 percent, the old service answers this path for some or all clients.
    browsable && legacyMode.percent === 100 && ['API docs', `${base}/api/docs`],
    metricsPort !== undefined && ['Metrics', `${urlOf(host, metricsPort)}/metrics`],
  ];
  for (const [name, address] of addresses.filter((one) => one !== false)) {
    log.info({ address }, `${`${name}:`.padEnd(9)} ${address}`);
  }
}
