// Preparation at start, once per gateway: watches the database, seeds it when it is empty, counts the outfits.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import { commandText } from '../config/package.ts';
import type { Database } from '../database/database.ts';
import { lockNotAvailable, sqlStateOf } from '../database/errors.ts';
import type { Monitor } from '../database/monitor.ts';
import { DatabaseNotReadyError } from '../database/readiness.ts';
import { checkTriggers } from '../outfits/counts.ts';
import { createOutfitList } from '../outfits/lists/list.ts';
import { reserveIds } from '../outfits/writes/bulk.ts';
import { isDemo, seedDemo } from './demo/seed.ts';
import { describeError, isDatabaseError } from './exit.ts';
import { isShuttingDown } from './signals.ts';

/** Milliseconds that the start waits for the preparation: the lock of another client may take hours. */
const startTimeout = 3_000;
const retryInterval = 1_000;

/**
 * Connects, seeds and counts. Work that takes longer than `startTimeout` continues while the gateway serves.
 * @throws DatabaseNotReadyError or MigrationError when a retry cannot help
 */
export async function connectAndSeed(
  database: Database,
  config: Config,
  log: Logger,
): Promise<Startup> {
  const onChange = (problem: Error | undefined) => {
    if (problem) log.error(problem.message);
    else log.info(`${database.description} can be used`);
  };
  const monitor = await database.monitor(onChange, (sentence) => log.warn(sentence));
  const startup = new Startup(monitor, database, config, log);
  await startup.run();
  return startup;
}

export class Startup {
  /** Whether this gateway draws the pictures of the demonstration set, below `/media/`. Constant after `run`. */
  drawsPictures = false;
  #isStarting = true;
  #isPrepared = false;
  #isSeeding = false;
  /** Whether another client has locked the outfits: the start does not wait for the next look. */
  #isLocked = false;
  #isSeeded = false;
  #lastWarning: string | undefined;
  #hasDemoSet: boolean;

  constructor(
    readonly monitor: Monitor,
    private readonly database: Database,
    private readonly config: Config,
    private readonly log: Logger,
  ) {
    // Assumed until the database can be read: with SEED=demo, an empty one will get the demonstration set.
    this.#hasDemoSet = config.seed === 'demo';
  }

  /** Why pages cannot be read in time although the database is up, in one sentence. */
  readonly problem = (): string | undefined =>
    this.#isPrepared ? undefined : 'The outfits are not counted yet.';

  /** Whether the database may still get the demonstration set: until then it must not pass for a listing without outfits. */
  readonly awaitsSeed = (): boolean => this.config.seed === 'demo' && !this.#isSeeded;

  async run(): Promise<void> {
    const prepared = this.#prepareUntilDone();
    if (!this.monitor.problem()) {
      // Seeding takes seconds; until it ends, clients would take an empty listing for the whole one.
      do await Promise.race([prepared, sleep(startTimeout, undefined, { ref: false })]);
      while (this.#isSeeding);
    }
    this.#isStarting = false;
    this.drawsPictures = !this.config.hasMediaUrl && this.#hasDemoSet;
  }

  /** @throws while the start waits for it, an error that a retry cannot help */
  async #prepareUntilDone(): Promise<void> {
    while (!isShuttingDown()) {
      try {
        if (!this.monitor.problem()) return await this.#prepare();
      } catch (error) {
        const mayPass = isDatabaseError(error) || error instanceof DatabaseNotReadyError;
        if (this.#isStarting && !mayPass) throw error;
        this.#warn(error);
      }
      await sleep(retryInterval, undefined, { ref: false });
    }
  }

  async #prepare(): Promise<void> {
    const { config, log } = this;
    const { description, pool, read } = this.database;
    await this.#seedIfEmpty();
    // A database with outfits is served while it waits.
    if (config.firstId !== undefined) await reserveIds(pool, config.firstId);
    this.#hasDemoSet = await isDemo(read);
    const outfits = await createOutfitList(read, { private: 'all' }).count();
    for (const problem of await checkTriggers(pool)) {
      log.error(`${problem}: counts and pages may be wrong; run ${commandText('counts rebuild')}`);
    }
    log.info(`${description}, ${outfits} outfits`);
    this.#isPrepared = true;
  }

  async #seedIfEmpty(): Promise<void> {
    if (!this.awaitsSeed()) return;
    this.#isSeeding = !this.#isLocked;
    const onEmpty = () => {
      this.#isSeeding = true;
      const hint = '(SEED=none leaves it empty)';
      this.log.info(`the database is empty: filling it with a demonstration set ${hint}`);
    };
    try {
      const saved = await seedDemo(this.database.pool, onEmpty, this.config.firstId);
      if (saved > 0) this.log.info(`${saved} demonstration outfits saved`);
      this.#isSeeded = true;
    } catch (error) {
      this.#isLocked = sqlStateOf(error) === lockNotAvailable;
      throw error;
    } finally {
      this.#isSeeding = false;
    }
  }

  #warn(error: unknown): void {
    const sentence = describeError(error);
    if (sentence !== this.#lastWarning) this.log.warn(`${sentence} The gateway tries again.`);
    this.#lastWarning = sentence;
  }
}
