// Transactions of several statements without a time limit, and reads of one snapshot.
import type pg from 'pg';
import { retryableStates, sqlStateOf } from './errors.ts';
import { type ReadRows, readRows, type Source } from './read.ts';
import { readFrom } from './task.ts';

export async function inTransaction<Result>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect();
  // Without a listener, an error of the connection between two statements would end the process.
  const lost: Error[] = [];
  const onLost = (error: Error) => lost.push(error);
  client.on('error', onLost);
  try {
    // Not the default of the server: after waiting for a lock, work must see what the other transaction wrote.
    await client.query('BEGIN ISOLATION LEVEL READ COMMITTED');
    // A batch is not a request, whose time limit does not apply.
    await client.query('SET LOCAL statement_timeout = 0');
    const result = await work(client);
    await client.query('COMMIT');
    return result;
  } catch (error) {
    const [cause = error] = lost;
    await client.query('ROLLBACK').catch(onLost);
    throw cause;
  } finally {
    client.off('error', onLost);
    client.release(lost[0]);
  }
}

/** As `inTransaction`, but runs `work` again, up to `retries` times, when a deadlock or a serialization failure ended it. */
export async function retryDeadlocks<Result>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<Result>,
  retries = 5,
): Promise<Result> {
  return inTransaction(pool, work).catch((error) => {
    if (!retryableStates.includes(sqlStateOf(error)) || retries === 0) throw error;
    return retryDeadlocks(pool, work, retries - 1);
  });
}

/** Reads one snapshot, taken at the first statement (REPEATABLE READ), also through Prisma. @param signal cuts the connection */
export async function readOneSnapshot<Result>(
  pool: pg.Pool,
  signal: AbortSignal,
  work: (read: ReadRows) => Promise<Result>,
): Promise<Result> {
  const reading = inTransaction(pool, async (client) => {
    signal.throwIfAborted();
    const cut = () => client.connection.stream.destroy();
    signal.addEventListener('abort', cut, { once: true });
    await client.query(`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY;
      SET LOCAL idle_in_transaction_session_timeout = 0`);
    const source = serialize(client);
    const result = readFrom(source, () => work(readRows(source)));
    return result.finally(() => signal.removeEventListener('abort', cut));
  });
  return reading.catch((error) => {
    throw signal.aborted ? signal.reason : error;
  });
}

/** Serializes statements, since all of them share one connection. */
function serialize(client: pg.PoolClient): Source {
  let latest: Promise<unknown> = Promise.resolve();
  return {
    query: <Row extends object>(statement: pg.QueryConfig) => {
      const reading = latest.then(() => client.query<Row>(statement));
      latest = reading.catch(() => {});
      return reading;
    },
  };
}
