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
  /** The columns that the mapping reads, with the ids, if an update of others needs no note; undefined: any may matter. */
  readonly read?: readonly string[];
}

const noLikes = 'SELECT NULL::integer AS outfit_id, NULL::integer AS user_id WHERE false';

const selectsOf = ({ users, outfits, likes }: Mapping): Readonly<Record<Kind, string>> => ({
  users: users.select,
  outfits: outfits.select,
  likes: likes?.select ?? noLikes,
});

/** Tries the mapping on the tables of the old service. @throws ConfigError */
export async function makeStatements(client: Queryable, mapping: Mapping): Promise<Statements> {
  const selects = selectsOf(mapping);
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
    const refuseTable = (sentence: string): never => {
      throw new ConfigError(`The mapping names ${name}: ${sentence}.`);
    };
    const { fields } = await client
      .query(`SELECT ${list} FROM ${name} LIMIT 0`)
      .catch((error) => refuseTable(messageOf(error)));
    const wrong = fields.find(({ dataTypeID }) => !idTypes.includes(dataTypeID));
    if (wrong) refuseTable(`its column ${wrong.name} is not a number`);
    const { rows: found } = await client.query(isTable, [name]);
    if (!found[0]) refuseTable('it is not a table, so name the tables that it reads');
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
    install: `${fill(rows, hasNumber)}\n${writes}`,
  };
}

const { INT2, INT4, INT8, NUMERIC } = pg.types.builtins;
const idTypes: readonly number[] = [INT2, INT4, INT8, NUMERIC];
const isTable = "SELECT FROM pg_class WHERE oid = $1::regclass AND relkind IN ('r', 'p')";

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

/** SQL of the mapping is put in last, as it may have braces. */
function fill(rows: Statements['rows'], hasNumber: boolean): string {
  const template = readFileSync(new URL('prisma/attach.sql', packageFolder), 'utf8');
  const put = (text: string, parts: Readonly<Record<string, string>>) =>
    text.replace(/\{(\w+)\}/g, (whole, name: string) => parts[name] ?? whole);
  const ofKind = (part: string, kind: 'outfits' | 'users') => {
    const list = (prefix: string) =>
      writtenColumns(kind)
        .map((name) => `${prefix}${name}`)
        .join(', ');
    const lock = kind === 'users' ? 'NO KEY UPDATE' : 'UPDATE';
    const lists = { columns: list(''), old: list('h.'), new: list('s.') };
    return put(part, { ...lists, kind, lock, rows: `{${kind}}` });
  };
  const expanded = template.replace(
    /^-- EACH of users and outfits\n(.*?)^-- END\n/ms,
    (_whole, part: string) => ofKind(part, 'users') + ofKind(part, 'outfits'),
  );
  return put(expanded, { ...rows, has_number: String(hasNumber), find_schema: findSchema });
}

/**
 * The watched tables, with the columns that are read, as a view of the SELECT depends on them: where it reads whole rows, views
 * or functions, all may matter. Only of tables whose ids are unique: an update is compared row by row. Nothing is left of the
 * view, in the transaction of the caller.
 */
export async function findReadColumns(
  client: pg.PoolClient,
  mapping: Mapping,
): Promise<WatchedTable[]> {
  const selects = selectsOf(mapping);
  const tables: WatchedTable[] = [];
  for (const { name, notes } of watchedTables(mapping)) {
    const found: Note[] = [];
    for (const note of notes) {
      // In a subquery, two columns may have one name.
      await client.query(
        `SAVEPOINT before; CREATE VIEW attached_view AS SELECT 1 AS one FROM (${selects[note.kind]}\n) s`,
      );
      const { rows: own } = await client.query<{ name: string }>(ownTables);
      if (own[0])
        refuse(note.kind, `it reads ${own[0].name} of this gateway: name tables with their schema`);
      const { rows } = await client.query<{ read: string[] }>(readColumns, [name, note.ids]);
      await client.query('ROLLBACK TO before');
      found.push({ ...note, ...rows[0] });
    }
    tables.push({ name, notes: found });
  }
  return tables;
}

/** Tables of the gateway that the view reads: those of the old service may have the same names. */
const ownTables = `
  SELECT refobjid::regclass::text AS name FROM pg_rewrite r JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
  WHERE ev_class = 'attached_view'::regclass AND refclassid = 'pg_class'::regclass AND refobjid IN ('users'::regclass, 'outfits'::regclass, 'outfit_likes'::regclass)`;

/** Virtual columns have no value in what a trigger sees. */
const readColumns = `
  SELECT array_agg(DISTINCT attname::text) AS read
  FROM pg_rewrite r JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid AND d.refclassid = 'pg_class'::regclass
  JOIN pg_attribute a ON attrelid = refobjid AND (attnum = refobjsubid OR attname = ANY ($2))
  WHERE ev_class = 'attached_view'::regclass AND refobjid = to_regclass($1) AND ev_action::text !~ ':varattno (0|-)'
    AND NOT EXISTS (
      SELECT FROM pg_depend o LEFT JOIN pg_class c ON c.oid = o.refobjid AND o.refclassid = 'pg_class'::regclass
      WHERE o.classid = 'pg_rewrite'::regclass AND o.objid = r.oid AND (o.refclassid = 'pg_proc'::regclass OR relkind NOT IN ('r', 'p') AND relname <> 'attached_view'))
    AND EXISTS (
      SELECT FROM pg_index WHERE indrelid = refobjid AND indisunique AND indisvalid AND indimmediate AND indpred IS NULL AND indexprs IS NULL
        AND ARRAY(SELECT attname::text FROM pg_attribute WHERE attrelid = indrelid AND attnum = ANY (indkey[0:indnkeyatts - 1])) <@ $2::text[])
  HAVING count(*) > 0 AND NOT bool_or(attgenerated = 'v')`;

/** Name of the function that notes the changes of the nth watched table. */
export const noteFunction = (nth: number) => `attached_note_${nth}`;

/** The schema of the gateway has another name than when it was attached. A temporary table of this name is the caller's. */
const findSchema = `IF to_regclass('attached_changes') IS NULL OR to_regclass('pg_temp.attached_changes') IS NOT NULL THEN
    PERFORM set_config('search_path', (SELECT quote_ident(nspname) FROM pg_trigger JOIN pg_proc p ON p.oid = tgfoid JOIN pg_namespace n ON n.oid = pronamespace
      WHERE tgrelid = TG_RELID AND tgname = TG_NAME) || ', pg_temp', true);
  END IF;`;

/** Notes which ids have changed, in one row. */
export function makeNoteFunction({ name, notes }: WatchedTable, nth: number): string {
  const lines = (event: Event) => notes.map((note) => readIds(note, event)).join('\n    ');
  const kinds = [...new Set(notes.map(({ kind }) => kind))];
  const variables = kinds.flatMap((kind) => (kind === 'likes' ? ['liked', 'likers'] : [kind]));
  return `CREATE OR REPLACE FUNCTION ${noteFunction(nth)}() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $attached$
#variable_conflict use_column
DECLARE
  ${variables.map((variable) => `${variable} bigint[];`).join(' ')}
BEGIN
  ${findSchema}
  BEGIN
    CASE (CASE TG_LEVEL WHEN 'ROW' THEN 'ROW' ELSE TG_OP END)
    ${events.map((event) => `WHEN '${event}' THEN\n    ${lines(event)}`).join('\n    ')}
    END CASE;
  EXCEPTION WHEN transaction_rollback OR lock_not_available THEN
    RAISE;
  WHEN OTHERS THEN
    -- A column that the old service has altered must not fail its statements.
    INSERT INTO attached_problems VALUES ('${notes[0]?.kind}', 0, 0, ${pg.escapeLiteral(`${name} has other columns: attach it again`)}) ON CONFLICT DO NOTHING;
    RETURN NULL;
  END;
  IF ${kinds.map((kind) => `${kind === 'likes' ? 'liked' : kind} IS NOT NULL`).join(' OR ')} THEN
    INSERT INTO attached_changes (${variables.join(', ')}) VALUES (${variables.join(', ')});
  END IF;
  RETURN NULL;
END $attached$;`;
}

/** What a note function is called for: a statement, or a row where statement triggers do not fire. */
const events = ['UPDATE', 'INSERT', 'DELETE', 'ROW', 'TRUNCATE'] as const;
type Event = (typeof events)[number];

/** Reads the ids of a kind that have changed. A full join is hashed, which is right for a million rows, too. */
function readIds({ kind, ids, read }: Note, event: Event): string {
  const list = (names: readonly string[], of = '') =>
    names.map((id) => `${of}${pg.escapeIdentifier(id)}`).join(', ');
  const [into, values, names] =
    kind === 'likes'
      ? ['liked, likers', 'array_agg(id), array_agg(user_id)', 'id, user_id']
      : [kind, 'array_agg(id)', 'id'];
  const changed = {
    INSERT: `SELECT ${list(ids)} FROM added`,
    DELETE: `SELECT ${list(ids)} FROM removed`,
    UPDATE: read
      ? `SELECT ${list(ids)} FROM (SELECT ${list(read)} FROM removed) o FULL JOIN (SELECT ${list(read)} FROM added) n USING (${list(ids)}) WHERE (o.* *<> n.*) IS NOT FALSE`
      : `SELECT ${list(ids)} FROM added UNION SELECT ${list(ids)} FROM removed`,
    ROW: `SELECT ${list(ids, 'OLD.')} UNION SELECT ${list(ids, 'NEW.')}`,
    // It names none: all that are here.
    TRUNCATE:
      kind === 'likes' ? 'SELECT outfit_id, user_id FROM outfit_likes' : `SELECT id FROM ${kind}`,
  };
  return `  SELECT ${values} INTO ${into} FROM (${changed[event]}) AS changed (${names}) WHERE id IS NOT NULL;`;
}

/** Replication roles in which a trigger fires, as in pg_trigger.tgenabled. */
type Mode = 'A' | 'O' | 'R';

/** The triggers on the nth watched table. Rows of replication have no statement. */
export function triggersOf({ name }: WatchedTable, nth: number) {
  const [added, removed] = ['NEW TABLE AS added', 'OLD TABLE AS removed'];
  const triggers: [string, Mode, string, string][] = [
    ['insert', 'O', 'INSERT', `REFERENCING ${added} FOR EACH STATEMENT`],
    ['update', 'O', 'UPDATE', `REFERENCING ${added} ${removed} FOR EACH STATEMENT`],
    ['delete', 'O', 'DELETE', `REFERENCING ${removed} FOR EACH STATEMENT`],
    ['row', 'R', 'INSERT OR UPDATE OR DELETE', 'FOR EACH ROW'],
    ['truncate', 'A', 'TRUNCATE', 'FOR EACH STATEMENT'],
  ];
  return triggers.map(([event, mode, events, each]) => ({
    name: `attached_${event}`,
    mode,
    definition: `CREATE OR REPLACE TRIGGER attached_${event} AFTER ${events} ON ${name} ${each} EXECUTE FUNCTION ${noteFunction(nth)}()`,
  }));
}
