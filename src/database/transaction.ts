// Several statements as one transaction, for as long as they take.
import type pg from 'pg';

/** Commits what the work has written, or nothing of it when it fails. */
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
