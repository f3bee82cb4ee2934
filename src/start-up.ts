// What a start does once, however many processes then serve: the log, the first outfits, the address,
// and the lines that say what opens.
import { setTimeout as sleep } from 'node:timers/promises';
import type { DestinationStream, Logger } from 'pino';
import { logAddresses } from './addresses.ts';
import { findWriteObstacle } from './admission/write-guard.ts';
import type { Config } from './config.ts';
import type { Database } from './database/database.ts';
import type { Monitor } from './database/monitor.ts';
import { isDemo } from './demo/recognise.ts';
import { seedDemo } from './demo/seed.ts';
import { listening } from './failure.ts';
import { type Place, reservePlace } from './http/server.ts';
import { createLog } from './observability/log.ts';
import { type Measured, type MetricsServer, serveMetrics } from './observability/metrics-server.ts';
import { reserveIds } from './outfits/bulk.ts';
import { checkTriggers, foldFewChanges } from './outfits/fold.ts';
import { countOutfits } from './outfits/pages.ts';
import { typed } from './package.ts';
import { type EndReason, isEnding } from './signals.ts';

/** @param isOneOfSeveral whether lines for a person say which process writes them */
export async function openLog(config: Config, isOneOfSeveral = false): Promise<Logger> {
  const isPretty = (config.logFormat ?? (process.stdout.isTTY ? 'pretty' : 'json')) === 'pretty';
  return createLog(config.logLevel, isPretty ? await createPrettyLines(isOneOfSeveral) : undefined);
}

/** The log for a person, without what the messages say already. */
async function createPrettyLines(isOneOfSeveral: boolean): Promise<DestinationStream> {
  const { default: pretty } = await import('pino-pretty');
  const ignore = `${isOneOfSeveral ? '' : 'pid,'}hostname,address,version`;
  return pretty({ ignore, translateTime: 'SYS:HH:MM:ss', sync: true });
}

export function sayGoodBye(log: Logger, reason: EndReason): void {
  if (reason instanceof Error) log.fatal({ err: reason }, 'uncaught error: closing');
  else log.info(reason === 'SIGINT' ? 'SIGINT: closing, good-bye' : `${reason}: closing`);
}

/** The outfits of a gateway that starts. */
export interface Opening {
  readonly monitor: Monitor;
  /** Whether the pictures of the demonstration set are drawn here, below `/media/`. */
  readonly drawsPictures: boolean;
  /** Why no page can be read in time although the database can be used, in one sentence. */
  problem(): string | undefined;
  /** Resolves when that has passed. */
  readonly opened: Promise<void>;
}

/** Milliseconds that listening waits for what is done first. A lock of another client may take hours. */
const patience = 3_000;
const retryPause = 1_000;

/**
 * Watches the database, and prepares the outfits: ids are reserved, an empty database is seeded, few changes are
 * folded, and the outfits counted, which is most of the work of a first page. What takes longer, and what has to
 * wait for the database, is done beside serving, until it succeeds.
 * @throws DatabaseNotReadyError or MigrationError when waiting cannot help
 */
export async function openOutfits(
  database: Database,
  config: Config,
  log: Logger,
): Promise<Opening> {
  const { description, pool, read } = database;
  const onChange = (problem: Error | undefined) => {
    if (problem) log.error(problem.message);
    else log.info(`${description} can be used`);
  };
  const monitor = await database.monitor(onChange, (sentence) => log.warn(sentence));
  let isOpen = false;
  let declareOpen = () => {};
  const opened = new Promise<void>((settle) => {
    declareOpen = settle;
  });
  let isSeeding = false;
  // The content of a database that is away is unknown: the set that it will be filled with is not.
  let isDemoSet = config.seed === 'demo';
  const prepare = async () => {
    if (config.firstId !== undefined) await reserveIds(pool, config.firstId);
    if (config.seed === 'demo' && (await pool.query(readAny)).rowCount === 0) {
      isSeeding = true;
      await seed(database, log);
    }
    isDemoSet = await isDemo(read);
    await foldFewChanges(pool);
    const outfits = await countOutfits(read, { private: 'all' });
    for (const problem of await checkTriggers(pool)) {
      log.error(`${problem}: counts and pages may be wrong; run ${typed('counts rebuild')}`);
    }
    log.info(`${description}, ${outfits} outfits`);
    isOpen = true;
    declareOpen();
  };
  const prepareAgain = async (): Promise<void> => {
    await sleep(retryPause, undefined, { ref: false });
    if (isEnding()) return;
    if (monitor.problem()) return prepareAgain();
    await prepare().catch((err) => {
      log.warn({ err }, 'the outfits cannot be counted yet');
      return prepareAgain();
    });
  };
  if (monitor.problem()) {
    // PostgreSQL may be started and migrated after the gateway, in any order.
    monitor.ready.then(prepare).catch(prepareAgain);
  } else {
    const prepared = prepare();
    const late = sleep(patience, 'late', { ref: false });
    const isLate = (await Promise.race([prepared, late])) === 'late';
    // A demonstration set takes seconds, and an empty listing would be taken for the whole one.
    if (isLate && !isSeeding) prepared.catch(prepareAgain);
    else await prepared;
  }
  return {
    monitor,
    drawsPictures: !config.hasMediaUrl && isDemoSet,
    problem: () => (isOpen ? undefined : 'The outfits are not counted yet.'),
    opened,
  };
}

const readAny = 'SELECT FROM outfits LIMIT 1';

async function seed({ pool }: Database, log: Logger): Promise<void> {
  log.info(
    'the database is empty: filling it with a demonstration set (SEED=none leaves it empty)',
  );
  await seedDemo(pool, (saved) => log.info(`${saved} demonstration outfits saved`));
}

/** Where the gateway will listen, and its metrics if there are any. */
export interface Places {
  readonly place: Place;
  readonly metricsPlace: Place | undefined;
}

/** @throws ConfigError for an address that cannot be taken, before anything that takes long */
export async function reservePlaces({ host, port, metricsPort }: Config): Promise<Places> {
  const reserve = (wanted: number) => listening(reservePlace({ host, port: wanted }));
  return {
    place: await reserve(port),
    metricsPlace: metricsPort === undefined ? undefined : await reserve(metricsPort),
  };
}

/** Serves metrics on the port that was reserved for them. */
export async function openMetrics(
  measured: Measured | undefined,
  { host }: Config,
  { metricsPlace }: Places,
): Promise<MetricsServer | undefined> {
  if (!measured || !metricsPlace) return undefined;
  await metricsPlace.release();
  return listening(serveMetrics(measured, { host, port: metricsPlace.port }));
}

/** Base of image URLs: that of the drawn pictures is known when the port is. */
export function mediaUrlOf(config: Config, { url }: Place, drawsPictures: boolean): string {
  return drawsPictures ? `${config.publicUrl ?? url}/media` : config.mediaUrl;
}

/** @param metricsPort undefined: there are no metrics */
export function sayWhatOpens(
  log: Logger,
  config: Config,
  { url }: Place,
  metricsPort: number | undefined,
): void {
  log.info(describeWriting(config));
  const { legacyMode, legacyUrl } = config;
  if (legacyMode.kind !== 'off') log.info(`LEGACY_MODE=${legacyMode.kind}, beside ${legacyUrl}`);
  logAddresses(log, config, { url, metricsPort });
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
