// The mapping: how users, outfits and likes of an old service are read from its tables. Checked by a schema.
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { ConfigError } from '../config/config.ts';
import { messageOf } from '../errors.ts';

/** SQL, as one text or as lines. */
const sql = z
  .union([z.string(), z.array(z.string())])
  .transform((lines) => [lines].flat().join('\n').trim())
  .refine((text) => text !== '' && !text.includes(';'), 'must be one statement without ";"');
const name = z.string().regex(/^[^\0"]+$/, 'must be the name of a column');
/** Schema and name: the search path of the old service is not known here. */
const table = z
  .string()
  .regex(/^("[^"\0]+"|\w+)\.("[^"\0]+"|\w+)$/, 'must be schema.table, such as public.shop_outfit');

const source = z.strictObject({
  select: sql,
  /** The tables whose changes name an id, and the column that has it; the first is the one of these rows. */
  changes: z
    .record(table, name)
    .refine((tables) => Object.keys(tables).length > 0, 'must name a table'),
});

/** Expressions by column; `o` is an outfit as it is here. */
const assignments = z.record(name, sql);

/** How outfits and likes are written there. With it, both services may write. */
const write = z.strictObject({
  /** The table with the rows of outfits; the others have the id in the column `id`. */
  tables: z
    .record(
      table,
      z.strictObject({ id: name, columns: assignments, insert: assignments.default({}) }),
    )
    .refine((tables) => Object.keys(tables).length > 0, 'must name a table'),
  /** Instead of deleting the row, such as an UPDATE; `o.id` is the id. */
  delete: sql.optional(),
  /** What happens with rows that refer to an outfit which is deleted here, and that no foreign key deletes. */
  references: z.record(table, z.enum(['delete', 'refuse'])).default({}),
  /** `l.outfit_id`, `l.user_id`. Run only by who did not like the outfit yet, or did. */
  like: sql.optional(),
  unlike: sql.optional(),
});

const mapping = z.strictObject({
  users: source,
  outfits: source,
  /** Who likes what, as rows. Without it, and without `likes` among the columns of outfits, nothing is liked. */
  likes: z
    .strictObject({
      select: sql,
      changes: z.record(table, z.strictObject({ outfit: name, user: name })),
    })
    .optional(),
  write: write.optional(),
});

export type Mapping = z.infer<typeof mapping>;
export type WriteMapping = z.infer<typeof write>;

/** @throws ConfigError */
export function readMapping(file: string): Mapping {
  let given: unknown;
  try {
    given = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new ConfigError(`The mapping ${file} cannot be read (${messageOf(error)}).`);
  }
  return checkMapping(given, `The mapping ${file}`);
}

export function checkMapping(given: unknown, what: string): Mapping {
  const { data, error } = mapping.safeParse(given);
  if (data) return data;
  const [issue] = error.issues;
  throw new ConfigError(
    `${what} is wrong at ${issue?.path.join('.') || 'its top'}: ${issue?.message}.`,
  );
}
