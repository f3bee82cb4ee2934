// Answers as a stream of events: of a subscription, or of another operation when the client prefers events.
import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type ExecutionResult, GraphQLError } from 'graphql';
import type { OperationCaller } from '../../admission/admission.ts';
import { httpErrorFor } from '../../database/errors.ts';
import { HttpError, invalidToken, tooManyStreams } from '../../errors.ts';
import {
  type EventStream,
  type EventStreams,
  type StreamOptions,
  sendEvents,
} from '../../http/event-stream.ts';
import { bytesOfHead } from '../../http/places.ts';
import { disconnectHalfClosed } from '../../http/server/connections.ts';
import type { Engine } from '../engine/engine.ts';
import type { Operation } from '../engine/operations.ts';
import { encodeResult } from '../request.ts';
import type { EventFormat } from './formats.ts';
import type { LiveAnswers } from './live.ts';
import type { LiveAnswer, LiveExecution } from './live-feed.ts';

/** Bytes of memory that a stream keeps. */
const bytesPerCharacter = { text: 2, variables: 4 };
const bytesPerStream = 2_048;

interface EventOptions {
  readonly engine: Engine;
  readonly live: LiveAnswers;
  readonly streams: EventStreams;
  readonly format: EventFormat;
}

/** A stream for the answers of a subscription, which has its first answer. */
export async function openLive(
  { engine, live, streams, format }: EventOptions,
  request: FastifyRequest,
  operation: Operation,
  variables: Record<string, unknown>,
  { sender }: OperationCaller,
): Promise<EventStream> {
  const execution = toExecution(operation, variables);
  // Nothing else of the request is kept as long as the stream.
  request.body = undefined;
  const stream = openStream(streams, format, request, execution, sender);
  const liveExecution = { ...execution, operation: finderOf(engine, operation) };
  await subscribe(live, stream, format, request, liveExecution, sender);
  return stream;
}

/** The single result of another operation, when the client prefers events. */
export function sendSingle(
  request: FastifyRequest,
  reply: FastifyReply,
  format: EventFormat,
  answer: LiveAnswer,
): FastifyReply {
  const events = answer.eventsIn(format);
  const all = answer.isFinal ? events : [...events, format.complete];
  return sendEvents(request, reply, format, all);
}

function openStream(
  streams: EventStreams,
  format: EventFormat,
  request: FastifyRequest,
  { variables, operation }: ReturnType<typeof toExecution>,
  sender: string,
): EventStream {
  const ofVariables = bytesPerCharacter.variables * writeCanonical(variables).length;
  const ofText = bytesPerCharacter.text * (operation.text?.length ?? 0);
  return streams.add(format, {
    sender,
    bytes: bytesPerStream + ofVariables + ofText + bytesOfHead(request.raw),
    lease: request.viewer ?? {},
    ...endingsOf(format),
  });
}

/** Resolves when the stream has its first answer. */
async function subscribe(
  live: LiveAnswers,
  stream: EventStream,
  format: EventFormat,
  { viewer, signal, raw: { socket } }: FastifyRequest,
  execution: LiveExecution,
  sender: string,
): Promise<void> {
  const subscription = live.subscribe(execution, viewer, sender, (answer, kept) => {
    if (answer.isFinal) stream.finish(answer.eventsIn(format));
    else stream.offer(answer.eventsIn(format)[0], answer.tag, kept);
  });
  stream.once('close', subscription.unsubscribe);
  stream.once('close', disconnectHalfClosed(socket));
  const onLeave = () => stream.destroy();
  signal.addEventListener('abort', onLeave, { once: true });
  stream.once('close', () => signal.removeEventListener('abort', onLeave));
  try {
    await subscription.first;
  } catch (error) {
    stream.destroy();
    throw error;
  }
}

const expired = 'The token has expired: ask again with a new one.';

/** The last events of a stream. */
function endingsOf(format: EventFormat) {
  const ending = endings.get(format) ?? {
    onExpire: [
      format.formatFailure(encode(resultOf(new HttpError(401, invalidToken().code, expired)))),
      format.complete,
    ],
    onEvict: toLive(resultOf(tooManyStreams()), false).eventsIn(format),
  };
  endings.set(format, ending);
  return ending;
}

const endings = new Map<EventFormat, Pick<StreamOptions, 'onEvict' | 'onExpire'>>();

/** The variables that the operation declares, and a digest of what it depends on. */
function toExecution(operation: Operation, sent: Record<string, unknown>) {
  const declared = operation.node.variableDefinitions ?? [];
  const names = declared.map(({ variable }) => variable.name.value);
  const variables = Object.fromEntries(
    names.flatMap((name) => (Object.hasOwn(sent, name) ? [[name, sent[name]]] : [])),
  );
  const text = JSON.stringify([operation.isLive, operation.name ?? null, operation.text]);
  const digest = createHash('sha256').update(text).update(writeCanonical(variables));
  return { operation, variables, key: `events ${digest.digest('base64')}`, toAnswer: toLive };
}

/** Keeps the text alone: the engine keeps what was parsed, within its limit. */
function finderOf(engine: Engine, { text = '', name }: Operation): () => Operation {
  return () => {
    const found = engine.find(text, name);
    if ('errors' in found) throw found.errors[0];
    return found;
  };
}

/** @throws what may pass by itself */
export function toRefusal(error: unknown): LiveAnswer {
  const refused = httpErrorFor(error);
  if (!refused || refused.status >= 500) throw error;
  return toLive(resultOf(refused), false);
}

function resultOf({ message, code }: HttpError): ExecutionResult {
  return { errors: [new GraphQLError(message, { extensions: { code } })] };
}

function encode(result: ExecutionResult): Buffer {
  return encodeResult(result, 'application/graphql-response+json').body;
}

export function toLive(result: ExecutionResult, isShared: boolean): LiveAnswer {
  const body = encode(result);
  // Not executed, now or later: the variables are invalid, or too costly.
  const isFinal = result.data === undefined;
  // Formatted, and digested, once for all subscribers.
  const formatted = new Map<EventFormat, Buffer>();
  let tag: string | undefined;
  const eventsIn: LiveAnswer['eventsIn'] = (format) => {
    const write = isFinal ? format.formatRefusal : format.formatNext;
    const next = formatted.get(format) ?? write(body);
    formatted.set(format, next);
    return isFinal ? [next, format.complete] : [next];
  };
  return {
    eventsIn,
    get tag() {
      tag ??= createHash('sha1').update(body).digest('base64');
      return tag;
    },
    isShared,
    isFinal,
    // The body, and its events in three formats.
    size: 4 * body.length,
    shareable: isShared && result.errors === undefined,
  };
}

/** Canonical text: equal for equal variables, in any order. JSON would write Infinity, parsed from 1e400, as null. */
export function writeCanonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(writeCanonical).join()}]`;
  if (typeof value === 'number') return Object.is(value, -0) ? '-0' : String(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([name, inner]) => `${JSON.stringify(name)}:${writeCanonical(inner)}`).join()}}`;
}
