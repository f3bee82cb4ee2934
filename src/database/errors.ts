// Which errors of the database are a 503, and which are faults of ours.
import pg from 'pg';
import { HttpError, OperatorError, timedOut, unavailable } from '../errors.ts';

/** Why a connection was cut or refused: the database is known to be away, and the log says so. */
export class DatabaseAwayError extends OperatorError {
  override readonly name = 'DatabaseAwayError';
}

/** What a request is told of an error, as thrown or wrapped by Prisma or GraphQL; undefined for faults of ours. */
export function httpErrorFor(error: unknown): HttpError | undefined {
  const chain = chainOf(error);
  const httpError = chain.find((link) => link instanceof HttpError);
  if (httpError) return httpError;
  if (chain.some((link) => link instanceof DatabaseAwayError)) return unavailable();
  if (chain.some((link) => codesOf(link).some((code) => stopped.includes(code)))) return timedOut();
  const isOfServer = (link: ErrorLike) =>
    codesOf(link).some(isOfDatabase) || isOfConnection(link) || isOfAdapter(link);
  return chain.some(isOfServer) ? unavailable({ cause: error }) : undefined;
}

type ErrorLike = Readonly<Record<string, unknown>>;

/** By its time limit or an operator, or because its task was stopped: of that HttpError, Prisma keeps the code alone. */
const canceled = '57014';
const stopped = [canceled, timedOut().code];

export function sqlStateOf(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined;
}

/** Whether a statement was ended by its time limit, or by an operator. */
export function isTimeLimit(error: unknown): boolean {
  return sqlStateOf(error) === canceled;
}

/** A table, column, function, schema or right is missing: the database was exchanged for one that is not migrated. */
const schemaStates = /^(?:42P01|42703|42883|3F000|42501)$/;

export function isSchemaError(code: string | undefined): boolean {
  return schemaStates.test(code ?? '');
}

/** A prepared statement is not there, or is there already: it is that of another connection. */
const sharedNames = /^(?:26000|42P05)$/;

/** Whether a pooler gives this connection the sessions of others, with what they have prepared. */
export function isPreparedNameError(code: string | undefined): boolean {
  return sharedNames.test(code ?? '');
}

const sqlStates = [
  schemaStates,
  sharedNames,
  /^0A000$/, // a column has another type than when the statement was prepared
  /^08/, // the connection broke
  /^28/, // the server does not let us in: its passwords are being changed, say
  /^25006$/, // a standby, or a server that only reads for now
  /^3D000$/, // the database is gone, and may be on its way back
  /^40001$|^40P01$/, // lost against other transactions
  /^53/, // out of disk, memory or connections
  /^55000$/, // the database takes no connections
  /^55P03$/, // a lock was not to be had in time
  /^57P0[1-5]$/, // shutting down, crashed, starting up, dropped, idle for too long
  /^58/, // the system under the server fails
];

/** Not reachable, too slow, access denied, closed, without a table or column, too many connections, lost. */
const prismaCodes =
  /^P1001$|^P1002$|^P1008$|^P1010$|^P1017$|^P2021$|^P2022$|^P2024$|^P2028$|^P2034$|^P2037$/;

function isOfDatabase(code: string): boolean {
  return prismaCodes.test(code) || sqlStates.some((state) => code.length === 5 && state.test(code));
}

const connectionMessages =
  /^(?:Connection terminated|timeout exceeded when trying to connect|timeout expired|Client has encountered a connection error|Client was closed|Cannot use a pool after calling end)/;

/** What Prisma's driver adapter says of raw queries, which get no code. */
const adapterKinds =
  /^(?:ConnectionClosed|DatabaseNotReachable|SocketTimeout|TlsConnectionError|TooManyConnections|TransactionWriteConflict)$/;

function isOfAdapter({ kind }: ErrorLike): boolean {
  return typeof kind === 'string' && adapterKinds.test(kind);
}

function isOfConnection({ code, syscall, message }: ErrorLike): boolean {
  // Of the sockets that the work on a request opens, all lead to the database.
  if (typeof code === 'string' && /^(?:connect|getaddrinfo|read|write)$/.test(String(syscall))) {
    return true;
  }
  return code === undefined && connectionMessages.test(String(message));
}

function chainOf(error: unknown): ErrorLike[] {
  if (!isObject(error)) return [];
  const { cause, errors, meta, originalError } = error;
  const ofPrisma = isObject(meta) ? meta['driverAdapterError'] : undefined;
  // Node tries all addresses of a host, and gives an AggregateError.
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
