// How every connection to PostgreSQL is made, also by way of a pooler.
import pg from 'pg';
import type { Config } from '../config.ts';
import { readTls } from './tls.ts';

/** What a pooler keeps together: all that a connection sends, or each transaction by itself. */
export type Pooling = Config['databasePooler'];

/** How connections are made. */
export interface Session {
  readonly config: pg.ClientConfig;
  readonly Client: new (config?: pg.ClientConfig) => pg.Client;
  /** From now on no statement is prepared under a name. */
  stopNaming(): void;
}

/** Milliseconds that opening a connection may take. */
const connectionTimeout = 5_000;

/**
 * @param statementTimeout milliseconds after which PostgreSQL ends a statement, or a transaction
 *   nobody goes on with; the role's own where transactions are pooled
 * @throws ConfigError for TLS that the URL does not say right
 */
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
      // A lost connection is reported by the statement that fails, or by the next one; without a
      // listener it would end the process as well.
      this.on('error', () => {});
    }

    /** In all of its forms. */
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
    stopNaming: () => {
      hasNames = false;
    },
  };
}

type OnOpen = (error: null, client: pg.Client) => void;

/**
 * Sent once the connection is there, since poolers refuse a connection that begins with them. A
 * session in another time zone shifts timestamps without a word. The interval lets PostgreSQL notice
 * in the middle of a statement that nobody waits for it any more.
 */
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
