// The outfits of a gateway that starts: watched, seeded and counted once, for any number of processes.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import type { Database } from '../database/database.ts';
import type { Monitor } from '../database/monitor.ts';
import type { MetricsSource } from '../observability/metrics-server.ts';
import { applyFewPendingChanges, checkTriggers } from '../outfits/counts.ts';
import { createOutfitList } from '../outfits/lists/list.ts';
import { reserveIds } from '../outfits/writes/bulk.ts';
import { typed } from '../package.ts';
import { isDemo, seedDemo } from './seed.ts';
import { isEnding } from './signals.ts';

export interface Opening {
  readonly monitor: Monitor;
  /** Whether the pictures of the demonstration set are drawn here, below `/media/`. */
  readonly drawsPictures: boolean;
  /** Why no page can be read in time although the database can be used, in one sentence. */
  problem(): string | undefined;
  /** Resolves when that has passed. */
  readonly opened: Promise<void>;
}

/** What answers requests, this process or several workers: built, and not listening. */
export interface Serving {
  readonly measured: MetricsSource | undefined;
  listen(): Promise<void>;
  /** Closes its ground too. @param announce whether to wait until others have seen that it is not ready */
  close(announce: boolean): Promise<void>;
}

/** Milliseconds that listening waits for what is done first. A lock of another client may take hours. */
const patience = 3_000;
const retryPause = 1_000;

/**
 * Watches the database and prepares the outfits. What takes long, or waits for the database, is done beside serving.
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
      const hint = '(SEED=none leaves it empty)';
      log.info(`the database is empty: filling it with a demonstration set ${hint}`);
      await seedDemo(pool, (saved) => log.info(`${saved} demonstration outfits saved`));
    }
    isDemoSet = await isDemo(read);
    await applyFewPendingChanges(pool);
    const outfits = await createOutfitList(read, { private: 'all' }).count();
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
