import { GraphQLError } from 'graphql';
import { maskError } from 'graphql-yoga';
import { Refusal } from '../refusal.ts';

// The errors that are meant for the client. Every other one is masked and logged.

/** An argument has a value that is not allowed; `message` names it. */
export function badUserInput(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'BAD_USER_INPUT' } });
}

/** There is nothing with that identifier, or nothing that the viewer may see. */
export function notFound(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'NOT_FOUND' } });
}

/** The viewer may see it, but not change it. */
export function forbidden(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'FORBIDDEN' } });
}

/** A list has no page of that number. */
export function pageNotFound(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'PAGE_NOT_FOUND' } });
}

/**
 * What the client gets of an error in an answer. A refusal keeps its status and headers; what is
 * not meant for the client is masked.
 */
export function publishError(error: unknown, maskedMessage: string): Error {
  const refusal = error instanceof GraphQLError ? error.originalError : error;
  if (!(refusal instanceof Refusal)) return maskError(error, maskedMessage);
  const { code, headers, message, status } = refusal;
  const place = error instanceof GraphQLError ? error : undefined;
  return new GraphQLError(message, {
    nodes: place?.nodes ?? null,
    path: place?.path ?? null,
    extensions: { code, http: { status, headers } },
  });
}
