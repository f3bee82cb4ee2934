// Failover: which server each connection leads to, so that a living old primary is noticed and left.
import { LRUCache } from 'lru-cache';
import type pg from 'pg';
import { DatabaseAwayError } from '../errors.ts';
import { currentTask } from '../task.ts';

/** When the server was started, in SQL that does not depend on the time zone of the session. */
export const startTime = 'extract(epoch FROM pg_postmaster_start_time())::text';

/** Identity of a server in SQL: start and timeline (changed by promotion). Servers in recovery are one to it. */
export const serverIdentity = `
  CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE concat_ws(' ', ${startTime},
    left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)) END`;

/** Milliseconds for which a server that was left is not taken back: connections may lead to both for a while. */
const returnDelay = 10_000;

/** Fences an old primary: when the probe meets another server, connections to others are cut, and results dropped. */
export class ServerWatch {
  /** The identity of the server that the probe met last, or else of the first connection. */
  #current: string | undefined;
  /** When new connections, or statements behind a pooler, last led to it, by `performance.now()`. */
  #metAt = 0;
  readonly #former = new LRUCache<string, true>({ max: 100 });
  readonly #connections = new Map<Client, string>();
  #probing: Promise<unknown> | undefined;
  /** Behind a pooler of transactions: connections have no identity, and each transaction asks for that of its server. */
  isPerTransaction = false;

  /** @param probeAnew opens a new connection, and calls `observe` @param onFailover called when that was another server */
  constructor(
    private readonly probeAnew: () => Promise<unknown>,
    private readonly onFailover: (identity: string) => void,
  ) {}

  /** The probe has met a server. @throws DatabaseAwayError when it is one that was left a moment ago */
  observe(identity: string): void {
    const before = this.#current;
    if (identity !== before && this.#isLeft(identity)) throw left();
    this.#current = identity;
    this.#metAt = performance.now();
    if (before === undefined || identity === before) return;
    this.#former.set(before, true).delete(identity);
    for (const [client, other] of this.#connections) {
      if (other === identity) continue;
      this.#connections.delete(client);
      client.connection.stream.destroy(left());
    }
    this.onFailover(identity);
  }

  #isLeft(identity: string): boolean {
    return this.#former.has(identity) && performance.now() - this.#metAt < returnDelay;
  }

  /** Looks where new connections lead. @param identity met by another process: the one before is left at once */
  async probe(identity?: string): Promise<void> {
    if (identity !== undefined) {
      if (identity === this.#current) return;
      this.observe(identity);
    }
    this.#probing ??= this.probeAnew().finally(() => {
      this.#probing = undefined;
    });
    await this.#probing;
  }

  /** Takes in a new connection. @param isAlone it decides itself: the probe cannot connect @throws DatabaseAwayError */
  async register(client: Client, isAlone = false): Promise<void> {
    if (this.isPerTransaction) return;
    const { rows } = await client.query<{ identity: string }>(
      `SELECT ${serverIdentity} AS identity`,
    );
    const identity = rows[0]?.identity ?? '';
    this.#current ??= identity;
    if (isAlone) this.observe(identity);
    else if (identity !== this.#current) await this.#probeFor(client);
    if (identity !== this.#current) throw left();
    this.#metAt = performance.now();
    this.#connections.set(client, identity);
    client.once('end', () => this.#connections.delete(client));
  }

  /** Looks as long as the connection lasts: the monitor cuts it, and then that of the probe, when there is no answer. */
  #probeFor(client: Client): Promise<void> {
    return new Promise((settle, reject) => {
      client.once('end', () => reject(left()));
      this.probe().then(settle, reject);
    });
  }

  recordUse(client: Client): void {
    const identity = this.#connections.get(client);
    if (identity !== undefined) currentTask()?.servers.add(identity);
  }

  /** The task has begun a transaction on this server. @throws DatabaseAwayError when that is not the current one */
  useInTransaction(identity: string): void {
    currentTask()?.servers.add(identity);
    this.#current ??= identity;
    if (identity === this.#current) this.#metAt = performance.now();
    // Without memory nobody probes. Not waited for: this transaction may hold the only connection of the pooler.
    else if (!this.#isLeft(identity)) this.probe().catch(() => {});
    this.check([identity]);
  }

  /** @throws DatabaseAwayError when a task has used another server than the current one */
  check(servers: Iterable<string>): void {
    for (const identity of servers) if (identity !== this.#current) throw left();
  }
}

type Client = pg.Client | pg.PoolClient;

const left = () => new DatabaseAwayError('The connection leads to another server than new ones.');
