// How every connection to PostgreSQL is made, also by way of a pooler, and how all of them are cut.
import { Socket } from 'node:net';
import pg from 'pg';
import type { Config } from '../../config.ts';
import { readTls } from './tls.ts';

/** What a pooler keeps together: all that a connection sends, or each transaction by itself. */
export type Pooling = Config['databasePooler'];

export interface Session {
  readonly config: pg.ClientConfig;
  readonly Client: new (config?: pg.ClientConfig) => pg.Client;
  /** From now on no statement is prepared under a name. */
  disablePreparedStatements(): void;
}

const connectionTimeout = 5_000;

/** @param statementTimeout milliseconds; where transactions are pooled, the role's own holds @throws ConfigError */
export function createSession(
  databaseUrl: string,
  pooling: Pooling,
  statementTimeout: number,
): Session {
  const url = new URL(databaseUrl);
  const poolsTransactions = pooling === 'transaction';
  const config = {
    ...readTls(url),
    connectionString: url.href,
    connectionTimeoutMillis: connectionTimeout,
    application_name: 'outfit-gateway',
  };
  let hasNames = !poolsTransactions;

  class SessionClient extends pg.Client {
    constructor(more: pg.ClientConfig = {}) {
      super({ ...config, ...more });
      // The next statement reports a lost connection; without a listener it would end the process as well.
      this.on('error', () => {});
    }

    override query(statement: unknown, ...others: unknown[]): never {
      const sent = hasNames ? statement : withoutName(statement);
      return Reflect.apply(super.query, this, [sent, ...others]) as never;
    }

    override connect(): Promise<pg.Client>;
    override connect(callback: OnOpen): void;
    override connect(callback?: OnOpen): Promise<pg.Client> | undefined {
      const opened = this.#open();
      if (!callback) return opened;
      opened.then((client) => callback(null, client), callback as (error: unknown) => void);
      return undefined;
    }

    async #open(): Promise<pg.Client> {
      await super.connect();
      if (poolsTransactions) return this;
      try {
        await this.query(settingsOf(statementTimeout));
      } catch (error) {
        this.connection.stream.destroy();
        throw error;
      }
      return this;
    }
  }

  return {
    config,
    Client: SessionClient,
    disablePreparedStatements: () => {
      hasNames = false;
    },
  };
}

type OnOpen = (error: null, client: pg.Client) => void;

/** Sent after connecting: poolers refuse it before. The interval makes PostgreSQL notice that a client has left. */
function settingsOf(statementTimeout: number): string {
  return `SET statement_timeout = ${statementTimeout};
    SET idle_in_transaction_session_timeout = ${statementTimeout};
    SET TimeZone = 'UTC';
    SET client_connection_check_interval = 500`;
}

function withoutName(statement: unknown): unknown {
  const isNamed = typeof statement === 'object' && statement !== null && 'name' in statement;
  return isNamed ? { ...statement, name: undefined } : statement;
}

/** All sockets to the server, to be cut at once. */
export class Sockets {
  readonly #open = new Set<Socket>();
  #error: Error | undefined;

  /** For `stream` in the configuration of `pg`. */
  readonly open = (): Socket => {
    const socket = new Socket();
    this.#open.add(socket);
    socket.once('close', () => this.#open.delete(socket));
    const error = this.#error;
    if (error) process.nextTick(() => socket.destroy(error));
    return socket;
  };

  /** Ends all connections with this error, and every new one until `admit` is called. */
  refuse(error: Error): void {
    this.#error = error;
    for (const socket of this.#open) socket.destroy(error);
  }

  get isRefusing(): boolean {
    return this.#error !== undefined;
  }

  admit(): void {
    this.#error = undefined;
  }
}

/** A connection of its own for questions about a server, opened when there is none; the pool is not asked. */
export class DedicatedConnection {
  #client: pg.Client | undefined;
  #connectedAt = 0;

  /** @param limit milliseconds for an answer @param onConnect what it throws counts as a failed connection */
  constructor(
    private readonly session: Session,
    private readonly limit: number,
    private readonly onConnect: (client: pg.Client) => Promise<void> = async () => {},
  ) {}

  /** A failing question closes the connection, in bounded time. @param attempts each on a new connection */
  async ask<Result>(
    question: (client: pg.Client) => Promise<Result>,
    attempts = 1,
  ): Promise<Result> {
    let isLate = false;
    const clear = startLimit(this.limit, () => {
      isLate = true;
      this.close(new Error(`no answer within ${this.limit / 1000} s`));
    });
    try {
      for (let attempt = 1; ; attempt++) {
        try {
          return await question(this.#client ?? (await this.#connect()));
        } catch (error) {
          this.close();
          if (isLate || attempt === attempts) throw error;
        }
      }
    } finally {
      clear();
    }
  }

  async #connect(): Promise<pg.Client> {
    // Its time limit is that of the question.
    const client = new this.session.Client({ connectionTimeoutMillis: 0 });
    this.#client = client;
    await client.connect();
    await this.onConnect(client);
    this.#connectedAt = performance.now();
    return client;
  }

  /** Replaces an old connection if a new one opens: only that tells that the address leads elsewhere by now. */
  async renew(maxAge: number): Promise<void> {
    if (performance.now() - this.#connectedAt <= maxAge) return;
    this.#connectedAt = performance.now();
    const old = this.#client;
    const fresh = new this.session.Client();
    // Of a server that stops answering on it, nothing else cuts it.
    const clear = startLimit(maxAge / 2, () => fresh.connection.stream.destroy());
    try {
      await fresh.connect();
      await this.onConnect(fresh);
      if (this.#client !== old) throw new Error('closed');
      old?.connection.stream.destroy();
      this.#client = fresh;
    } catch {
      fresh.connection.stream.destroy();
    } finally {
      clear();
    }
  }

  /** What waits for it fails with the reason. */
  close(reason?: Error): void {
    this.#client?.connection.stream.destroy(reason);
    this.#client = undefined;
  }
}

/** Milliseconds between two looks at the clock, and the most that is counted of what has passed. */
const step = 100;
const maxCounted = 150;

/** Calls back after so many milliseconds without stalls of this process, for which the database is not to blame. */
function startLimit(milliseconds: number, onLate: () => void): () => void {
  let last = performance.now();
  let counted = 0;
  const timer = setInterval(() => {
    const now = performance.now();
    counted += Math.min(now - last, maxCounted);
    last = now;
    if (counted < milliseconds) return;
    clearInterval(timer);
    onLate();
  }, step);
  return () => clearInterval(timer);
}
