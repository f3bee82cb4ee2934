// Sessions: how connections to PostgreSQL are opened, directly or through a pooler, and how all of them are cut.
import { Socket } from 'node:net';
import pg from 'pg';
import { type Config, ConfigError } from '../../config/config.ts';
import type { ServerConfig } from './server-url.ts';

/** Pool mode of a pooler such as PgBouncer: a server connection per client session, or per transaction. */
export type Pooling = Config['databasePooler'];

export interface Session {
  readonly config: pg.ClientConfig;
  readonly Client: new (config?: pg.ClientConfig) => pg.Client;
  /** Named prepared statements do not work with transaction pooling: from now on, statements are sent without names. */
  disablePreparedStatements(): void;
}

const connectionTimeout = 5_000;
/** Milliseconds: load balancers and firewalls drop connections that are idle for some minutes, and tell nobody. */
const keepAliveDelay = 30_000;

/** @param statementTimeout milliseconds; that of the role with transaction pooling */
export function createSession(
  { schema, ...server }: ServerConfig,
  pooling: Pooling,
  statementTimeout: number,
): Session {
  const poolsTransactions = pooling === 'transaction';
  if (poolsTransactions && schema !== undefined)
    throw new ConfigError(describePooled(schema, server));
  const config = {
    ...server,
    connectionTimeoutMillis: connectionTimeout,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveDelay,
  };
  let preparesStatements = !poolsTransactions;

  class SessionClient extends pg.Client {
    constructor(more: pg.ClientConfig = {}) {
      super({ ...config, ...more });
      // The next statement reports a lost connection; without a listener it would end the process as well.
      this.on('error', () => {});
    }

    override query(statement: unknown, ...others: unknown[]): never {
      const sent = preparesStatements ? statement : withoutName(statement);
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
        await this.query(settingsOf(statementTimeout, schema));
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
      preparesStatements = false;
    },
  };
}

type OnOpen = (error: null, client: pg.Client) => void;

/** A pooler of transactions keeps no search path: it has to be that of the role. */
function describePooled(schema: string, { user, database }: pg.ClientConfig): string {
  const quote = (name: string) => (/^[a-z_]\w*$/.test(name) ? name : pg.escapeIdentifier(name));
  const role = user ? quote(user) : 'CURRENT_USER';
  const place = database ? `IN DATABASE ${quote(database)} ` : '';
  return `DATABASE_URL has schema=${schema}, which a pooler of transactions cannot keep: leave it out, and run "ALTER ROLE ${role} ${place}SET search_path = ${pg.escapeIdentifier(schema)}".`;
}

/** Settings that change what statements mean: their defaults, which an operator may have changed for other programs. */
export const roleSettings = {
  standard_conforming_strings: 'on',
  array_nulls: 'on',
  transform_null_equals: 'off',
  gin_fuzzy_search_limit: '0',
  default_transaction_isolation: 'read committed',
};

/** Sent after connecting: poolers reject startup options. The interval makes PostgreSQL notice a lost client. */
function settingsOf(statementTimeout: number, schema: string | undefined): string {
  return `${schema === undefined ? '' : `SET search_path = ${pg.escapeIdentifier(schema)};`}
    SET statement_timeout = ${statementTimeout};
    SET idle_in_transaction_session_timeout = ${statementTimeout};
    SET TimeZone = 'UTC';
    SET client_connection_check_interval = 500;
    -- A row that a policy hides is an error then.
    SET row_security = off;
    ${Object.entries(roleSettings)
      .map(([name, value]) => `SET ${name} = '${value}'`)
      .join('; ')}`;
}

function withoutName(statement: unknown): unknown {
  const isNamed = typeof statement === 'object' && statement !== null && 'name' in statement;
  return isNamed ? { ...statement, name: undefined } : statement;
}

/** All open sockets to a server, so that they can be cut together. */
export class Sockets {
  readonly #open = new Set<Socket>();
  #error: Error | undefined;

  /** The option `stream` of `pg`. */
  readonly open = (): Socket => {
    const socket = new Socket();
    this.#open.add(socket);
    socket.once('close', () => this.#open.delete(socket));
    const error = this.#error;
    if (error) {
      // Without a look-up of the name.
      socket.connect = () => socket;
      process.nextTick(() => socket.destroy(error));
    }
    return socket;
  };

  /** Destroys all connections with this error, and each new one until `admit` is called. */
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

/** A dedicated connection, for one query at a time: it is independent of the pool, and reopened when it was lost. */
export class DedicatedConnection {
  #client: pg.Client | undefined;
  #connectedAt = 0;

  /** @param limit milliseconds for a query, its connection included @param onConnect fails the connection */
  constructor(
    private readonly createClient: (config?: pg.ClientConfig) => pg.Client,
    private readonly limit: number | undefined,
    private readonly onConnect: (client: pg.Client) => Promise<void> = async () => {},
  ) {}

  /** Closes the connection on failure and tries again, all within the limit. @param attempts each on a new connection */
  async query<Result>(work: (client: pg.Client) => Promise<Result>, attempts = 1): Promise<Result> {
    let isLate = false;
    const { limit } = this;
    const clear =
      limit === undefined
        ? () => {}
        : startLimit(limit, () => {
            isLate = true;
            this.close(new Error(`no answer within ${limit / 1000} s`));
          });
    try {
      for (let attempt = 1; ; attempt++) {
        try {
          return await work(this.#client ?? (await this.#connect()));
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
    const { limit } = this;
    const client = this.createClient(limit === undefined ? {} : { connectionTimeoutMillis: 0 });
    this.#client = client;
    await client.connect();
    await this.onConnect(client);
    this.#connectedAt = performance.now();
    return client;
  }

  /**
   * Replaces a connection older than `maxAge`: only a new one shows that the address leads to another server now.
   * @returns whether it did @throws when none can be opened: the old one stays
   */
  async renew(maxAge: number): Promise<boolean> {
    if (performance.now() - this.#connectedAt <= maxAge) return false;
    this.#connectedAt = performance.now();
    const old = this.#client;
    const fresh = this.createClient();
    // Nothing else cuts it when the server stops answering.
    const clear = startLimit(maxAge / 2, () => fresh.connection.stream.destroy());
    try {
      await fresh.connect();
      await this.onConnect(fresh);
      const unused = this.#client === old ? old : fresh;
      if (unused === old) this.#client = fresh;
      unused?.connection.stream.destroy();
      return unused === old;
    } catch (error) {
      fresh.connection.stream.destroy();
      throw error;
    } finally {
      clear();
    }
  }

  /** @param reason a query under way fails with it */
  close(reason?: Error): void {
    this.#client?.connection.stream.destroy(reason);
    this.#client = undefined;
  }
}

/** Milliseconds between two ticks of the limit, and the most that one tick counts. */
const step = 100;
const maxCounted = 150;

/** A timeout that does not count stalls of this process: the database must not be blamed for those. */
export function startLimit(milliseconds: number, onLate: () => void): () => void {
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
