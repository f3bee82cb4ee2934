// Change log of committed changes, read from the table outfit_changes, and the cache dependencies that they invalidate.

/** A row before or after a change, with the columns that outfit_changes has of it: the rooms above know which. */
export interface RowImage {
  readonly id: number;
}

/** Insert (no `before`), update or delete (no `after`) of an outfit, or of its number of likes. */
export interface OutfitChange {
  readonly id: number;
  readonly before: RowImage | undefined;
  readonly after: RowImage | undefined;
}

/** Changes of one or several commits. */
export interface Changes {
  readonly outfits: readonly OutfitChange[];
  /** Rows of other tables that were inserted, deleted or updated. */
  readonly rows: readonly RowChange[];
  /** Tables that record their changes, beside outfits. */
  readonly recorded?: Iterable<string>;
}

/** Primary key of a row: of one integer, or a text as `record_row_change` writes it. */
export type RowKey = number | string;

interface RowChange {
  readonly table: string;
  readonly key: RowKey;
}

/** @param columns values of the primary key in its order, or their text */
export function rowKeyOf(columns: readonly (bigint | number)[] | string): RowKey {
  const text = typeof columns === 'string' ? columns : columns.join(',');
  return String(Number(text)) === text ? Number(text) : text;
}

/** A row of outfit_changes: also `old_` and `new_` columns, of the row before the change and after it. */
export interface ChangeRow {
  readonly outfit_id: number | null;
  readonly table_name: string | null;
  readonly row_key: string | null;
}

/** @returns undefined for a row with neither an outfit nor a table, as TRUNCATE outfits writes it: anything may have changed */
export function parseChanges(
  changes: readonly ChangeRow[],
  recorded: Iterable<string>,
): Changes | undefined {
  const outfits: OutfitChange[] = [];
  const rows: RowChange[] = [];
  const columns = Object.keys(changes[0] ?? {});
  const [before, after] = [fieldsOf(columns, 'old_'), fieldsOf(columns, 'new_')];
  for (const row of changes) {
    const { outfit_id: id, table_name: table, row_key: text } = row;
    if (table !== null) rows.push({ table, key: rowKeyOf(text as string) });
    else if (id === null) return undefined;
    else outfits.push({ id, before: imageOf(row, before), after: imageOf(row, after) });
  }
  return { outfits, rows, recorded };
}

/** Names in the model by those of columns. A writer may change thousands of rows a second: once for all of them. */
function fieldsOf(columns: readonly string[], prefix: 'old_' | 'new_') {
  const toField = (column: string) =>
    column.replace(/_(\w)/g, (_found, letter: string) => letter.toUpperCase());
  const own = columns.filter((column) => column.startsWith(prefix));
  return own.map((column) => [column, toField(column.slice(prefix.length))] as const);
}

/** Undefined if all columns are null; otherwise those that are not. */
function imageOf(row: ChangeRow, fields: ReturnType<typeof fieldsOf>): RowImage | undefined {
  const image: Record<string, unknown> = { id: row.outfit_id };
  let isEmpty = true;
  for (const [column, field] of fields) {
    const value = row[column as keyof ChangeRow];
    if (value === null) continue;
    image[field] = value;
    isEmpty = false;
  }
  return isEmpty ? undefined : (image as unknown as RowImage);
}

/**
 * Whether a change invalidates a result that depends on a part of a list. Called per change, not with the net: a result may
 * have been read between two.
 */
export type ListPart = (before: RowImage | undefined, after: RowImage | undefined) => boolean;

/** Cache dependencies of a query result: it stays valid until a committed change invalidates one of them. */
export interface Dependencies {
  /** Keys of rows by table, also of those that did not exist. */
  readonly rows?: Readonly<Record<string, Iterable<RowKey>>>;
  /** Tables that were searched by something other than the key, such as a name: any change of a row invalidates it. */
  readonly tables?: Iterable<string>;
  readonly lists?: readonly ListPart[];
}

/** Union of the dependencies of several results; undefined (any commit invalidates it) if one of them is undefined. */
export function dependenciesOfAll(
  all: readonly (Dependencies | undefined)[],
): Dependencies | undefined {
  const found = all.filter((dependencies) => dependencies !== undefined);
  if (found.length < all.length) return undefined;
  const rows: Record<string, Set<RowKey>> = {};
  for (const dependencies of found) {
    for (const table in dependencies.rows) {
      rows[table] ??= new Set();
      for (const key of dependencies.rows[table] ?? []) rows[table].add(key);
    }
  }
  return {
    rows,
    tables: new Set(found.flatMap(({ tables = [] }) => [...tables])),
    lists: found.flatMap(({ lists = [] }) => lists),
  };
}

/** Estimated bytes in memory, for the eviction of cache entries by size. */
export function sizeOf(dependencies: Dependencies | undefined): number {
  if (!dependencies) return 0;
  const { rows = {}, tables = [], lists = [] } = dependencies;
  const keys = [...Object.values(rows), tables].map((ids) => [...ids].length);
  return 16 * keys.reduce((sum, count) => sum + count, 0) + 500 * lists.length;
}

/** Capacity of the log: comparing one entry with this many changes takes one or two milliseconds. */
const maxChanges = 10_000;

interface LoggedChange extends OutfitChange {
  readonly version: number;
}

/** Versions of the latest changes of a table: of any of its rows, and of each. */
interface TableVersions {
  readonly latest: number;
  readonly rows: Map<RowKey, number>;
}

/**
 * The latest committed changes, by version. Cache entries are compared with them when they are read (lazy
 * invalidation), so the cost of a commit does not depend on the number of entries.
 */
export class ChangeLog {
  /** Current version: it increases when commits are added. */
  current = 0;
  /** The log is truncated before this version: results from before it count as invalidated. */
  oldestKnown = 0;
  #outfitChanges: LoggedChange[] = [];
  readonly #tables = new Map<string, TableVersions>();
  #recorded: ReadonlySet<string> = new Set();

  /** Begins a new version. @param changes committed since the current one; undefined (unknown) truncates the log */
  add(changes: Changes | undefined): void {
    this.current += 1;
    if (!changes) this.#truncate(this.current);
    else this.#recorded = new Set(['outfits', ...(changes.recorded ?? [])]);
    for (const change of changes?.outfits ?? []) {
      this.#outfitChanges.push({ ...change, version: this.current });
      this.#record('outfits', change.id);
    }
    for (const { table, key } of changes?.rows ?? []) this.#record(table, key);
    const isFull = [...this.#tables.values()].some(({ rows }) => rows.size > maxChanges);
    if (this.#outfitChanges.length > maxChanges || isFull) {
      this.#truncate(this.#outfitChanges.at(-maxChanges / 2)?.version ?? this.current);
    }
  }

  #record(table: string, key: RowKey): void {
    const rows = this.#tables.get(table)?.rows ?? new Map<RowKey, number>();
    this.#tables.set(table, { latest: this.current, rows: rows.set(key, this.current) });
  }

  /** Whether a result may be stale. @param since version before it was read, or at the last call that returned false */
  isInvalidated(dependencies: Dependencies | undefined, since: number): boolean {
    if (since === this.current) return false;
    if (since < this.oldestKnown || !dependencies) return true;
    const { rows = {}, tables = [], lists = [] } = dependencies;
    for (const table of tables) {
      if (!this.#recorded.has(table) || (this.#tables.get(table)?.latest ?? 0) > since) return true;
    }
    for (const table in rows) {
      if (!this.#recorded.has(table)) return true;
      const changed = this.#tables.get(table);
      if (!changed || changed.latest <= since) continue;
      for (const key of rows[table] ?? []) if ((changed.rows.get(key) ?? 0) > since) return true;
    }
    return lists.some((list) => this.#isListInvalidated(list, since));
  }

  #isListInvalidated(invalidates: ListPart, since: number): boolean {
    for (let index = this.#outfitChanges.length - 1; index >= 0; index--) {
      const change = this.#outfitChanges[index] as LoggedChange;
      if (change.version <= since) return false;
      if (invalidates(change.before, change.after)) return true;
    }
    return false;
  }

  #truncate(until: number): void {
    this.oldestKnown = until;
    this.#outfitChanges = this.#outfitChanges.filter(({ version }) => version > until);
    for (const { rows } of this.#tables.values()) {
      for (const [key, version] of rows) if (version <= until) rows.delete(key);
    }
  }
}
