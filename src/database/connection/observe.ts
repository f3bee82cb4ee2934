// Observes the statements of a pool: for traces, and for SLOW_STATEMENT.
import type pg from 'pg';
import { sqlStateOf } from '../errors.ts';

/** @returns what is called at the end of the statement; undefined: it is not observed */
export type ObserveStatement = (
  text: string,
  client: pg.PoolClient,
) => ((error: unknown) => void) | undefined;

type Callback = (error: Error | null | undefined, result?: unknown) => void;
type Query = (statement: string | pg.QueryConfig | pg.Submittable, ...rest: unknown[]) => unknown;

/** Follows the connections of a pool, which all statements use, also those of transactions and of Prisma. */
export function observeStatements(pool: pg.Pool, observe: ObserveStatement): void {
  pool.on('connect', (client) => {
    const query = client.query.bind(client) as Query;
    const observed: Query = (statement, ...rest) => {
      const text =
        typeof statement === 'string' ? statement : 'text' in statement && statement.text;
      const end = typeof text === 'string' ? observe(text, client) : undefined;
      if (!end) return query(statement, ...rest);
      const callback = rest.at(-1);
      if (typeof callback === 'function') {
        const endAndCall: Callback = (error, result) => {
          end(error);
          callback(error, result);
        };
        return query(statement, ...rest.slice(0, -1), endAndCall);
      }
      const result = query(statement, ...rest) as Promise<unknown>;
      result.then(() => end(null), end);
      return result;
    };
    client.query = observed as typeof client.query;
  });
}

/**
 * @param limit milliseconds from which a statement is slow, without those that it has `waited` for its connection
 * @param onSlow called without its values, which are parameters; with the SQLSTATE of a failed one as `code`
 */
export function followSlowStatements(
  pool: pg.Pool,
  limit: number,
  onSlow: (slow: object) => void,
): void {
  const waits = new WeakMap<pg.PoolClient, number>();
  const connect = pool.connect.bind(pool);
  pool.connect = ((callback?: Parameters<typeof connect>[0]) => {
    if (!callback) return connect();
    const begin = performance.now();
    return connect((error, client, release) => {
      if (client) waits.set(client, performance.now() - begin);
      callback(error, client, release);
    });
  }) as typeof pool.connect;
  observeStatements(pool, (statement, client) => {
    const waited = Math.round(waits.get(client) ?? 0);
    waits.delete(client);
    const begin = performance.now();
    return (error) => {
      const milliseconds = Math.round(performance.now() - begin);
      if (milliseconds >= limit)
        onSlow({ statement, milliseconds, waited, code: sqlStateOf(error) });
    };
  });
}
