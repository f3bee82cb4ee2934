// Asks a standby how it is, on a connection that is for nothing else.
import type pg from 'pg';
import { startLimit } from './monitor.ts';
import type { Session } from './session.ts';
import { askStandby, type StandbyState } from './standby-state.ts';

/**
 * Milliseconds for an answer: with those between two checks, the longest that a read waits for a frozen
 * server before it goes to the primary.
 */
const limit = 300;

/** Asks on a connection of its own, one question at a time for all who want to know. */
export function createAsker(session: Session) {
  let client: pg.Client | undefined;
  let asking: Promise<StandbyState> | undefined;
  let isClosed = false;
  const discard = (reason?: Error) => {
    client?.connection.stream.destroy(reason);
    client = undefined;
  };
  const connect = async () => {
    // Its time limit is that of the question.
    const fresh = new session.Client({ connectionTimeoutMillis: 0 });
    client = fresh;
    await fresh.connect();
    return fresh;
  };
  const start = async () => {
    if (isClosed) throw new Error('closed');
    const clear = startLimit(limit, () => discard(new Error(`no answer within ${limit} ms`)));
    try {
      return await askStandby(client ?? (await connect()));
    } catch (error) {
      discard();
      throw error;
    } finally {
      clear();
      asking = undefined;
    }
  };
  return {
    /** @throws whatever the connection fails with, in bounded time */
    ask(): Promise<StandbyState> {
      asking ??= start();
      return asking;
    },
    close: () => {
      isClosed = true;
      discard();
    },
  };
}
