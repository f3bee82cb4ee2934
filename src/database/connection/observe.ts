// Observers of the statements of a pool, for traces and for SLOW_STATEMENT. The pool is made with them.
import type pg from 'pg';
import { sqlStateOf } from '../errors.ts';
import type { Session } from './session.ts';

export interface ObservedStatement {
  readonly text: string;
  readonly client: pg.Client;
  /** Milliseconds that it waited for its connection; 0 for those that follow on the same one. */
  readonly waited: number;
}

/** @returns what is called at the end of the statement; undefined: it is not observed */
export type ObserveStatement = (
  statement: ObservedStatement,
) => ((error: unknown) => void) | undefined;

type Callback = (error: Error | null | undefined, result?: unknown) => void;

/** @param takeWait the wait of a connection in use, once; undefined for one that is being opened or checked */
export function observedClient(
  Client: Session['Client'],
  observers: readonly ObserveStatement[],
  takeWait: (client: pg.Client) => number | undefined,
): Session['Client'] {
  if (observers.length === 0) return Client;
  return class extends Client {
    override query(...given: unknown[]): never {
      const [statement, last] = [given[0], given.at(-1)];
      const text = typeof statement === 'string' ? statement : (statement as pg.QueryConfig).text;
      const waited = takeWait(this);
      const ends =
        waited === undefined
          ? []
          : observers.flatMap((observe) => observe({ text, client: this, waited }) ?? []);
      const end = (error: unknown) => {
        for (const one of ends) one(error);
      };
      const query = () => Reflect.apply(super.query, this, given) as never;
      if (ends.length === 0) return query();
      if (typeof last === 'function') {
        given[given.length - 1] = ((error, result) => {
          end(error);
          last(error, result);
        }) satisfies Callback;
        return query();
      }
      const result: Promise<unknown> = query();
      result.then(() => end(null), end);
      return result as never;
    }
  };
}

/**
 * @param limit milliseconds from which a statement is slow, without those that it has `waited` for its connection
 * @param onSlow called without its values, which are parameters; with the SQLSTATE of a failed one as `code`
 */
export function observeSlow(limit: number, onSlow: (slow: object) => void): ObserveStatement {
  return ({ text: statement, waited }) => {
    const begin = performance.now();
    return (error) => {
      const milliseconds = Math.round(performance.now() - begin);
      if (milliseconds < limit) return;
      onSlow({ statement, milliseconds, waited: Math.round(waited), code: sqlStateOf(error) });
    };
  };
}
