// Cache dependencies of reads through Prisma: rows that are read by their complete primary key, else tables.
import { getDatamodel } from '../../generated/pothos-types.ts';
import type { Prisma } from '../../generated/prisma/client.ts';
import { type Dependencies, type RowKey, rowKeyOf } from '../changes/change-log.ts';

/** The table of each model. Its changes are recorded if `record_changes_of` was called for it. */
const tables: Readonly<Record<Prisma.ModelName, string>> = {
  User: 'users',
  Outfit: 'outfits',
  OutfitLike: 'outfit_likes',
  IdempotencyKey: 'idempotency_keys',
};

interface Model {
  readonly table: string;
  /** Fields of the primary key. */
  readonly key: readonly string[];
  /** Other models, by the field that leads to their rows. */
  readonly relations: Map<string, Model>;
  /** Those of them whose key the row itself has, so that its dependency shows which row that is. */
  readonly byKey: Set<string>;
}

const models = readModels();

function readModels(): ReadonlyMap<string, Model> {
  const entries = Object.entries(getDatamodel().datamodel.models);
  const found = new Map<string, Model>(
    entries.map(([name, { fields, primaryKey }]) => {
      const key =
        primaryKey?.fields ?? fields.filter(({ isId }) => isId).map((field) => field.name);
      const table = tables[name as Prisma.ModelName];
      return [name, { table, key, relations: new Map(), byKey: new Set() }];
    }),
  );
  for (const [name, { fields }] of entries) {
    for (const { kind, type, name: field, relationFromFields = [] } of fields) {
      const model = kind === 'object' && found.get(type);
      if (model) found.get(name)?.relations.set(field, model);
      if (relationFromFields.length > 0) found.get(name)?.byKey.add(field);
    }
  }
  return found;
}

/** @returns undefined (any commit invalidates the result) for a raw statement, or one that writes */
export function dependenciesOf(
  name: string | undefined,
  operation: string,
  args: unknown,
  result: unknown,
): Dependencies | undefined {
  const model = name === undefined ? undefined : models.get(name);
  if (!model || !/^(?:find|count|aggregate|groupBy)/.test(operation)) return undefined;
  const found: Found = { rows: {}, tables: new Set() };
  const { where, select } = propertiesOf(args);
  add(found, model, keysIn(model, where));
  // Of its fluent API, Prisma gives the innermost row, and its arguments select what leads there.
  addRelated(found, model, args, select ? undefined : [result].flat());
  return found;
}

interface Found {
  readonly rows: Record<string, readonly RowKey[]>;
  readonly tables: Set<string>;
}

/** @param keys undefined: the rows were found by something else */
function add({ rows, tables }: Found, { table }: Model, keys?: readonly RowKey[]): void {
  if (keys) rows[table] = [...(rows[table] ?? []), ...keys];
  else tables.add(table);
}

/** All that rows are shown with, or by which they are found, sorted or counted. @param rows if `part` is of what they show */
function addRelated(found: Found, model: Model, part: unknown, rows?: readonly unknown[]): void {
  for (const [name, inner] of Object.entries(propertiesOf(part))) {
    const other = model.relations.get(name);
    // A row that a condition leaves out is not shown.
    const complete = propertiesOf(inner)['where'] ? undefined : rows;
    const related = other && complete?.flatMap((row) => propertiesOf(row)[name] ?? []);
    if (other) {
      const keys = related?.map((row) => keyOf(other, propertiesOf(row)));
      const isKnown = model.byKey.has(name) && keys?.every((key) => key !== undefined);
      add(found, other, isKnown ? keys : undefined);
    }
    // `_count: true` counts the rows of all relations.
    const counted = name === '_count' && inner === true ? model.relations.values() : [];
    for (const each of counted) add(found, each);
    const isShown = name === 'include' || name === 'select';
    addRelated(found, other ?? model, inner, isShown ? rows : related);
  }
}

/** Keys in a condition that only rows with these fulfil, whatever else it says. */
function keysIn(model: Model, where: unknown): readonly RowKey[] | undefined {
  const { key } = model;
  const given = propertiesOf(where);
  // A key of several fields is an object, by default with the joined name.
  const single = keyOf(model, { ...given, ...propertiesOf(given[key.join('_')]) });
  if (single !== undefined) return [single];
  const { in: several } = propertiesOf(given[key.join()]);
  if (!Array.isArray(several) || !several.every(isKeyValue)) return undefined;
  return several.map((value) => rowKeyOf([value]));
}

/** Undefined: a field is missing, or not an integer. The texts of other types are not unique. */
function keyOf({ key }: Model, row: Readonly<Record<string, unknown>>): RowKey | undefined {
  const values = key.map((field) => row[field]);
  return values.length > 0 && values.every(isKeyValue) ? rowKeyOf(values) : undefined;
}

function isKeyValue(value: unknown): value is bigint | number {
  return typeof value === 'number' || typeof value === 'bigint';
}

/** Of an object, also of an array; none of any other value. */
function propertiesOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
