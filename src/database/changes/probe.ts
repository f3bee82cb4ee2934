// The statements of a probe: what the database shows, and if that is something new, what was committed.
import type pg from 'pg';
import { startTime } from '../connection/server-watch.ts';
import { exactTypes } from '../read.ts';
import { type ChangeLog, type ChangeRow, type Changes, readChanges } from './change-log.ts';
import type { DatabaseState } from './database-state.ts';

/** Where the statements differ: the embedded database has no log that others read, and no standbys. */
type Kind = 'embedded' | 'server';

// The position is asked for after the snapshot was taken, so it is past every commit in that. A standby gives no row.
const state = {
  embedded: `SELECT pg_current_snapshot()::text AS snapshot`,
  server: `
    SELECT pg_current_snapshot()::text AS snapshot, ${startTime} AS server,
      (pg_current_wal_insert_lsn() - '0/0')::text AS bytes,
      left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) AS timeline
    WHERE NOT pg_is_in_recovery()`,
} as const;

/** Most changes that are looked at: with more, anything may have changed. */
const maxChanges = 1_000;

/** A trigger that was off for a while, a rewritten table, another server: each leaves another row in a catalog. */
const identity = `
  concat_ws(' ', ${startTime},
    (SELECT string_agg(concat_ws(' ', oid, xmin), ',' ORDER BY oid) FROM pg_class
     WHERE oid IN ('outfits'::regclass, 'outfit_like_counts'::regclass, 'users'::regclass, 'outfit_changes'::regclass)),
    (SELECT string_agg(concat_ws(' ', oid, xmin), ',' ORDER BY oid) FROM pg_trigger
     WHERE tgrelid IN ('outfits'::regclass, 'outfit_like_counts'::regclass, 'users'::regclass) AND NOT tgisinternal))`;

/**
 * $1 a snapshot. What is not visible in it began later, or was under way; only that is read, in the order of the index,
 * which the planner then takes. What was cleared away was visible in any snapshot that ends at `kept_from` or later.
 */
const changesSince = (kind: Kind) => `
  SELECT shown.*, c.*
  FROM (
    SELECT state.*, ${identity} AS identity,
      NOT EXISTS (SELECT FROM check_outfit_triggers())
        AND (SELECT kept_from < pg_snapshot_xmax($1::pg_snapshot) FROM outfit_fold) AS "isWhole"
    FROM (${state[kind]}) state
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

interface StateRow {
  readonly snapshot: string;
  readonly server?: string;
  readonly bytes?: string;
  /** Eight hexadecimal digits. */
  readonly timeline?: string;
}

interface Row extends StateRow, ChangeRow {
  readonly identity: string;
  readonly isWhole: boolean | null;
  readonly xid: string | null;
}

interface Known {
  readonly shown: DatabaseState;
  readonly snapshot: string;
  readonly identity: string;
}

/** Makes a probe of one server, which tells `changes` what was committed. @param meet called first, with its name */
export function createProbe(
  changes: ChangeLog,
  kind: Kind,
  meet: (identity: string) => void = () => {},
) {
  let known: Known | undefined;
  /** Nearly always nothing has changed: so this is all that is asked then. */
  const askState = async (client: Client): Promise<StateRow | undefined> => {
    const { rows } = await client.query<StateRow>({ name: 'snapshot', text: state[kind] });
    return rows[0];
  };
  const askChanges = async (client: Client, since: string | undefined): Promise<Row[]> => {
    const { rows } = await client.query<Row>({
      name: 'changes',
      text: changesSince(kind),
      values: [since ?? null],
      types: exactTypes,
    });
    return rows;
  };
  return async (client: Client): Promise<DatabaseState | undefined> => {
    const now = await askState(client);
    meet(now ? `${now.server} ${now.timeline}` : 'standby');
    if (known && now && nameOf(now) === known.shown.name) return known.shown;
    const rows = await askChanges(client, known?.snapshot);
    const [row] = rows;
    const isSame = known !== undefined && row !== undefined && identityOf(row) === known.identity;
    changes.add(isSame ? changesIn(rows) : undefined);
    known = row && {
      shown: { name: nameOf(row), version: changes.current, ...positionOf(row) },
      snapshot: row.snapshot,
      identity: identityOf(row),
    };
    return known?.shown;
  };
}

type Client = Pick<pg.ClientBase, 'query'>;

function nameOf({ server, timeline, snapshot }: StateRow): string {
  return `${server} ${timeline} ${snapshot}`;
}

function identityOf({ server, timeline, identity }: Row): string {
  return `${server} ${timeline} ${identity}`;
}

function positionOf({
  server,
  bytes,
  timeline,
}: StateRow): Pick<DatabaseState, 'identity' | 'position'> {
  if (server === undefined || bytes === undefined || timeline === undefined) return {};
  const position = { server, timeline: Number.parseInt(timeline, 16), bytes: BigInt(bytes) };
  return { identity: `${server} ${timeline}`, position };
}

/** @returns undefined when anything may have changed */
function changesIn(rows: readonly Row[]): Changes | undefined {
  if (!rows[0]?.isWhole || rows.length > maxChanges) return undefined;
  return readChanges(rows.filter(({ xid }) => xid !== null));
}
