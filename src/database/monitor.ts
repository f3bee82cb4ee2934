// Circuit breaker: health checks of PostgreSQL. While it is down, connections are cut and refused (fail fast).
import type pg from 'pg';
import { DedicatedConnection, type Session, type Sockets } from './connection/session.ts';
import { DatabaseAwayError, isFull } from './errors.ts';
import { checkReady, DatabaseNotReadyError, explain } from './readiness.ts';

/** Called with the error when the database is lost, and with undefined when it is available again. */
export type OnChange = (problem: Error | undefined) => void;

/** Milliseconds between two checks and for a check: together the longest wait for a frozen server, below 2 s. */
const pause = 400;
const limit = 1_200;
const maxAge = 10_000;

export interface MonitorOptions {
  readonly session: Session;
  readonly description: string;
  readonly sockets: Sockets;
  readonly onChange: OnChange;
  readonly onConnect: (client: pg.Client) => Promise<void>;
  /** Called when connections lack the settings of the session: a pooler has changed it. */
  readonly onUnset: (() => void) | undefined;
  /** Called with a state of the server in which it can be used, but not for all; once as long as it lasts. */
  readonly onWarning: (sentence: string) => void;
}

/** What callers use of a monitor; the embedded database is never down, and has a constant one. */
export type Monitor = Pick<ServerMonitor, 'problem'>;

/** Checks in short intervals whether the server can be reached and is migrated; refuses connections while it is not. */
export class ServerMonitor {
  readonly #options: MonitorOptions;
  readonly #connection: DedicatedConnection;
  #problem: Error | undefined;
  /** Undefined during a check, and after `close`. */
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  #wasReady = false;
  #warning: string | undefined;
  /** Why the last new connection failed while the open ones work, such as by a changed password. */
  #refusal: string | undefined;

  constructor(options: MonitorOptions) {
    this.#options = options;
    const { Client } = options.session;
    const createClient = (config?: pg.ClientConfig) => new Client(config);
    this.#connection = new DedicatedConnection(createClient, limit, async (client) => {
      // Two statements: PgBouncer lets one of both pass with pool_mode=statement.
      await client.query('BEGIN READ ONLY');
      await client.query('COMMIT');
      await options.onConnect(client);
    });
  }

  /** @throws DatabaseNotReadyError or MigrationError when waiting cannot help */
  async start(): Promise<void> {
    const found = await this.#check();
    if (found && !(found instanceof DatabaseNotReadyError && found.mayPass)) throw found;
    this.#update(found);
    this.#schedule();
  }

  /** Why the database cannot be used now, in one sentence; undefined while it can. */
  problem(): string | undefined {
    return this.#problem?.message;
  }

  /** Checks without the pause, after a statement failed with an error that indicates a problem of the database. */
  checkNow(): void {
    if (!this.#timer) return;
    clearTimeout(this.#timer);
    void this.#checkAgain();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#connection.close();
  }

  #schedule(): void {
    this.#timer = setTimeout(() => this.#checkAgain(), pause);
  }

  async #checkAgain(): Promise<void> {
    this.#timer = undefined;
    const found = await this.#check();
    if (this.#isClosed) return this.#connection.close();
    this.#update(found);
    this.#schedule();
  }

  /** Returns the problem; undefined when the database can be used. */
  async #check(): Promise<Error | undefined> {
    const { description, onUnset, onWarning } = this.#options;
    try {
      const check = (client: pg.Client) => checkReady(client, description, onUnset);
      const warning = (await this.#connection.query(check, 3)) ?? this.#refusal;
      if (warning && warning !== this.#warning) onWarning(warning);
      this.#warning = warning;
    } catch (error) {
      return explain(description, error);
    }
    // Not awaited: an address that does not answer must not delay the next check.
    this.#connection.renew(maxAge).then(
      (isRenewed) => {
        if (isRenewed) this.#refusal = undefined;
      },
      (error) => {
        this.#refusal = `Only open connections are used. ${explain(description, error).message}`;
      },
    );
    return undefined;
  }

  #update(found: Error | undefined): void {
    this.#wasReady ||= !found;
    if (found?.message === this.#problem?.message) return;
    // The server is up, and the open connections work. At the start there are none.
    if (this.#wasReady && !this.#problem && isFull(found?.cause)) return;
    this.#problem = found;
    const { sockets, onChange } = this.#options;
    if (found) sockets.refuse(new DatabaseAwayError(found.message));
    else sockets.admit();
    onChange(found);
  }
}
