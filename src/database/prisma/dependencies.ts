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

interface Relation {
  readonly model: Model;
  /** Whether the row itself has the key of the other one, so that its dependency shows which one that is. */
  readonly isByKey: boolean;
}

interface Model {
  readonly table: string;
  /** Fields of the primary key. */
  readonly key: readonly string[];
  readonly relations: Map<string, Relation>;
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
    for (const { kind, type, name: field, relationFromFields = [] } of fields) {
      const model = kind === 'object' && found.get(type);
      const isByKey = relationFromFields.length > 0;
      if (model) found.get(name)?.relations.set(field, { model, isByKey });
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
  const found = new Collector();
  found.add(model, keysIn(model, propertiesOf(args)['where']));
  found.addShown(model, args, [result].flat());
  return found;
}

class Collector {
  readonly tables = new Set<string>();
  readonly rows: Record<string, RowKey[]> = {};

  /** @param keys undefined: the rows were found by something else */
  add({ table }: Model, keys: readonly RowKey[] | undefined): void {
    if (keys) this.rows[table] = [...(this.rows[table] ?? []), ...keys];
    else this.tables.add(table);
  }

  /** What the rows show of others (`include` and `select`), and by what others they were found, sorted or counted. */
  addShown(model: Model, args: unknown, rows: readonly unknown[]): void {
    for (const [part, fields] of Object.entries(propertiesOf(args))) {
      if (part !== 'include' && part !== 'select') this.#addMentioned(model, { [part]: fields });
      else {
        for (const [field, inner] of Object.entries(propertiesOf(fields))) {
          const relation = model.relations.get(field);
          if (!relation) this.#addMentioned(model, { [field]: inner });
          else {
            const shown = rows.flatMap((row) => propertiesOf(row)[field] ?? []);
            const keys = shown.map((row) => keyOf(relation.model, propertiesOf(row)));
            const isKnown = relation.isByKey && keys.every((key) => key !== undefined);
            this.add(relation.model, isKnown ? (keys as RowKey[]) : undefined);
            this.addShown(relation.model, inner, shown);
          }
        }
      }
    }
  }

  #addMentioned(model: Model, part: unknown): void {
    for (const [name, inner] of Object.entries(propertiesOf(part))) {
      const relation = model.relations.get(name);
      if (relation) this.add(relation.model, undefined);
      // `_count: true` counts the rows of all relations.
      if (name === '_count' && inner === true) {
        for (const counted of model.relations.values()) this.add(counted.model, undefined);
      }
      this.#addMentioned(relation?.model ?? model, inner);
    }
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
