// What a start does once, however many processes then serve: the log, the first outfits, the address,
// and the lines that say what opens.
import type { DestinationStream, Logger } from 'pino';
import { logAddresses } from './addresses.ts';
import { findWriteObstacle } from './admission/write-guard.ts';
import { typed } from './command-line.ts';
import type { Config } from './config.ts';
import type { Database } from './database/database.ts';
import type { Monitor } from './database/monitor.ts';
import { isDemo } from './demo/recognise.ts';
import { seedDemo } from './demo/seed.ts';
import { listening } from './failure.ts';
import { type Place, reservePlace } from './http/server.ts';
import { createLog } from './observability/log.ts';
import { reserveIds } from './outfits/bulk.ts';
import { checkTriggers, foldChanges } from './outfits/fold.ts';
import { countOutfits } from './outfits/pages.ts';

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

export function sayGoodBye(log: Logger, signal: NodeJS.Signals): void {
  log.info(signal === 'SIGINT' ? 'SIGINT: closing, good-bye' : `${signal}: closing`);
}

/**
 * Watches the database, and says what it holds as soon as it can be used.
 * @throws DatabaseNotReadyError or MigrationError when waiting cannot help
 */
export async function monitorAndFill(
  database: Database,
  config: Config,
  log: Logger,
): Promise<Monitor> {
  const onChange = (problem: Error | undefined) => {
    if (problem) log.error(problem.message);
    else log.info(`${database.description} can be used`);
  };
  const monitor = await database.monitor(onChange, (sentence) => log.warn(sentence));
  const announce = async () => {
    if (config.firstId !== undefined) await reserveIds(database.pool, config.firstId);
    for (const problem of await checkTriggers(database.pool)) {
      log.error(`${problem}: counts and pages may be wrong; run ${typed('counts rebuild')}`);
    }
    await foldChanges(database.pool).catch((err) => log.warn({ err }, 'changes are not folded'));
    const outfits = await fill(database, config, log);
    log.info(`${database.description}, ${outfits} outfits`);
  };
  // A PostgreSQL that is away or not migrated is waited for: whoever starts the gateway, starts
  // or migrates that as well, in any order, and asks /health/ready.
  if (monitor.problem()) monitor.ready.then(announce).catch((error) => log.error({ err: error }));
  else await announce();
  return monitor;
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

/** Where a service listens, and where its pictures are. */
export interface Location {
  readonly place: Place;
  readonly mediaUrl: string;
  /** Whether the pictures are drawn there, below `/media/`. */
  readonly drawsPictures: boolean;
}

export async function locate(
  database: Database,
  monitor: Monitor,
  config: Config,
): Promise<Location> {
  const place = await listening(reservePlace(config));
  const drawsPictures =
    !config.hasMediaUrl &&
    // What a database has that is away is not known: what it will be filled with is.
    (monitor.problem() ? config.seed === 'demo' : await isDemo(database.read));
  const base = config.publicUrl ?? place.url;
  return { place, mediaUrl: drawsPictures ? `${base}/media` : config.mediaUrl, drawsPictures };
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
