// Spans of SQL statements that requests send to the database.
import {
  type Attributes,
  context,
  type Span,
  SpanKind,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { LRUCache } from 'lru-cache';
import type pg from 'pg';
import { fail } from './requests.ts';

type Callback = (error: Error | null | undefined, result?: unknown) => void;
type Query = (statement: string | pg.QueryConfig | pg.Submittable, ...rest: unknown[]) => unknown;

/** Instruments the connections of a pool, which all statements use, also those of transactions and of Prisma. */
export function followStatements(pool: pg.Pool, tracer: Tracer): void {
  const connect = pool.connect.bind(pool);
  // A waiting callback is called by the request that releases a connection, and would continue in its trace.
  pool.connect = ((callback?: (...given: never[]) => void) =>
    callback
      ? connect(context.bind(context.active(), callback) as never)
      : connect()) as typeof pool.connect;
  pool.on('connect', (client) => traceClient(client, tracer));
}

function traceClient(client: pg.PoolClient, tracer: Tracer): void {
  const query = client.query.bind(client) as Query;
  const server = serverOf(client as unknown as pg.Client);
  const traced: Query = (statement, ...rest) => {
    // Statements outside of a request, such as maintenance, are not traced.
    if (!trace.getActiveSpan()?.isRecording()) return query(statement, ...rest);
    const text = typeof statement === 'string' ? statement : 'text' in statement && statement.text;
    if (typeof text !== 'string') return query(statement, ...rest);
    const { name, attributes } = describe(text);
    const span = tracer.startSpan(name, {
      kind: SpanKind.CLIENT,
      attributes: { ...attributes, ...server },
    });
    const callback = rest.at(-1);
    if (typeof callback === 'function') {
      const endAndCall: Callback = (error, result) => {
        end(span, error);
        callback(error, result);
      };
      return query(statement, ...rest.slice(0, -1), endAndCall);
    }
    const result = query(statement, ...rest) as Promise<unknown>;
    result.then(
      () => end(span, null),
      (error) => end(span, error),
    );
    return result;
  };
  client.query = traced as typeof client.query;
}

/** @see https://opentelemetry.io/docs/specs/semconv/db/postgresql/ */
function serverOf({ host, port, database }: pg.Client): Attributes {
  // The host of the embedded database is the folder of its socket, which has no port.
  const isSocket = host.startsWith('/');
  return {
    'server.address': host,
    ...(isSocket ? {} : { 'server.port': port }),
    ...(database === undefined ? {} : { 'db.namespace': database }),
  };
}

/** Records the code of an error only: its message may quote values. The log has the message. */
function end(span: Span, error: unknown): void {
  if (error) {
    const { code, name } = error as Error & { readonly code?: string };
    if (code) span.setAttribute('db.response.status_code', code);
    fail(span, code ?? name);
  }
  span.end();
}

const descriptions = new LRUCache<string, { name: string; attributes: Attributes }>({ max: 1000 });

/** Values are parameters of a statement, so its text holds none. */
function describe(text: string) {
  const cached = descriptions.get(text);
  if (cached) return cached;
  const operation = /\b(select|insert|update|delete|merge|begin|commit|rollback|set)\b/i
    .exec(text)?.[0]
    .toUpperCase();
  const target = /\b(?:from|into|update)\s+(?:"?public"?\.)?"?(\w+)/i.exec(text)?.[1];
  const name = [operation ?? 'statement', target].filter(Boolean).join(' ');
  const description = {
    name,
    attributes: {
      'db.system.name': 'postgresql',
      'db.query.summary': name,
      'db.query.text': text,
      ...(operation ? { 'db.operation.name': operation } : {}),
    },
  };
  descriptions.set(text, description);
  return description;
}
