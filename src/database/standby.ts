// One standby: how far it has replayed the log of its primary, and whether it may be read from.
import { setTimeout as sleep } from 'node:timers/promises';
import { describeServer } from './database.ts';
import { TaskPool } from './pool.ts';
import { reasonOf } from './prepare.ts';
import { type ReadRows, readRows } from './read.ts';
import { createSession } from './session.ts';
import type { LogPosition } from './snapshots.ts';
import { Sockets } from './sockets.ts';
import { createAsker } from './standby-asker.ts';
import { askStandby, isAtOrPast, type StandbyState } from './standby-state.ts';

/** A server that is read from, while nothing is wrong with it. */
export interface Standby {
  /** Host and port. */
  readonly name: string;
  /** For the log; holds no password. */
  readonly description: string;
  readonly pool: TaskPool;
  /** Why it is not read from now, in words that follow its description; undefined while it is. */
  readonly problem: string | undefined;
  /** The system that it is a standby of: the same for a primary and all its standbys. */
  readonly system: string | undefined;
  /** Reads, maybe less than what the primary shows: ask `reach` first. */
  readonly read: ReadRows;
  /** Whether it is known to show all that is before a position. */
  hasReached(position: LogPosition): boolean;
  /** The same, after it has been asked and had a moment for what it lacks. Never rejects. */
  reach(position: LogPosition): Promise<boolean>;
  /** Looks now whether it can be read from, and again and again from then on. */
  check(): Promise<void>;
  close(): Promise<void>;
}

export interface StandbyOptions {
  readonly url: string;
  /** Most connections. */
  readonly max: number;
  /** Milliseconds that a statement may take. */
  readonly statementTimeout: number;
  /** Milliseconds that an expensive statement may take. */
  readonly expensiveTimeout: number;
  /** What is wrong with a server that is in this state. */
  judge(state: StandbyState): string | undefined;
  /** Called when `problem` has changed. */
  onChange(standby: Standby): void;
}

/** Milliseconds between two checks. */
const pause = 200;
/** Most milliseconds between two checks of one that cannot be read from. */
const maxPause = 5_000;
/** Milliseconds after which a server that has stayed well has no past any more. */
const probation = 10_000;
/** Most milliseconds that a read waits for what a standby lacks, and those between two questions. */
const maxWait = 20;
const step = 3;

/** Opens nothing until it is checked or read from. */
export function createStandby({ url, ...options }: StandbyOptions): Standby {
  const { host } = new URL(url);
  const session = createSession(url, 'session', options.statementTimeout);
  const sockets = new Sockets();
  const asker = createAsker(session);
  let state: StandbyState | undefined;
  let problem: string | undefined = 'has not been asked yet';
  /** What it had not replayed in time: until it has, nobody waits for it. */
  let awaited: LogPosition | undefined;
  let askedAt = 0;
  let timer: NodeJS.Timeout | undefined;
  let checking: Promise<void> | undefined;
  let isClosed = false;
  let failures = 0;
  let wellSince = 0;

  const update = (found: string | undefined) => {
    if (found === problem) return;
    if (found && !problem) {
      // Whoever waits for it is answered by the primary.
      sockets.refuse(new Error(`The ${standby.description} ${found}.`));
    }
    if (!found) {
      wellSince = performance.now();
      sockets.admit();
    }
    problem = found;
    options.onChange(standby);
  };
  const ask = async () => {
    askedAt = performance.now();
    const answer = await asker.ask();
    // The connections that are open lead to the one before: they are cut, and the next look admits new ones.
    const isOther = state !== undefined && state.server !== answer.server;
    const found = options.judge(answer) ?? (isOther ? 'is another server than before' : undefined);
    state = found ? undefined : answer;
    update(found);
  };
  const look = async () => {
    clearTimeout(timer);
    try {
      await ask();
    } catch (error) {
      if (isClosed) return;
      state = undefined;
      update(`cannot be read from (${reasonOf(error)})`);
    }
    checking = undefined;
    if (isClosed) return;
    if (problem) failures += 1;
    else if (performance.now() - wellSince > probation) failures = 0;
    timer = setTimeout(check, problem ? Math.min(pause * 2 ** failures, maxPause) : pause);
  };
  const check = () => {
    if (isClosed) return Promise.resolve();
    checking ??= look();
    return checking;
  };

  const hasReached = (position: LogPosition) => state !== undefined && isAtOrPast(state, position);
  const pool = new TaskPool(
    {
      ...{ ...session.config, stream: sockets.open, max: options.max },
      // Its address may lead to several servers, and one that has crashed may be back with less than it had.
      onConnect: async (client) => {
        const known = state;
        const { server, replayed } = await askStandby(client);
        if (known && server === known.server && replayed >= known.replayed) return;
        throw new Error(`The ${standby.description} is not in the state that it was in.`);
      },
    },
    options.expensiveTimeout,
    session.Client,
  );
  // An idle connection that breaks is replaced by the pool.
  pool.on('error', () => {});

  const standby: Standby = {
    name: host || 'localhost',
    description: `standby ${describeServer(url)}`,
    pool,
    read: readRows(pool),
    get problem() {
      return problem;
    },
    get system() {
      return state?.system;
    },
    hasReached,
    async reach(position) {
      if (awaited?.timeline === position.timeline && !hasReached(awaited)) {
        if (performance.now() - askedAt > maxWait) ask().catch(() => {});
        return false;
      }
      awaited = undefined;
      const end = performance.now() + maxWait;
      while (performance.now() < end && !problem) {
        await Promise.race([ask().catch(() => {}), sleep(end - performance.now())]);
        if (hasReached(position)) return true;
        await sleep(step);
      }
      awaited ??= position;
      return false;
    },
    check,
    async close() {
      isClosed = true;
      clearTimeout(timer);
      asker.close();
      sockets.refuse(new Error('closed'));
      await pool.end();
    },
  };
  return standby;
}
