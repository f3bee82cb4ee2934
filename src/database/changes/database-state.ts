// State of a database server at a snapshot: what is visible, and how much of the log had been written by then.

export interface DatabaseState {
  /** That of the snapshot, with its server: while two are equal, nothing has been committed in between, by whomever. */
  readonly name: string;
  /** The version of `changes`: all that was committed by then is shown. */
  readonly version: number;
  /** Which server it is, as `serverIdentity` says it. Not of the embedded database. */
  readonly identity?: string;
  /** Where the log of the server was then: all that is shown was written before. Not of the embedded database. */
  readonly position?: LogPosition;
}

/** A place in the log of a server (WAL). */
export interface LogPosition {
  /** When the server was started: tells it from the one that takes its place. */
  readonly server: string;
  /** Another one begins with each promotion. */
  readonly timeline: number;
  readonly bytes: bigint;
}
