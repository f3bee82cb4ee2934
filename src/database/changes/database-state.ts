// State of a database server at a snapshot: which commits are visible, and the log position (LSN) at that time.

export interface DatabaseState {
  /** Version of the change log: every commit up to it is visible in the snapshot. */
  readonly version: number;
  /** The server, in the form of `serverIdentity`. Absent for the embedded database. */
  readonly identity?: string;
  /** Every visible commit was written to the log before this position. Absent for the embedded database. */
  readonly position?: LogPosition;
}

/** A position in the write-ahead log of a server. @see https://www.postgresql.org/docs/current/wal-internals.html */
export interface LogPosition {
  /** Start time of the server, which identifies it: another server may have the same timeline and LSN. */
  readonly server: string;
  /** Each promotion of a standby begins a new timeline. */
  readonly timeline: number;
  /** The LSN, as the number of bytes before it. */
  readonly bytes: bigint;
}
