// Spans of SQL statements that requests send to the database.
import { type Attributes, type Span, SpanKind, type Tracer, trace } from '@opentelemetry/api';
import { LRUCache } from 'lru-cache';
import type pg from 'pg';
import type { ObserveStatement } from '../../database/connection/observe.ts';
import { fail } from './requests.ts';

/** Statements outside of a request, such as maintenance, are not traced. */
export const observeStatement =
  (tracer: Tracer): ObserveStatement =>
  ({ text, client }) => {
    if (!trace.getActiveSpan()?.isRecording()) return undefined;
    const { name, attributes } = describe(text);
    const span = tracer.startSpan(name, {
      kind: SpanKind.CLIENT,
      attributes: { ...attributes, ...serverOf(client) },
    });
    return (error) => end(span, error);
  };

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
