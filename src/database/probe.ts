// The statements of a probe: what the database shows, and if that is something new, what was committed.
import type pg from 'pg';
import type { ChangeLog } from './change-log.ts';
import { type ChangeRow, type Changes, readChanges } from './changes.ts';
import { exactTypes } from './read.ts';
import type { Shown } from './snapshots.ts';

/** Nearly always nothing has changed: so this is all that is asked then. */
const nameNow = {
  name: 'snapshot',
  text: 'SELECT CASE WHEN NOT pg_is_in_recovery() THEN pg_current_snapshot()::text END AS name',
};

/** Most changes that are looked at: with more, anything may have changed. */
const maxChanges = 1_000;

/**
 * What changes cannot tell of, because they were not noted: that a trigger was off for a while, that a
 * table was rewritten, or that this is another server. Each leaves another row in a catalog.
 */
const identity = `
  concat_ws(' ', pg_postmaster_start_time(),
    (SELECT string_agg(concat_ws(' ', oid, xmin), ',' ORDER BY oid) FROM pg_class
     WHERE oid IN ('outfits'::regclass, 'users'::regclass, 'outfit_changes'::regclass)),
    (SELECT string_agg(concat_ws(' ', oid, xmin), ',' ORDER BY oid) FROM pg_trigger
     WHERE tgrelid IN ('outfits'::regclass, 'users'::regclass) AND NOT tgisinternal))`;

/**
 * $1 a snapshot. What is not visible in it began after it, or was under way then; what was visible is
 * not read, however far back a forgotten transaction holds the horizon. Ranges in the order of the index:
 * so the planner takes it, whatever it thinks of how many there are. What has been cleared away was
 * visible in a snapshot that ends at `kept_from`: so it was in any that ends later.
 */
const changesSince = `
  SELECT shown.*, c.*
  FROM (
    SELECT CASE WHEN NOT pg_is_in_recovery() THEN pg_current_snapshot()::text END AS name,
      ${identity} AS identity,
      NOT EXISTS (SELECT FROM check_outfit_triggers())
        AND (SELECT kept_from < pg_snapshot_xmax($1::pg_snapshot) FROM outfit_fold) AS "isWhole"
  ) shown
  LEFT JOIN LATERAL (
    SELECT found.*
    FROM (
      SELECT pg_snapshot_xmax($1::pg_snapshot) AS low, '18446744073709551615'::xid8 AS high
      UNION ALL
      SELECT xid, xid FROM pg_snapshot_xip($1::pg_snapshot) AS xid
    ) unseen
    CROSS JOIN LATERAL (
      SELECT * FROM outfit_changes WHERE xid BETWEEN low AND high ORDER BY xid LIMIT ${maxChanges + 1}
    ) found
    LIMIT ${maxChanges + 1}
  ) c ON shown."isWhole"`;

interface State {
  readonly name: string;
  readonly identity: string;
}

interface Row extends State, ChangeRow {
  readonly isWhole: boolean | null;
  readonly xid: string | null;
}

/**
 * Gives a probe of one server, to be called by one at a time: it tells `changes` of all that was
 * committed since the call before, and of anything at first.
 */
export function createProbe(changes: ChangeLog) {
  let known: State | undefined;
  return async (client: Pick<pg.ClientBase, 'query'>): Promise<Shown | undefined> => {
    const name = await askName(client);
    if (known !== undefined && name === known.name) return known;
    const rows = await askChanges(client, known?.name);
    const [state] = rows;
    const before = known;
    known = state?.name ? { name: state.name, identity: state.identity } : undefined;
    changes.add(before?.identity === known?.identity ? changesIn(rows) : undefined);
    return known;
  };
}

async function askName(client: Pick<pg.ClientBase, 'query'>): Promise<string | null> {
  const { rows } = await client.query<{ name: string | null }>(nameNow);
  return rows[0]?.name ?? null;
}

async function askChanges(
  client: Pick<pg.ClientBase, 'query'>,
  since: string | undefined,
): Promise<Row[]> {
  const { rows } = await client.query<Row>({
    name: 'changes',
    text: changesSince,
    values: [since ?? null],
    types: exactTypes,
  });
  return rows;
}

/** @returns undefined when anything may have changed */
function changesIn(rows: readonly Row[]): Changes | undefined {
  if (!rows[0]?.isWhole || rows.length > maxChanges) return undefined;
  return readChanges(rows.filter(({ xid }) => xid !== null));
}
