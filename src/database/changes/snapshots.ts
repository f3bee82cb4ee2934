// Tells what the database shows now, and what has changed, for the cache, live answers and standbys.
import type pg from 'pg';
import { timedOut } from '../../errors.ts';
import { ChangeLog } from './change-log.ts';
import type { DatabaseState } from './database-state.ts';
import { createProbe } from './probe.ts';

/** Where snapshots are taken: on one connection of its own, or the one session of the embedded database. */
interface Source {
  take(): Promise<DatabaseState | undefined>;
  /** Fails what is under way: it would say what is left behind. */
  reset(): void;
  close(): Promise<void>;
}

/** Source of the current database state, for caches that invalidate by it. */
export type StateSource = Pick<Snapshots, 'changes' | 'next'>;

/** Takes snapshots: the current state of the database, and into `changes` what was committed since the last one. */
export class Snapshots {
  #onTaken: ((milliseconds: number) => void) | undefined;
  #underWay: Promise<unknown> = Promise.resolve();
  #next: Promise<DatabaseState | undefined> | undefined;

  /** @param limit milliseconds that a call may wait for a statement of others; undefined: there are none */
  constructor(
    readonly changes: ChangeLog,
    private readonly source: Source,
    private readonly limit?: number,
  ) {}

  /** A snapshot taken after this call, shared by all calls that come while one is under way; undefined on a standby. */
  next(): Promise<DatabaseState | undefined> {
    if (!this.#next) {
      const started = this.#underWay
        .then(() => new Promise<void>(setImmediate))
        .then(() => this.#start());
      const limited = this.limit === undefined ? started : withLimit(started, this.limit);
      this.#next = limited;
      // Whoever comes after its time waits anew.
      limited.catch(() => {
        if (this.#next === limited) this.#next = undefined;
      });
    }
    return this.#next;
  }

  #start(): Promise<DatabaseState | undefined> {
    this.#next = undefined;
    const startedAt = performance.now();
    const started = this.source.take();
    const report = () => this.#onTaken?.(performance.now() - startedAt);
    this.#underWay = started.then(report, report);
    return started;
  }

  observe(onTaken: (milliseconds: number) => void): void {
    this.#onTaken = onTaken;
  }

  renew(): Promise<unknown> {
    this.source.reset();
    return this.next();
  }

  close(): Promise<void> {
    return this.source.close();
  }
}

/** Takes snapshots on a connection of their own, so that they never wait for a free one. */
export function watchServer(
  createClient: () => pg.Client,
  meet?: (identity: string) => void,
): Snapshots {
  // After a crash a server may give a name again: what was known on a connection is forgotten with it.
  const changes = new ChangeLog();
  let probe = createProbe(changes, 'server', meet);
  let client: Promise<pg.Client> | undefined;

  const connect = () => {
    probe = createProbe(changes, 'server', meet);
    const fresh = createClient();
    const opened = fresh.connect().then(() => fresh);
    // A lost connection reports its end late, when the next one may have taken its place.
    const forget = () => {
      if (client === opened) client = undefined;
    };
    fresh.on('error', forget).on('end', forget);
    return opened;
  };

  return new Snapshots(changes, {
    async take() {
      client ??= connect();
      const used = client;
      try {
        return await probe(await used);
      } catch (error) {
        if (client === used) client = undefined;
        used.then((broken) => broken.end()).catch(() => {});
        throw error;
      }
    },
    reset() {
      client?.then((open) => open.connection.stream.destroy()).catch(() => {});
      client = undefined;
    },
    close: async () => {
      await client?.then((open) => open.end()).catch(() => {});
    },
  });
}

export function watchEmbedded(pool: pg.Pool, limit: number): Snapshots {
  const changes = new ChangeLog();
  const probe = createProbe(changes, 'embedded');
  const source = { take: () => probe(pool), reset: () => {}, close: async () => {} };
  return new Snapshots(changes, source, limit);
}

function withLimit<Result>(promise: Promise<Result>, limit: number): Promise<Result> {
  return new Promise((settle, reject) => {
    const timer = setTimeout(() => reject(timedOut()), limit);
    promise.finally(() => clearTimeout(timer)).then(settle, reject);
  });
}
