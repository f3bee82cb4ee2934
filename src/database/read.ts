// Runs a statement of our own, prepared unless it must not be.
import { createHash } from 'node:crypto';
import pg from 'pg';
import type { MadeOf } from './changes.ts';

/**
 * How a statement finds its rows, known when the statement is chosen:
 * - `bounded`: by an index, as many as are asked for;
 * - `unbounded`: by an index, but all matches, however many there are;
 * - `scan`: without an index.
 */
export type Access = 'bounded' | 'unbounded' | 'scan';

/** What statements are run by: a pool, or one connection. */
interface Source {
  query<Row extends object>(statement: pg.QueryConfig): Promise<pg.QueryResult<Row>>;
  /** The same in the lane of its access; absent: there are no lanes. */
  queryInLane?<Row extends object>(
    statement: pg.QueryConfig,
    access: Access,
  ): Promise<pg.QueryResult<Row>>;
}

export interface ReadOptions<Row> {
  /**
   * The statement is not prepared but planned for these values, since the best plan depends on them, or
   * since there are too many texts to keep prepared.
   */
  readonly planForValues?: boolean;
  /** How the statement finds its rows; `bounded` when it does not say. */
  readonly access?: Access;
  /**
   * What these rows were made of: so that an answer that is kept is ended by what changes them only. A
   * statement that does not say it is of anything: every commit ends the answer.
   */
  readonly madeOf?: (rows: readonly Row[]) => MadeOf | undefined;
}

/**
 * Runs one prepared statement and gives its rows, with `bigint` for int8. Lists are read this way:
 * it takes half the time of Prisma's raw queries, which convert every value twice.
 */
export type ReadRows = <Row extends object>(
  text: string,
  values: readonly unknown[],
  options?: ReadOptions<Row>,
) => Promise<Row[]>;

export function readRows(source: Source): ReadRows {
  return async <Row extends object>(
    text: string,
    values: readonly unknown[],
    options: ReadOptions<Row> = {},
  ) => {
    const statement = {
      ...(options.planForValues ? {} : { name: nameStatement(text) }),
      text,
      values: [...values],
      types: exactTypes,
    };
    const { access = 'bounded' } = options;
    const result =
      access !== 'bounded' && source.queryInLane
        ? await source.queryInLane<Row>(statement, access)
        : await source.query<Row>(statement);
    return result.rows;
  };
}

const int8 = 20;

/** Gives `bigint` for int8. */
export const exactTypes: pg.CustomTypesConfig = {
  getTypeParser: (type, format) =>
    type === int8 ? BigInt : pg.types.getTypeParser(type, format as 'text'),
};

const texts = new Map<string, string>();

/**
 * The text of a statement, built once: of a new one, V8 computes the hash each time its name is looked up.
 * @param key of few values: what the text depends on
 */
export function builtOnce(key: string, build: () => string): string {
  const built = texts.get(key) ?? build();
  texts.set(key, built);
  return built;
}

const names = new Map<string, string>();
/** How often the names have been renewed. */
let generation = 0;

/**
 * A name for a prepared statement, the same for the same text in every process, since a connection
 * pooler may hand one session to several of them.
 */
export function nameStatement(text: string): string {
  const known = names.get(text);
  if (known !== undefined) return known;
  const hash = createHash('sha256').update(text);
  if (generation > 0) hash.update(`\0${generation}`);
  const name = hash.digest('base64url').slice(0, 24);
  if (names.size < 1000) names.set(text, name);
  return name;
}

/**
 * Another name for a statement that PostgreSQL will not execute any more as it was prepared under
 * `name`. All others get new names too, since every connection has the old ones.
 */
export function renewName(text: string, name: string): string {
  if (nameStatement(text) === name) {
    generation++;
    names.clear();
  }
  return nameStatement(text);
}
