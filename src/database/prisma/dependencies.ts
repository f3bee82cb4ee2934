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
}

const models = readModels();

function readModels(): ReadonlyMap<string, Model> {
  const entries = Object.entries(getDatamodel().datamodel.models);
  const found = new Map<string, Model>(
    entries.map(([name, { fields, primaryKey }]) => {
      const key =
        primaryKey?.fields ?? fields.filter(({ isId }) => isId).map((field) => field.name);
      return [name, { table: tables[name as Prisma.ModelName], key, relations: new Map() }];
    }),
  );
  for (const [name, { fields }] of entries) {
    for (const { kind, type, name: field } of fields) {
      const model = kind === 'object' && found.get(type);
      if (model) found.get(name)?.relations.set(field, model);
    }
  }
  return found;
}

/** @returns undefined (any commit invalidates the result) for a raw statement, or one that writes */
export function dependenciesOf(
  name: string | undefined,
  operation: string,
  args: unknown,
): Dependencies | undefined {
  const model = name === undefined ? undefined : models.get(name);
  if (!model || !/^(?:find|count|aggregate|groupBy)/.test(operation)) return undefined;
  const keys = keysIn(model, propertiesOf(args)['where']);
  const mentioned = tablesIn(model, args);
  return keys
    ? { rows: { [model.table]: keys }, tables: new Set(mentioned) }
    : { tables: new Set([model.table, ...mentioned]) };
}

/** Of all models that rows are shown with, or by which they are found, sorted or counted. */
function tablesIn(model: Model, part: unknown): string[] {
  return Object.entries(propertiesOf(part)).flatMap(([name, inner]) => {
    const related = model.relations.get(name);
    // `_count: true` counts the rows of all relations.
    const counted = name === '_count' && inner === true ? [...model.relations.values()] : [];
    const found = related ? [related, ...counted] : counted;
    return [...found.map(({ table }) => table), ...tablesIn(related ?? model, inner)];
  });
}

/** Keys in a condition that only rows with these fulfil, whatever else it says. */
function keysIn(model: Model, where: unknown): readonly RowKey[] | undefined {
  const { key } = model;
  const given = propertiesOf(where);
  // A key of several fields is an object, by default with the joined name.
  const fields = { ...given, ...propertiesOf(given[key.join('_')]) };
  const single = key.map((field) => fields[field]);
  // Of integers: the texts of other types are not unique.
  if (single.length > 0 && single.every(isKeyValue)) return [rowKeyOf(single)];
  const { in: several } = propertiesOf(given[key.join()]);
  if (!Array.isArray(several) || !several.every(isKeyValue)) return undefined;
  return several.map((value) => rowKeyOf([value]));
}

function isKeyValue(value: unknown): value is bigint | number {
  return typeof value === 'number' || typeof value === 'bigint';
}

/** Of an object, also of an array; none of any other value. */
function propertiesOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
