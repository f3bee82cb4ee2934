// State probe: reads the current snapshot of a server and, when it differs from the last one, the changes in between.
import type pg from 'pg';
import { startTime } from '../connection/server-watch.ts';
import { exactTypes } from '../read.ts';
import { type ChangeLog, type ChangeRow, type Changes, parseChanges } from './change-log.ts';
import type { DatabaseState } from './database-state.ts';

/** The embedded database has no log position, since it has no standbys. */
type Kind = 'embedded' | 'server';

// The position is read after the snapshot was taken, so it is past every commit in it. A standby returns no row.
const state = {
  embedded: `SELECT pg_current_snapshot()::text AS snapshot`,
  server: `
    SELECT pg_current_snapshot()::text AS snapshot, ${startTime} AS server,
      (pg_current_wal_insert_lsn() - '0/0')::text AS bytes,
      left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) AS timeline
    WHERE NOT pg_is_in_recovery()`,
} as const;

/** Most changes that one probe reads. With more, the change log is truncated: every cached answer is invalid. */
const maxChanges = 1_000;

/** Identity of tables, triggers and server: if a table was rewritten or a trigger disabled, changes may be missing. */
const identity = `
  concat_ws(' ', ${startTime},
    (SELECT string_agg(concat_ws(' ', oid, xmin), ',' ORDER BY oid) FROM pg_class
     WHERE oid IN ('outfits'::regclass, 'outfit_like_counts'::regclass, 'users'::regclass, 'outfit_changes'::regclass)),
    (SELECT string_agg(concat_ws(' ', oid, xmin), ',' ORDER BY oid) FROM pg_trigger
     WHERE tgrelid IN ('outfits'::regclass, 'outfit_like_counts'::regclass, 'users'::regclass) AND NOT tgisinternal))`;

/**
 * Changes since the snapshot $1: those whose transaction began after it or was in progress in it. They are read in the
 * order of the index, so that the planner uses it. Changes that were deleted (retention) were visible in every snapshot
 * that ends at `oldest_kept_xid` or later.
 */
const changesSince = (kind: Kind) => `
  SELECT latest.*, c.*
  FROM (
    SELECT state.*, ${identity} AS identity,
      NOT EXISTS (SELECT FROM check_outfit_triggers())
        AND (SELECT oldest_kept_xid < pg_snapshot_xmax($1::pg_snapshot) FROM outfit_counts_state) AS "isWhole"
    FROM (${state[kind]}) state
  ) latest
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
  ) c ON latest."isWhole"`;

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

interface Latest {
  readonly state: DatabaseState;
  readonly snapshot: string;
  /** Equal keys of two snapshots: nothing was committed between them. */
  readonly key: string;
  readonly identity: string;
}

/** Reads the state of one server, and adds to `changes` what was committed since the last time. */
export class StateProbe {
  #latest: Latest | undefined;

  /** @param onServer called first on each read, with the identity of the server */
  constructor(
    private readonly changes: ChangeLog,
    private readonly kind: Kind,
    private readonly onServer: (identity: string) => void = () => {},
  ) {}

  /** Undefined on a standby. */
  async read(client: Client): Promise<DatabaseState | undefined> {
    const before = this.#latest;
    // A statement of its own, since nearly always nothing was committed.
    const current = await this.#readState(client);
    this.onServer(current ? `${current.server} ${current.timeline}` : 'standby');
    if (before && current && keyOf(current) === before.key) return before.state;
    const rows = await this.#readChanges(client, before?.snapshot);
    const [row] = rows;
    const isSame = before !== undefined && row !== undefined && identityOf(row) === before.identity;
    this.changes.add(isSame ? changesIn(rows) : undefined);
    this.#latest = row && {
      state: { version: this.changes.current, ...positionOf(row) },
      snapshot: row.snapshot,
      key: keyOf(row),
      identity: identityOf(row),
    };
    return this.#latest?.state;
  }

  async #readState(client: Client): Promise<StateRow | undefined> {
    const { rows } = await client.query<StateRow>({ name: 'snapshot', text: state[this.kind] });
    return rows[0];
  }

  async #readChanges(client: Client, since: string | undefined): Promise<Row[]> {
    const { rows } = await client.query<Row>({
      name: 'changes',
      text: changesSince(this.kind),
      values: [since ?? null],
      types: exactTypes,
    });
    return rows;
  }
}

type Client = Pick<pg.ClientBase, 'query'>;

function keyOf({ server, timeline, snapshot }: StateRow): string {
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

/** @returns undefined when the changes are not complete: anything may have changed */
function changesIn(rows: readonly Row[]): Changes | undefined {
  if (!rows[0]?.isWhole || rows.length > maxChanges) return undefined;
  return parseChanges(rows.filter(({ xid }) => xid !== null));
}
