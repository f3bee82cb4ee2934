// Classifies database errors: those of the server or the connection are a 503, all others are bugs.
import pg from 'pg';
import { HttpError, legacyOwnsWrites, OperatorError, timedOut, unavailable } from '../errors.ts';

/** The database is down: a connection was cut or refused. The monitor has logged why. */
export class DatabaseAwayError extends OperatorError {
  override readonly name = 'DatabaseAwayError';
}

/** The HTTP error for an error as thrown, or as wrapped by Prisma or GraphQL; undefined for bugs. */
export function httpErrorFor(error: unknown): HttpError | undefined {
  const chain = chainOf(error);
  const httpError = chain.find((link) => link instanceof HttpError);
  if (httpError) return httpError;
  if (chain.some((link) => link instanceof DatabaseAwayError)) return unavailable();
  const codes = chain.flatMap(codesOf);
  if (codes.some((code) => stopped.includes(code))) return timedOut();
  if (codes.includes(attached)) return legacyOwnsWrites();
  const isAway = codes.some(isDatabaseCode) || chain.some(isConnectionError);
  return isAway ? unavailable({ cause: error }) : undefined;
}

type ErrorLike = Readonly<Record<string, unknown>>;

/** Cancelled by its time limit or an operator, or stopped with its task: Prisma keeps only the code of that error. */
const canceled = '57014';
/** `attach` has made the old service the one that writes, a moment ago. */
const attached = 'OG002';
const stopped = [canceled, timedOut().code];
export const deadlockDetected = '40P01';
/** Deadlock and serialization failure: a retry succeeds once the other transactions have ended. */
export const retryableStates: readonly (string | undefined)[] = [deadlockDetected, '40001'];
export const lockNotAvailable = '55P03';

export function sqlStateOf(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined;
}

/** Whether a statement was cancelled by its time limit, or by an operator. */
export function isTimeLimit(error: unknown): boolean {
  return sqlStateOf(error) === canceled;
}

/** Whether the server, the role or the database has no free connection, or PgBouncer (08P01 before 1.21). */
export function isFull(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state === '53300' || (state === '08P01' && /no more connections/.test(String(error)));
}

/** A table, column, function, schema or privilege is missing: the database was replaced by one that is not migrated. */
const schemaStates = /^(?:42P01|42703|42883|3F000|42501)$/;

export const isSchemaError = (code = '') => schemaStates.test(code);

/** A prepared statement does not exist, or exists already. */
const sharedNames = /^(?:26000|42P05)$/;

/** Whether it shows a pooler that shares server sessions, with their prepared statements, between connections. */
export const isPreparedNameError = (code = '') => sharedNames.test(code);

const readOnly = /^25006$/;

export const isReadOnlyError = (code = '') => readOnly.test(code);

/** Read-only, full, or without the privilege to write: reads may go on. */
export const isWriteRefused = (error: unknown) =>
  /^(?:25006|42501|53100)$/.test(sqlStateOf(error) ?? '');

/** @see https://www.postgresql.org/docs/current/errcodes-appendix.html */
const sqlStates = [
  schemaStates,
  sharedNames,
  /^0A000$/, // the type of a column has changed since the statement was prepared
  /^08/, // the connection broke
  /^28/, // not authorized: the password is being changed, for example
  readOnly, // a standby, or a server in read-only mode
  /^3D000$/, // the database does not exist, perhaps while it is restored
  /^40001$|^40P01$/, // serialization failure, deadlock
  /^53/, // out of disk, memory or connections
  /^55000$/, // the database accepts no connections
  /^55P03$/, // lock timeout
  /^57P0[1-5]$/, // shutting down, crashed, starting up, dropped, idle for too long
  /^58/, // a system error of the server
];

/** @see https://www.prisma.io/docs/orm/reference/error-reference */
const prismaCodes =
  /^P1001$|^P1002$|^P1008$|^P1010$|^P1017$|^P2021$|^P2022$|^P2024$|^P2028$|^P2034$|^P2037$/;

function isDatabaseCode(code: string): boolean {
  return prismaCodes.test(code) || sqlStates.some((state) => code.length === 5 && state.test(code));
}

const connectionMessages =
  /^(?:Connection terminated|timeout exceeded when trying to connect|timeout expired|Client has encountered a connection error|Client was closed|Cannot use a pool after calling end)/;

/** Errors of Prisma's driver adapter, which have no code when the query is a raw one. */
const adapterKinds =
  /^(?:ConnectionClosed|DatabaseNotReachable|SocketTimeout|TlsConnectionError|TooManyConnections|TransactionWriteConflict)$/;

function isConnectionError({ code, kind, syscall, message }: ErrorLike): boolean {
  // All sockets that the work on a request opens lead to the database.
  if (typeof code === 'string' && /^(?:connect|getaddrinfo|read|write)$/.test(String(syscall))) {
    return true;
  }
  const isNamed = code === undefined && connectionMessages.test(String(message));
  return isNamed || adapterKinds.test(String(kind));
}

function chainOf(error: unknown): ErrorLike[] {
  if (!isObject(error)) return [];
  const { cause, errors, meta, originalError } = error;
  const ofPrisma = isObject(meta) ? meta['driverAdapterError'] : undefined;
  // Node.js tries all addresses of a host, and throws an AggregateError.
  const inner = [cause, originalError, ofPrisma, ...(Array.isArray(errors) ? errors : [])];
  return [error, ...inner.flatMap(chainOf)];
}

/** Prisma keeps PostgreSQL's code as `originalCode`. */
function codesOf({ code, originalCode }: ErrorLike): string[] {
  return [code, originalCode].filter((text) => typeof text === 'string');
}

function isObject(value: unknown): value is ErrorLike {
  return typeof value === 'object' && value !== null;
}
