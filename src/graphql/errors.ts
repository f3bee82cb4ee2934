import { GraphQLError } from 'graphql';

// The errors that are meant for the client. Every other one is masked and logged.

/** An argument has a value that is not allowed; `message` names it. */
export function badUserInput(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'BAD_USER_INPUT' } });
}

/** A list has no page of that number. */
export function pageNotFound(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'PAGE_NOT_FOUND' } });
}
