// The statements of a probe: the current snapshot of a server, and the changes since an older one.
// In SQL: snapshots, positions of the log, and catalogues.
import { serverStart } from '../connection/server-watch.ts';
import type { ChangeRow } from './change-log.ts';

// The position is read after the snapshot was taken, so it is past every commit in it. A standby returns no row.
export const stateStatement = `
  SELECT pg_current_snapshot()::text AS snapshot, ${serverStart} AS server,
    (pg_current_wal_insert_lsn() - '0/0')::text AS bytes,
    left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) AS timeline
  WHERE NOT pg_is_in_recovery()`;

/** Most changes that one probe reads. With more, the change log is truncated: every cached answer is invalid. */
export const maxChanges = 1_000;

/**
 * Identity of tables, columns, triggers and server: if a table was rewritten, a column renamed or a trigger disabled, changes
 * may be missing. That of users is among those of the recorded tables.
 */
const identity = `
  concat_ws(' ', ${serverStart},
    (SELECT string_agg(concat_ws(' ', oid, xmin), ',' ORDER BY oid) FROM pg_class
     WHERE oid IN ('outfits'::regclass, 'outfit_like_counts'::regclass, 'outfit_changes'::regclass)),
    (SELECT sum(xmin::text::bigint) FROM pg_attribute WHERE attrelid IN ('outfits'::regclass, 'outfit_like_counts'::regclass)),
    (SELECT string_agg(concat_ws(' ', oid, xmin), ',' ORDER BY oid) FROM pg_trigger
     WHERE tgrelid IN ('outfits'::regclass, 'outfit_like_counts'::regclass) AND NOT tgisinternal))`;

/**
 * Changes since the snapshot $1: those whose transaction began after it or was in progress in it. They are read in the
 * order of the index, so that the planner uses it. Changes that were deleted (retention) were visible in every snapshot
 * that ends at `oldest_kept_xid` or later.
 */
export const changeStatement = `
  -- Up to pg_current_snapshot()::text, which pg_stat_activity cuts off.
  SELECT latest.*, c.*
  FROM (
    SELECT state.*, ${identity} AS identity,
      (SELECT coalesce(json_object_agg(name, identity ORDER BY name), '{}') FROM recorded_tables()) AS recorded,
      NOT EXISTS (SELECT FROM check_outfit_triggers())
        AND (SELECT oldest_kept_xid < pg_snapshot_xmax($1::pg_snapshot) FROM outfit_counts_state) AS "isWhole"
    FROM (${stateStatement}) state
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

export interface StateRow {
  readonly snapshot: string;
  readonly server: string;
  readonly bytes: string;
  /** Eight hexadecimal digits. */
  readonly timeline: string;
}

export interface StateAndChange extends StateRow, ChangeRow {
  readonly identity: string;
  /** Tables of which `record_changes_of` records the changes, and the identity of each with its triggers. */
  readonly recorded: Readonly<Record<string, string>>;
  readonly isWhole: boolean | null;
  readonly xid: string | null;
}
