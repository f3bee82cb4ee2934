// What a standby says of itself, and what follows for reads.
import type pg from 'pg';
import type { LogPosition } from './snapshots.ts';

/** A server at a moment, as it describes itself. */
export interface StandbyState {
  /** False of one that was promoted, or never was a standby. */
  readonly isStandby: boolean;
  readonly server: string;
  /** The same of a primary and all its standbys; undefined where it may not be read. */
  readonly system: string;
  /** Everything before this place in the log can be read from it. */
  readonly replayed: bigint;
  /** Of what it has replayed, as far as it is sure. */
  readonly timeline: number;
  /** Bytes of a page of the log, and of a file. */
  readonly pageSize: bigint;
  readonly fileSize: bigint;
}

// The timeline is read after the place, which is never taken for an older one's. On disk it may be late.
const statement = {
  name: 'standby',
  text: `
    SELECT pg_is_in_recovery() AS "isStandby", pg_postmaster_start_time()::text AS server,
      coalesce(pg_last_wal_replay_lsn() - '0/0', 0)::text AS replayed,
      greatest(
        (SELECT min_recovery_end_timeline FROM pg_control_recovery()),
        (SELECT received_tli FROM pg_stat_wal_receiver)
      ) AS timeline,
      (SELECT system_identifier FROM pg_control_system())::text AS system,
      current_setting('wal_block_size') AS "pageSize",
      pg_size_bytes(current_setting('wal_segment_size'))::text AS "fileSize"`,
};

type Row = Omit<StandbyState, 'fileSize' | 'pageSize' | 'replayed'> &
  Readonly<Record<'fileSize' | 'pageSize' | 'replayed', string>>;

export async function askStandby(client: pg.ClientBase): Promise<StandbyState> {
  const { rows } = await client.query<Row>(statement);
  const [row] = rows;
  if (!row) throw new Error('A standby said nothing of itself.');
  return {
    ...row,
    replayed: BigInt(row.replayed),
    pageSize: BigInt(row.pageSize),
    fileSize: BigInt(row.fileSize),
  };
}

/** Whether all that a primary shows can be read, which says so with a place in its log. */
export function isAtOrPast(state: StandbyState, { timeline, bytes }: LogPosition): boolean {
  return state.timeline === timeline && state.replayed >= endOf(bytes, state);
}

const pageHeader = 24n;
const fileHeader = 40n;

/** On a new page, a primary names the place behind the header, and a standby that before it. */
function endOf(bytes: bigint, { pageSize, fileSize }: StandbyState): bigint {
  if (bytes % fileSize === fileHeader) return bytes - fileHeader;
  return bytes % pageSize === pageHeader ? bytes - pageHeader : bytes;
}
