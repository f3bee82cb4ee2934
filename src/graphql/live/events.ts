// Answers as a stream of events: of a subscription, or of another operation when the client prefers events.
import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type ExecutionResult, GraphQLError } from 'graphql';
import type { OperationCaller } from '../../admission/admission.ts';
import { httpErrorFor } from '../../database/errors.ts';
import { invalidToken } from '../../errors.ts';
import { type EventStreams, sendEvents } from '../../http/event-stream.ts';
import type { Engine } from '../engine/engine.ts';
import type { Invalid, Operation } from '../engine/operations.ts';
import { encodeResult, type GraphQLRequest } from '../request.ts';
import type { EventFormat } from './formats.ts';
import type { LiveAnswers } from './live.ts';
import type { LiveAnswer, LiveExecution } from './live-feed.ts';

interface EventOptions {
  readonly engine: Engine;
  readonly live: LiveAnswers;
  readonly streams: EventStreams;
  readonly format: EventFormat;
}

/** Answers a subscription with a stream of events, another operation with its single result. */
export async function answerWithEvents(
  { engine, live, streams, format }: EventOptions,
  request: FastifyRequest,
  reply: FastifyReply,
  operation: Operation | Invalid,
  { variables }: GraphQLRequest,
  caller: OperationCaller,
): Promise<FastifyReply> {
  const send = (answer: LiveAnswer) => {
    const events = answer.eventsIn(format);
    const all = answer.isFinal ? events : Buffer.concat([events, format.complete]);
    return sendEvents(request, reply, format, all);
  };
  // Errors of a document are sent as an event: EventSource hides the body of another status.
  if ('errors' in operation) {
    return send(toLive(await engine.refuse(operation, caller), false));
  }
  request.operationName = operation.name;
  const execution = toExecution(operation, variables);
  if (!operation.isLive) {
    const { answer } = await engine.answer(execution, caller).catch(toRefusal);
    return send(answer);
  }
  const onExpire = Buffer.concat([format.formatFailure(expired), format.complete]);
  const stream = streams.add(format, request.viewer ?? {}, onExpire);
  const subscription = live.subscribe(execution, request.viewer, caller.sender, (answer) => {
    if (answer.isFinal) stream.finish(answer.eventsIn(format));
    else stream.offer(answer.eventsIn(format));
  });
  stream.once('close', subscription.unsubscribe);
  const { signal } = request;
  const onLeave = () => stream.destroy();
  signal.addEventListener('abort', onLeave, { once: true });
  stream.once('close', () => signal.removeEventListener('abort', onLeave));
  try {
    await subscription.first;
  } catch (error) {
    stream.destroy();
    throw error;
  }
  return sendEvents(request, reply, format, stream);
}

const expired = encode({
  errors: [
    new GraphQLError('The token has expired: ask again with a new one.', {
      extensions: { code: invalidToken().code },
    }),
  ],
});

/** Variables that the operation does not declare are not kept, and the key is short: both live as long as a stream. */
function toExecution(operation: Operation, sent: GraphQLRequest['variables']): LiveExecution {
  const declared = operation.node.variableDefinitions ?? [];
  const names = declared.map(({ variable }) => variable.name.value);
  const variables = Object.fromEntries(
    names.flatMap((name) => (Object.hasOwn(sent, name) ? [[name, sent[name]]] : [])),
  );
  const text = JSON.stringify([operation.isLive, operation.name ?? null, operation.text]);
  const digest = createHash('sha256').update(text).update(writeCanonical(variables));
  return { operation, variables, key: `events ${digest.digest('base64')}`, toAnswer: toLive };
}

/** What an operation is refused for is its result, so that clients do not repeat it. @throws what may pass by itself */
function toRefusal(error: unknown): { answer: LiveAnswer } {
  const refused = httpErrorFor(error);
  if (!refused || refused.status >= 500) throw error;
  const { message, code } = refused;
  const errors = [new GraphQLError(message, { extensions: { code } })];
  return { answer: toLive({ errors }, false) };
}

function encode(result: ExecutionResult): Buffer {
  return encodeResult(result, 'application/graphql-response+json').body;
}

function toLive(result: ExecutionResult, isShared: boolean): LiveAnswer {
  const body = encode(result);
  // Not executed, now or later: the variables are invalid, or too costly.
  const isFinal = result.data === undefined;
  // Formatted once for all subscribers.
  const formatted = new Map<EventFormat, Buffer>();
  const eventsIn = (format: EventFormat) => {
    const write = isFinal ? format.formatRefusal : format.formatNext;
    const next = formatted.get(format) ?? write(body);
    formatted.set(format, next);
    return isFinal ? Buffer.concat([next, format.complete]) : next;
  };
  const shareable = isShared && result.errors === undefined;
  // The body, and its events in three formats.
  return { eventsIn, isShared, isFinal, size: 4 * body.length, shareable };
}

/** Canonical text: equal for equal variables, in any order. JSON would write Infinity, parsed from 1e400, as null. */
function writeCanonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(writeCanonical).join()}]`;
  if (typeof value === 'number') return Object.is(value, -0) ? '-0' : String(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([name, inner]) => `${JSON.stringify(name)}:${writeCanonical(inner)}`).join()}}`;
}
