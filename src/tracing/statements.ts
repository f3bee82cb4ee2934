// A span for each statement that a request sends to the database.
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

/** Follows the connections of a pool: all statements, those of transactions and of Prisma, go through them. */
export function followStatements(pool: pg.Pool, tracer: Tracer): void {
  const connect = pool.connect.bind(pool);
  // Who waits for a connection is called by whoever gives one back, and would go on in its trace.
  pool.connect = ((callback?: (...given: never[]) => void) =>
    callback
      ? connect(context.bind(context.active(), callback) as never)
      : connect()) as typeof pool.connect;
  pool.on('connect', (client) => traceClient(client, tracer));
}

function traceClient(client: pg.PoolClient, tracer: Tracer): void {
  const query = client.query.bind(client) as Query;
  const traced: Query = (statement, ...rest) => {
    // What no request has asked for, such as looking after the database, is in no trace.
    if (!trace.getActiveSpan()?.isRecording()) return query(statement, ...rest);
    const text = typeof statement === 'string' ? statement : 'text' in statement && statement.text;
    if (typeof text !== 'string') return query(statement, ...rest);
    const { name, attributes } = describe(text);
    const span = tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes });
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

/** An error's own words may quote values, so only its code is told; the log has the rest. */
function end(span: Span, error: unknown): void {
  if (error) {
    const { code, name } = error as Error & { readonly code?: string };
    if (code) span.setAttribute('db.response.status_code', code);
    fail(span, code ?? name);
  }
  span.end();
}

const descriptions = new LRUCache<string, { name: string; attributes: Attributes }>({ max: 1000 });

/** Statements have their values as parameters, so the text holds none. */
function describe(text: string) {
  const known = descriptions.get(text);
  if (known) return known;
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
