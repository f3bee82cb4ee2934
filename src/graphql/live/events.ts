// Answers as server-sent events: the "distinct connections" mode of the GraphQL over SSE protocol.
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

interface Means {
  readonly engine: Engine;
  readonly live: LiveAnswers;
  readonly streams: EventStreams;
}

/** A subscription with a stream of events, anything else with its one result. */
export async function answerWithEvents(
  { engine, live, streams }: Means,
  request: FastifyRequest,
  reply: FastifyReply,
  operation: Operation | Invalid,
  { variables, key }: GraphQLRequest,
  caller: OperationCaller,
): Promise<FastifyReply> {
  // What is wrong with a document is told in an event: EventSource would hide another status.
  if ('errors' in operation) return sendEvents(request, reply, onlyOne(operation));
  request.operationName = operation.name;
  if (!operation.isLive) {
    const question = { operation, variables, key: `events ${key}`, toAnswer: toLive };
    const { events, isFinal } = await engine.answer(question, caller);
    return sendEvents(request, reply, isFinal ? events : Buffer.concat([events, complete]));
  }
  const name = JSON.stringify([operation.name ?? null, operation.text]);
  const liveKey = `live ${name} ${writeCanonical(variables)}`;
  const question = { operation, variables, key: liveKey, toAnswer: toLive };
  const stream = streams.add(request.viewer?.expiresAt, expired);
  const following = live.follow(question, request.viewer, caller.sender, ({ events, isFinal }) => {
    if (isFinal) stream.finish(events);
    else stream.offer(events);
  });
  stream.once('close', following.leave);
  const { signal } = request;
  const onLeave = () => stream.destroy();
  signal.addEventListener('abort', onLeave, { once: true });
  stream.once('close', () => signal.removeEventListener('abort', onLeave));
  try {
    await following.first;
  } catch (error) {
    stream.destroy();
    throw error;
  }
  return sendEvents(request, reply, stream);
}

/** Its data is empty, not absent: or else EventSource would not tell of it. */
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

function toLive(result: ExecutionResult, isForAll: boolean): LiveAnswer {
  // Nothing was executed, and would not be the next time: the variables do not fit, or cost too much.
  const isFinal = result.data === undefined;
  const { body } = encodeResult(result, 'application/graphql-response+json');
  const events = isFinal ? onlyOne(result) : formatEvent('next', body);
  const shareable = isForAll && result.errors === undefined;
  return { events, isForAll, isFinal, size: events.length, shareable };
}

/** Variables as text that is equal for equal ones, in any order. JSON would write 1e400, read as Infinity, as null. */
function writeCanonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(writeCanonical).join()}]`;
  if (typeof value === 'number') return Object.is(value, -0) ? '-0' : String(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([name, inner]) => `${JSON.stringify(name)}:${writeCanonical(inner)}`).join()}}`;
}
