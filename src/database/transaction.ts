// Several statements as one transaction, for as long as they take.
import type pg from 'pg';
import { type ReadRows, readRows } from './read.ts';

export async function inTransaction<Result>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect();
  // Without a listener, a connection that breaks between two statements ends the process.
  let lost: Error | undefined;
  const onLost = (error: Error) => {
    lost ??= error;
  };
  client.on('error', onLost);
  try {
    // Whatever the server's default: work that waits for others must see what they wrote.
    await client.query('BEGIN ISOLATION LEVEL READ COMMITTED');
    // A batch is not a request: the limit of those does not hold for it.
    await client.query('SET LOCAL statement_timeout = 0');
    const result = await work(client);
    await client.query('COMMIT');
    return result;
  } catch (error) {
    const cause = lost ?? error;
    await client.query('ROLLBACK').catch(onLost);
    throw cause;
  } finally {
    client.off('error', onLost);
    client.release(lost);
  }
}

/** Reads the database as it was at the first statement. @param signal cuts the connection, so that closing is quick */
export async function readOneSnapshot<Result>(
  pool: pg.Pool,
  signal: AbortSignal,
  work: (read: ReadRows) => Promise<Result>,
): Promise<Result> {
  signal.throwIfAborted();
  const client = await pool.connect();
  // A lost connection fails the next statement; without a listener it would end the process as well.
  client.on('error', () => {});
  const cut = () => client.connection.stream.destroy();
  signal.addEventListener('abort', cut, { once: true });
  try {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    await client.query('SET LOCAL idle_in_transaction_session_timeout = 0');
    const result = await work(oneAtATime(readRows(client)));
    await client.query('COMMIT');
    return result;
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    signal.removeEventListener('abort', cut);
    // Not back into the pool: the transaction may not have ended.
    client.release(true);
  }
}

/** A pool has a connection for each statement; here all of them share one. */
function oneAtATime(read: ReadRows): ReadRows {
  let latest: Promise<unknown> = Promise.resolve();
  return <Row extends object>(...statement: Parameters<typeof read<Row>>) => {
    const reading = latest.then(() => read<Row>(...statement));
    latest = reading.catch(() => {});
    return reading;
  };
}
