// The SQL of an attachment: prisma/attach.sql with the parts that the mapping gives, and the triggers on the old tables.
import { readFileSync } from 'node:fs';
import pg from 'pg';
import { ConfigError } from '../config/config.ts';
import { packageFolder } from '../config/package.ts';
import { messageOf } from '../errors.ts';
import { carriedRows, type Kind, numberOfLikes, writtenColumns } from './columns.ts';
import type { Mapping } from './mapping.ts';
import { makeWrites } from './write.ts';

type Queryable = Pick<pg.Pool, 'query'>;

/** A mapping that was tried: its tables and columns exist. */
export interface Statements {
  /** Rows of each kind as they are here, with `problem`. */
  readonly rows: Readonly<Record<Kind, string>>;
  readonly hasNumber: boolean;
  /** Whether rows say who likes what. */
  readonly hasLikes: boolean;
  readonly tables: readonly WatchedTable[];
  /** Tables and functions here. */
  readonly install: string;
}

/** A table of the old service, and what its changes name. */
export interface WatchedTable {
  readonly name: string;
  readonly notes: readonly Note[];
}

interface Note {
  readonly kind: Kind;
  /** Columns that have the id, and for a like the user's. */
  readonly ids: readonly string[];
}

const noLikes = 'SELECT NULL::integer AS outfit_id, NULL::integer AS user_id WHERE false';

/** Tries the mapping on the tables of the old service. @throws ConfigError */
export async function makeStatements(client: Queryable, mapping: Mapping): Promise<Statements> {
  const selects = {
    users: mapping.users.select,
    outfits: mapping.outfits.select,
    likes: mapping.likes?.select ?? noLikes,
  };
  const rows = { users: '', outfits: '', likes: '' };
  let hasNumber = false;
  for (const kind of Object.keys(selects) as Kind[]) {
    const types = await readTypes(client, kind, selects[kind]);
    if (kind === 'outfits') hasNumber = types.has(numberOfLikes);
    rows[kind] = carriedRows(kind, selects[kind], types, (sentence) => refuse(kind, sentence));
  }
  const tables = watchedTables(mapping);
  for (const { name, notes } of tables) {
    const list = notes.flatMap(({ ids }) => ids.map((id) => pg.escapeIdentifier(id))).join(', ');
    await client.query(`SELECT ${list} FROM ${name} LIMIT 0`).catch((error) => {
      throw new ConfigError(`The mapping names ${name}: ${messageOf(error)}.`);
    });
  }
  const writes = mapping.write
    ? await makeWrites(
        client,
        mapping.write,
        tables.map(({ name }) => name),
        hasNumber,
      )
    : 'DROP FUNCTION IF EXISTS attached_carry_now, attached_lock_outfit, attached_write_outfit, attached_delete_outfit, attached_write_like;';
  return {
    rows,
    hasNumber,
    hasLikes: mapping.likes !== undefined,
    tables,
    install: `${fill(rows, hasNumber)}\n${writes}`,
  };
}

function refuse(kind: string, sentence: string): never {
  throw new ConfigError(`The SELECT of ${kind} in the mapping: ${sentence}.`);
}

/** Names and types of the columns of a SELECT, which is run for no row. */
async function readTypes(
  client: Queryable,
  kind: Kind,
  select: string,
): Promise<ReadonlyMap<string, string>> {
  try {
    const { fields } = await client.query(`SELECT * FROM (${select}\n) s LIMIT 0`);
    const { rows } = await client.query<{ type: string }>(
      'SELECT format_type(oid, NULL) AS type FROM unnest($1::oid[]) WITH ORDINALITY AS t (oid, nth) ORDER BY nth',
      [fields.map(({ dataTypeID }) => dataTypeID)],
    );
    return new Map(fields.map(({ name }, nth) => [name, rows[nth]?.type ?? '']));
  } catch (error) {
    return refuse(kind, messageOf(error));
  }
}

export function watchedTables(mapping: Mapping): WatchedTable[] {
  const tables = new Map<string, Note[]>();
  const add = (table: string, kind: Kind, ids: readonly string[]) =>
    tables.set(table, [...(tables.get(table) ?? []), { kind, ids }]);
  for (const kind of ['users', 'outfits'] as const) {
    for (const [table, id] of Object.entries(mapping[kind].changes)) add(table, kind, [id]);
  }
  for (const [table, { outfit, user }] of Object.entries(mapping.likes?.changes ?? {})) {
    add(table, 'likes', [outfit, user]);
  }
  return [...tables].map(([name, notes]) => ({ name, notes }));
}

function fill(rows: Statements['rows'], hasNumber: boolean): string {
  const parts: Record<string, string> = { ...rows, has_number: String(hasNumber) };
  for (const [kind, singular, alias] of [
    ['users', 'user', 'u'],
    ['outfits', 'outfit', 'o'],
  ] as const) {
    const list = (prefix: string) =>
      writtenColumns(kind)
        .map((name) => `${prefix}${name}`)
        .join(', ');
    parts[`${singular}_columns`] = list('');
    parts[`${singular}_new`] = list('s.');
    parts[`${singular}_old`] = list(`${alias}.`);
  }
  const template = readFileSync(new URL('prisma/attach.sql', packageFolder), 'utf8');
  return template.replace(/\{(\w+)\}/g, (_whole, name: string) => parts[name] ?? '');
}

/** Name of the function that notes the changes of the nth watched table. */
const noteFunction = (nth: number) => `attached_note_${nth}`;

/** Notes which ids a statement has changed, in one row for each kind. */
export function makeNoteFunction({ notes }: WatchedTable, nth: number): string {
  const insert = (images: readonly string[]) =>
    notes.map(({ kind, ids }) => {
      const [id = '', user] = ids.map((name) => pg.escapeIdentifier(name));
      const from = images
        .map((image) => `SELECT ${[id, ...(user ? [user] : [])].join(', ')} FROM ${image}`)
        .join(' UNION ');
      const names = user ? 'id, user_id' : 'id';
      return `INSERT INTO attached_changes (${user ? 'liked, likers' : kind})
      SELECT array_agg(id)${user ? ', array_agg(user_id)' : ''} FROM (${from}) AS changed (${names}) WHERE id IS NOT NULL HAVING count(*) > 0;`;
    });
  const lines = (images: readonly string[]) => insert(images).join('\n    ');
  const names = [...new Set(notes.flatMap(({ ids }) => ids))];
  const columns = `ARRAY[${names.map((name) => pg.escapeLiteral(name)).join(', ')}]`;
  return `CREATE OR REPLACE FUNCTION ${noteFunction(nth)}() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $attached$
BEGIN
  -- A column that the old service has renamed must not fail its statements.
  IF (SELECT count(*) FROM pg_attribute WHERE attrelid = TG_RELID AND attname = ANY (${columns}) AND NOT attisdropped) < ${names.length} THEN
    INSERT INTO attached_problems VALUES ('${notes[0]?.kind}', 0, 0, TG_RELID::regclass || ' has other columns: attach it again') ON CONFLICT DO NOTHING;
  ELSIF TG_OP = 'INSERT' THEN
    ${lines(['added'])}
  ELSIF TG_OP = 'DELETE' THEN
    ${lines(['removed'])}
  ELSE
    ${lines(['added', 'removed'])}
  END IF;
  RETURN NULL;
END $attached$;`;
}

/** Replication roles in which a trigger fires, as in pg_trigger.tgenabled. */
type Mode = 'A' | 'O' | 'R';

interface Trigger {
  readonly name: string;
  readonly mode: Mode;
  readonly definition: string;
}

/** The triggers on the nth watched table. */
export function triggersOf({ name, notes }: WatchedTable, nth: number): Trigger[] {
  const events = [
    ['INSERT', 'NEW TABLE AS added'],
    ['UPDATE', 'NEW TABLE AS added OLD TABLE AS removed'],
    ['DELETE', 'OLD TABLE AS removed'],
  ];
  const ofStatements = events.map(([event = '', images]): Trigger => {
    const trigger = `attached_${event.toLowerCase()}`;
    const definition = `CREATE TRIGGER ${trigger} AFTER ${event} ON ${name} REFERENCING ${images} FOR EACH STATEMENT EXECUTE FUNCTION ${noteFunction(nth)}()`;
    return { name: trigger, mode: 'O', definition };
  });
  const others = notes.flatMap(({ kind, ids }): Trigger[] => {
    const row = `attached_row_${kind}`;
    const truncate = `attached_truncate_${kind}`;
    const args = [kind, ...ids].map((arg) => pg.escapeLiteral(arg)).join(', ');
    return [
      {
        name: row,
        mode: 'R',
        definition: `CREATE TRIGGER ${row} AFTER INSERT OR UPDATE OR DELETE ON ${name} FOR EACH ROW EXECUTE FUNCTION attached_note_row(${args})`,
      },
      {
        name: truncate,
        mode: 'A',
        definition: `CREATE TRIGGER ${truncate} AFTER TRUNCATE ON ${name} FOR EACH STATEMENT EXECUTE FUNCTION attached_note_all('${kind}')`,
      },
    ];
  });
  return [...ofStatements, ...others];
}
