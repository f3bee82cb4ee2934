// Failover detection: knows the server behind each connection, and fences an old primary that still runs.
// In SQL: functions of the server.
import { LRUCache } from 'lru-cache';
import type pg from 'pg';
import { DatabaseAwayError } from '../errors.ts';
import { currentTask } from '../task.ts';

/** SQL for the oid of the database, which a copy by TEMPLATE does not share; a renamed one keeps it, and standbys have it. */
export const databaseOid = '(SELECT oid::text FROM pg_database WHERE datname = current_database())';

/** SQL for the start time of the server, independent of the time zone of the session, and the database in it. */
export const serverStart = `extract(epoch FROM pg_postmaster_start_time()) || '/' || ${databaseOid}`;

/** SQL for the identity of a server: start time and timeline (changed by promotion). All standbys have the same. */
export const serverIdentity = `
  CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE concat_ws(' ', ${serverStart},
    left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)) END`;

/** Milliseconds for which a fenced server stays fenced: during a failover, new connections may lead to either. */
const fenceTime = 10_000;

/** When the state probe reaches another server, cuts all connections to the old one and rejects results from it. */
export class ServerWatch {
  /** Identity of the server that the state probe reached last, or that of the first connection. */
  #current: string | undefined;
  /** When a new connection, or a transaction behind a pooler, last reached it (`performance.now()`). */
  #reachedAt = 0;
  readonly #fenced = new LRUCache<string, true>({ max: 100 });
  readonly #connections = new Map<Client, string>();
  #probing: Promise<unknown> | undefined;
  /** With transaction pooling, a connection has no server of its own: each transaction reads the identity. */
  isPerTransaction = false;

  /** @param probeAnew takes a snapshot on a new connection, and calls `observe` @param onFailover called on a change */
  constructor(
    private readonly probeAnew: () => Promise<unknown>,
    private readonly onFailover: () => void,
  ) {}

  /** The state probe has reached this server. @throws DatabaseAwayError when it is fenced */
  observe(identity: string): void {
    const before = this.#current;
    if (identity !== before && this.#isFenced(identity)) throw fenced();
    this.#current = identity;
    this.#reachedAt = performance.now();
    if (before === undefined || identity === before) return;
    this.#fenced.set(before, true).delete(identity);
    for (const [client, other] of this.#connections) {
      if (other === identity) continue;
      this.#connections.delete(client);
      client.connection.stream.destroy(fenced());
    }
    this.onFailover();
  }

  #isFenced(identity: string): boolean {
    return this.#fenced.has(identity) && performance.now() - this.#reachedAt < fenceTime;
  }

  /** Probes which server new connections reach. */
  async probe(): Promise<void> {
    this.#probing ??= this.probeAnew().finally(() => {
      this.#probing = undefined;
    });
    await this.#probing;
  }

  /** Adds a new connection. @param isAlone adopts its server: the probe cannot connect @throws DatabaseAwayError */
  async register(client: Client, isAlone = false): Promise<void> {
    if (this.isPerTransaction) return;
    const { rows } = await client.query<{ identity: string }>(
      `SELECT ${serverIdentity} AS identity`,
    );
    const identity = rows[0]?.identity ?? '';
    this.#current ??= identity;
    if (isAlone) this.observe(identity);
    else if (identity !== this.#current) await this.#probeFor(client);
    if (identity !== this.#current) throw fenced();
    this.#reachedAt = performance.now();
    this.#connections.set(client, identity);
    client.once('end', () => this.#connections.delete(client));
  }

  /** Waits at most while the connection is open: without an answer, the monitor cuts it and then that of the probe. */
  #probeFor(client: Client): Promise<void> {
    return new Promise((settle, reject) => {
      client.once('end', () => reject(fenced()));
      this.probe().then(settle, reject);
    });
  }

  /** Records the server of the connection in the current task, for `check` at its end. */
  recordUse(client: Client): void {
    const identity = this.#connections.get(client);
    if (identity !== undefined) currentTask()?.servers.add(identity);
  }

  /** The task has begun a transaction on this server. @throws DatabaseAwayError when it is not the current one */
  useInTransaction(identity: string): void {
    currentTask()?.servers.add(identity);
    this.#current ??= identity;
    if (identity === this.#current) this.#reachedAt = performance.now();
    // Without a cache there are no other probes. Not awaited: this transaction may hold the pooler's only connection.
    else if (!this.#isFenced(identity)) this.probe().catch(() => {});
    this.check([identity]);
  }

  /** @throws DatabaseAwayError when one of the servers is not the current one */
  check(servers: Iterable<string>): void {
    for (const identity of servers) if (identity !== this.#current) throw fenced();
  }
}

type Client = pg.Client | pg.PoolClient;

const fenced = () => new DatabaseAwayError('The connection leads to another server than new ones.');
