// Answers as server-sent events: the "distinct connections" mode of the GraphQL over SSE protocol.
// @see https://github.com/graphql/graphql-over-http/blob/main/rfcs/GraphQLOverSSE.md
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type ExecutionResult, GraphQLError } from 'graphql';
import type { OperationCaller } from '../../admission/admission.ts';
import { invalidToken } from '../../errors.ts';
import { type EventStreams, formatEvent, sendEvents } from '../../http/event-stream.ts';
import type { Engine } from '../engine/engine.ts';
import type { Invalid, Operation } from '../engine/operations.ts';
import { encodeResult, type GraphQLRequest } from '../request.ts';
import type { LiveAnswers } from './live.ts';
import type { LiveAnswer } from './live-feed.ts';

interface EventOptions {
  readonly engine: Engine;
  readonly live: LiveAnswers;
  readonly streams: EventStreams;
}

/** Answers a subscription with a stream of events, another operation with its single result. */
export async function answerWithEvents(
  { engine, live, streams }: EventOptions,
  request: FastifyRequest,
  reply: FastifyReply,
  operation: Operation | Invalid,
  { variables, key }: GraphQLRequest,
  caller: OperationCaller,
): Promise<FastifyReply> {
  // Errors of a document are sent as an event: EventSource hides the body of another status.
  if ('errors' in operation) return sendEvents(request, reply, onlyOne(operation));
  request.operationName = operation.name;
  if (!operation.isLive) {
    const execution = { operation, variables, key: `events ${key}`, toAnswer: toLive };
    const { events, isFinal } = (await engine.answer(execution, caller)).answer;
    return sendEvents(request, reply, isFinal ? events : Buffer.concat([events, complete]));
  }
  const name = JSON.stringify([operation.name ?? null, operation.text]);
  const liveKey = `live ${name} ${writeCanonical(variables)}`;
  const execution = { operation, variables, key: liveKey, toAnswer: toLive };
  const stream = streams.add(request.viewer ?? {}, expired);
  const subscription = live.subscribe(
    execution,
    request.viewer,
    caller.sender,
    ({ events, isFinal }) => {
      if (isFinal) stream.finish(events);
      else stream.offer(events);
    },
  );
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
  return sendEvents(request, reply, stream);
}

/** With empty data: EventSource does not dispatch an event without data. */
const complete = formatEvent('complete', '');

const expired = onlyOne({
  errors: [
    new GraphQLError('The token has expired: ask again with a new one.', {
      extensions: { code: invalidToken().code },
    }),
  ],
});

function onlyOne(result: ExecutionResult): Buffer {
  const { body } = encodeResult(result, 'application/graphql-response+json');
  return Buffer.concat([formatEvent('next', body), complete]);
}

function toLive(result: ExecutionResult, isShared: boolean): LiveAnswer {
  // Not executed, now or later: the variables are invalid, or too costly.
  const isFinal = result.data === undefined;
  const { body } = encodeResult(result, 'application/graphql-response+json');
  const events = isFinal ? onlyOne(result) : formatEvent('next', body);
  const shareable = isShared && result.errors === undefined;
  return { events, isShared, isFinal, size: events.length, shareable };
}

/** Canonical text: equal for equal variables, in any order. JSON would write Infinity, parsed from 1e400, as null. */
function writeCanonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(writeCanonical).join()}]`;
  if (typeof value === 'number') return Object.is(value, -0) ? '-0' : String(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([name, inner]) => `${JSON.stringify(name)}:${writeCanonical(inner)}`).join()}}`;
}
