// Runs a statement of our own, prepared unless it must not be; records what answers are made of.
import { createHash } from 'node:crypto';
import pg from 'pg';
import { type Dependencies, dependenciesOfAll } from './changes/change-log.ts';

/** How a statement finds its rows: by an index as many as are asked for, or all matches; or without an index. */
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
  /** Not prepared: the best plan depends on the values, or there are too many texts to keep. */
  readonly planForValues?: boolean;
  /** `bounded` when it does not say. */
  readonly access?: Access;
  /** Cache dependencies of these rows. A statement without them is invalidated by every commit: safe, only slower. */
  readonly dependencies?: (rows: readonly Row[]) => Dependencies | undefined;
}

/** Runs a prepared statement, in half the time of Prisma's raw queries, which convert each value twice. */
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

/** The text of a statement, built once: V8 hashes a new one at each look-up. @param key of few values */
export function memoizeText(key: string, build: () => string): string {
  const built = texts.get(key) ?? build();
  texts.set(key, built);
  return built;
}

const names = new Map<string, string>();
/** How often the names have been renewed. */
let generation = 0;

/** A name for a prepared statement, the same in every process: a pooler may hand one session to several. */
export function nameStatement(text: string): string {
  const known = names.get(text);
  if (known !== undefined) return known;
  const hash = createHash('sha256').update(text);
  if (generation > 0) hash.update(`\0${generation}`);
  const name = hash.digest('base64url').slice(0, 24);
  if (names.size < 1000) names.set(text, name);
  return name;
}

/** Renames a statement whose prepared form PostgreSQL refuses by now, and all others: every connection has old ones. */
export function renewName(text: string, name: string): string {
  if (nameStatement(text) === name) {
    generation++;
    names.clear();
  }
  return nameStatement(text);
}

/** Tracks the cache dependencies of every statement that is read through it. */
export class DependencyTracker {
  readonly #all: (Dependencies | undefined)[] = [];

  constructor(private readonly readRows: ReadRows) {}

  readonly read: ReadRows = async <Row extends object>(
    text: string,
    values: readonly unknown[],
    options: ReadOptions<Row> = {},
  ) => {
    // Unknown until the rows are there, and for good when the statement fails.
    const index = this.#all.push(undefined) - 1;
    const rows = await this.readRows(text, values, options);
    this.#all[index] = options.dependencies?.(rows);
    return rows;
  };

  /** For data read in another way, such as with Prisma: any commit invalidates the result. */
  markUnknown(): void {
    this.#all.push(undefined);
  }

  /** Of all statements together; undefined: any commit invalidates the result. */
  dependencies(): Dependencies | undefined {
    return dependenciesOfAll(this.#all);
  }
}
