// SQL that writes outfits and likes in the old tables, where they are attached both ways. Old rows are locked and written
// first, as the old service does; then what they are is carried over here, as at its COMMIT.
import pg from 'pg';
import { ConfigError } from '../config/config.ts';
import { messageOf } from '../errors.ts';
import type { WriteMapping } from './mapping.ts';

type Queryable = Pick<pg.Pool, 'query'>;
type Table = WriteMapping['tables'][string];

const list = (names: readonly string[]) =>
  names.map((name) => pg.escapeIdentifier(name)).join(', ');

const notWritten = "RAISE 'the mapping does not say how likes are written'";

/** @param outfit SQL of its row */
function insertInto(
  name: string,
  { id, columns, insert }: Table,
  isFirst: boolean,
  outfit: string,
): string {
  const values = { ...(isFirst ? {} : { [id]: 'o.id' }), ...columns, ...insert };
  return `INSERT INTO ${name} (${list(Object.keys(values))}) SELECT ${Object.values(values).join(', ')} FROM (SELECT (${outfit}).*) o`;
}

/** Only columns whose expression gives another value than before: others keep what the old service has in them. */
function updateOf(name: string, { id, columns }: Table, before: string, after: string): string {
  const names = list(Object.keys(columns));
  const values = Object.values(columns).join(', ');
  const set = Object.keys(columns).map((column) => {
    const quoted = pg.escapeIdentifier(column);
    return `${quoted} = CASE WHEN n.${quoted} IS DISTINCT FROM p.${quoted} THEN n.${quoted} ELSE t.${quoted} END`;
  });
  return `UPDATE ${name} t SET ${set.join(', ')}
    FROM (SELECT ${values} FROM (SELECT (${after}).*) o) n (${names}), (SELECT ${values} FROM (SELECT (${before}).*) o) p (${names})
    WHERE t.${pg.escapeIdentifier(id)} = (${after}).id AND n IS DISTINCT FROM p`;
}

/** Other statements of PL/pgSQL have no plan: their syntax is checked with the function that they are in. */
const planned = /^(?:delete|insert|merge|select|update|with)\b/i;

/** SQL of the tables by which a subscription may have a table: where it is partitioned, by its partitions. */
export const subscribedBy = (name: string) => `SELECT to_regclass(${name})
  UNION ALL SELECT relid FROM pg_partition_tree(to_regclass(${name})) UNION ALL SELECT relid FROM pg_partition_ancestors(to_regclass(${name}))`;

/** Tries it on the old tables. @throws ConfigError */
export async function makeWrites(
  client: Queryable,
  write: WriteMapping,
  watched: readonly string[],
  hasNumber: boolean,
): Promise<string> {
  const tables = Object.entries(write.tables);
  const [[first, firstTable] = ['', { id: '', columns: {}, insert: {} }]] = tables;
  const attempt = async (what: string, statement: string | undefined) => {
    if (statement === undefined || !planned.test(statement)) return;
    await client.query(`EXPLAIN ${statement}`).catch((error) => {
      throw new ConfigError(`What the mapping ${what}: ${messageOf(error)}.`);
    });
  };
  for (const [nth, [name, table]] of tables.entries()) {
    await refuseMissingColumns(client, name, table, nth === 0);
    await attempt(`writes to ${name}`, insertInto(name, table, nth === 0, 'NULL::outfits'));
    await attempt(`writes to ${name}`, updateOf(name, table, 'NULL::outfits', 'NULL::outfits'));
  }
  for (const what of ['like', 'unlike', 'delete'] as const) {
    const statement = write[what]
      ?.replace(/^PERFORM\b/i, 'SELECT')
      .replace(/\b(?:l\.outfit_id|l\.user_id|o\.id)\b/gi, 'NULL::integer');
    if (/^SELECT\b/i.test(write[what] ?? '')) {
      throw new ConfigError(`What the mapping has as ${what}: write PERFORM instead of SELECT.`);
    }
    await attempt(`has as ${what}`, statement);
  }
  const { rows: subscribed } = await client.query<{ name: string }>(
    `SELECT name FROM unnest($1::text[]) AS name WHERE EXISTS (SELECT FROM pg_subscription_rel WHERE srrelid IN (${subscribedBy('name')}))`,
    [watched],
  );
  if (subscribed[0]) {
    throw new ConfigError(
      `${subscribed[0].name} comes from another database, by a subscription: leave "write" out of the mapping.`,
    );
  }
  const key = pg.escapeIdentifier(firstTable.id);
  const references = await findReferences(client, first, key, write);
  // Columns of the old tables may have the names of variables, but these.
  const [before, after] = ['attached_before', 'attached_after'];
  const others = tables.slice(1).map(
    ([name, table]) => `
  IF EXISTS (SELECT FROM ${name} t WHERE t.${pg.escapeIdentifier(table.id)} = ${after}.id) THEN
    ${updateOf(name, table, before, after)};
  ELSE
    ${insertInto(name, table, false, after)};
  END IF;`,
  );
  const remove = write.delete ?? `DELETE FROM ${first} t WHERE t.${key} = o.id`;
  return `CREATE OR REPLACE FUNCTION attached_carry_now() RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $attached$ BEGIN
  -- Deferred foreign keys lock rows of the old tables, so they are checked before rows here are locked. By name, which others
  -- that are not deferred may have, too.
  EXECUTE coalesce((SELECT format('SET CONSTRAINTS %1$s IMMEDIATE; SET CONSTRAINTS %1$s DEFERRED', string_agg(DISTINCT format('%I.%I', nspname, conname), ', '))
    FROM pg_constraint k JOIN pg_namespace n ON n.oid = k.connamespace
    WHERE NOT EXISTS (SELECT FROM pg_constraint o WHERE o.connamespace = k.connamespace AND o.conname = k.conname AND NOT condeferred)
      AND conrelid = ANY (ARRAY[${watched.map((name) => `'${name.replaceAll("'", "''")}'`).join(', ')}]::regclass[]) HAVING count(*) > 0), 'SELECT');
  PERFORM attached_carry(pg_current_xact_id()), set_config('outfit_gateway.carried', pg_current_xact_id()::text, true);
END $attached$;
CREATE OR REPLACE FUNCTION attached_lock_outfit(which integer) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $attached$ BEGIN
  PERFORM FROM ${first} t WHERE t.${key} = attached_lock_outfit.which FOR NO KEY UPDATE;
  PERFORM attached_carry_now();
END $attached$;
CREATE OR REPLACE FUNCTION attached_write_outfit(given outfits, ${before} outfits) RETURNS integer
LANGUAGE plpgsql SET search_path FROM CURRENT AS $attached$
#variable_conflict use_column
DECLARE
  ${after} outfits := given;
BEGIN
  IF ${before}.id IS NULL THEN
    IF NOT EXISTS (SELECT FROM users WHERE id = ${after}.user_id) THEN
      RAISE SQLSTATE 'OG001' USING MESSAGE = format('There is no user with the id %s.', ${after}.user_id);
    END IF;
    ${insertInto(first, firstTable, true, after)} RETURNING ${key} INTO ${after}.id;
  ELSE
    ${updateOf(first, firstTable, before, after)};
  END IF;${others.join('')}
  PERFORM attached_carry_now();
  IF NOT EXISTS (SELECT FROM outfits WHERE id = ${after}.id) OR EXISTS (SELECT FROM attached_problems WHERE kind = 'outfits' AND id = ${after}.id) THEN
    RAISE 'what is written cannot be read here by the mapping, or is refused here' USING DETAIL = coalesce((SELECT min(problem) FROM attached_problems WHERE kind = 'outfits' AND id = ${after}.id), '');
  END IF;
  RETURN ${after}.id;
END $attached$;
CREATE OR REPLACE FUNCTION attached_delete_outfit(which integer) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $attached$
#variable_conflict use_column
DECLARE
  o record;
BEGIN
  SELECT which AS id INTO o;
  ${references.join('\n  ')}
  ${remove};
  PERFORM attached_carry_now();
END $attached$;
CREATE OR REPLACE FUNCTION attached_write_like(which integer, who integer, liked boolean) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $attached$
#variable_conflict use_column
<<l>>
DECLARE
  outfit_id integer := which;
  user_id integer := who;
BEGIN
  IF NOT EXISTS (SELECT FROM users WHERE id = who) THEN
    RAISE SQLSTATE 'OG001' USING MESSAGE = format('There is no user with the id %s.', who);
  END IF;
  IF ${hasNumber} THEN
    -- The number alone does not say who: the row is here, and the outfit there is what others wait for.
    PERFORM FROM ${first} t WHERE t.${key} = attached_write_like.which FOR NO KEY UPDATE;
    IF liked = EXISTS (SELECT FROM outfit_likes g WHERE g.outfit_id = which AND g.user_id = who) OR NOT EXISTS (SELECT FROM outfits WHERE id = which) THEN
      RETURN;
    END IF;
  END IF;
  IF liked THEN
    ${write.like ?? notWritten};
  ELSE
    ${write.unlike ?? notWritten};
  END IF;
  PERFORM attached_carry_now();
  IF ${hasNumber} THEN
    PERFORM set_config('outfit_gateway.attached', pg_current_xact_id()::text, true);
    IF liked THEN
      INSERT INTO outfit_likes (outfit_id, user_id, imported, created) VALUES (which, who, true, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint);
    ELSE
      DELETE FROM outfit_likes WHERE outfit_id = which AND user_id = who;
    END IF;
    PERFORM set_config('outfit_gateway.attached', '', true);
  END IF;
END $attached$;`;
}

/** Of a type `t`, or of a domain that it is made of. */
const isNotNullDomain = `EXISTS (WITH RECURSIVE d AS (SELECT t.typnotnull, t.typbasetype UNION ALL
  SELECT b.typnotnull, b.typbasetype FROM d JOIN pg_type b ON b.oid = d.typbasetype) SELECT FROM d WHERE typnotnull)`;

async function refuseMissingColumns(
  client: Queryable,
  name: string,
  { id, columns, insert }: Table,
  isFirst: boolean,
): Promise<void> {
  const given = [...Object.keys(columns), ...Object.keys(insert), ...(isFirst ? [] : [id])];
  const { rows } = await client.query<{ names: string | null; hasMore: boolean }>(
    `SELECT string_agg(attname, ', ') FILTER (WHERE (attnotnull OR relkind <> 'v' AND ${isNotNullDomain}) AND NOT atthasdef AND typdefault IS NULL AND attidentity = '' AND attname <> ALL ($2::text[])) AS names,
       relkind <> 'v' AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND indisunique AND indpred IS NULL AND indnkeyatts = 1
         AND indkey[0] = (SELECT attnum FROM pg_attribute WHERE attrelid = c.oid AND attname = $3)) AS "hasMore"
     FROM pg_attribute JOIN pg_class c ON c.oid = attrelid JOIN pg_type t ON t.oid = atttypid WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped GROUP BY c.oid`,
    [name, given, id],
  );
  const names = rows[0]?.names;
  if (names) {
    throw new ConfigError(
      `The mapping writes to ${name}, whose columns ${names} must not be null: give each an expression.`,
    );
  }
  if (!isFirst && rows[0]?.hasMore) {
    throw new ConfigError(
      `The mapping writes to ${name}, which may have more than one row with the same ${id}: name a view that has one.`,
    );
  }
}

/** Statements of what refers to an outfit. @throws ConfigError for a table that is not named */
async function findReferences(
  client: Queryable,
  table: string,
  key: string,
  { references, delete: isSoft }: WriteMapping,
): Promise<string[]> {
  if (isSoft) return [];
  const { rows } = await client.query<{ name: string; what: string | null; refers: string }>(
    `SELECT k.conrelid::regclass::text AS name, r.value AS what, string_agg(format('t.%I = f.%I', a.attname, f.attname), ' AND ') AS refers
     FROM pg_constraint k CROSS JOIN unnest(conkey, confkey) AS c (here, there)
     JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = here JOIN pg_attribute f ON f.attrelid = k.confrelid AND f.attnum = there
     LEFT JOIN json_each_text($2) r ON to_regclass(r.key) = k.conrelid
     WHERE k.contype = 'f' AND k.confrelid = $1::regclass AND k.confdeltype IN ('a', 'r') AND k.conparentid = 0
     GROUP BY k.oid, 1, 2 ORDER BY 1, k.oid`,
    [table, references],
  );
  return rows.map(({ name, what, refers }) => {
    if (!what) {
      throw new ConfigError(
        `${name} refers to outfits: the mapping must name it under write.references, as "delete" or "refuse".`,
      );
    }
    const those = `${name} t USING ${table} f WHERE f.${key} = attached_delete_outfit.which AND ${refers}`;
    return what === 'delete'
      ? `DELETE FROM ${those};`
      : `IF EXISTS (SELECT FROM ${those.replace(' USING ', ', ')}) THEN RAISE foreign_key_violation USING MESSAGE = '${name.replaceAll("'", "''")} refers to the outfit'; END IF;`;
  });
}
