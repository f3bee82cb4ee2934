// Every error body of REST.
import type { ExecutionResult, GraphQLError } from 'graphql';

/** An error that is meant for the client of the REST interface. */
export class RestError extends Error {
  constructor(
    readonly statusCode: number,
    /** The whole body, in the shapes of Django REST Framework. */
    readonly body: Readonly<Record<string, unknown>>,
  ) {
    super(JSON.stringify(body));
  }
}

export const invalidHost = () => new RestError(400, { detail: 'Invalid Host header.' });

export const notFound = () => new RestError(404, { detail: 'Not found.' });

export const invalidPage = () => new RestError(404, { detail: 'Invalid page.' });

export const methodNotAllowed = (method: string) =>
  new RestError(405, { detail: `Method "${method}" not allowed.` });

export const notAcceptable = () =>
  new RestError(406, { detail: 'Could not satisfy the request Accept header.' });

export const unsupportedMediaType = (type: string) =>
  new RestError(415, { detail: `Unsupported media type "${type}" in request.` });

export const unsupportedEncoding = (encoding: string) =>
  new RestError(415, { detail: `Unsupported content encoding "${encoding}" in request.` });

export const parseError = (reason: string) =>
  new RestError(400, { detail: `JSON parse error - ${reason}` });

/** The body is not as long as it said, or does not keep its encoding. */
export const unreadableBody = () =>
  new RestError(400, { detail: 'The request body cannot be read.' });

export const bodyTooLarge = () => new RestError(413, { detail: 'Request body is too large.' });

export const notAnObject = (value: unknown) =>
  new RestError(400, {
    non_field_errors: [
      value === null
        ? 'No data provided'
        : `Invalid data. Expected a dictionary, but got ${pythonTypeOf(value)}.`,
    ],
  });

/** What Django REST Framework calls the type of a JSON value. */
function pythonTypeOf(value: unknown): string {
  if (Array.isArray(value)) return 'list';
  if (typeof value === 'number') return Number.isInteger(value) ? 'int' : 'float';
  return typeof value === 'boolean' ? 'bool' : 'str';
}

/** What is wrong with the fields of a body: all of them, in the order of the fields. */
export const invalidFields = (messages: Readonly<Record<string, readonly string[]>>) =>
  new RestError(400, messages);

export const invalidChoice = (parameter: string, value: string, choices: readonly string[]) =>
  new RestError(400, {
    [parameter]: [
      `Select a valid choice. ${value} is not one of the available choices: ${choices.join(', ')}.`,
    ],
  });

/** What is wrong with a parameter of the query string. */
export const invalidParameter = (parameter: string, message: string) =>
  new RestError(400, { [parameter]: [message] });

/** Parameters of the query string that nothing reads: all of them, in their order. */
export const unknownParameters = (names: readonly string[]) =>
  new RestError(400, Object.fromEntries(names.map((name) => [name, ['Unknown parameter.']])));

export const internalError = () => new RestError(500, { detail: 'Internal server error.' });

/** @throws what the first error of a stored document is to the client of a legacy path */
export function dataOf<Data>({ data, errors }: ExecutionResult): Data {
  const [error] = errors ?? [];
  if (error) throw restErrorFor(error);
  return data as Data;
}

function restErrorFor(error: GraphQLError): Error {
  switch (error.extensions['code']) {
    case 'PAGE_NOT_FOUND':
      return invalidPage();
    case 'NOT_FOUND':
      return notFound();
    case 'FORBIDDEN':
      return new RestError(403, { detail: error.message });
    case 'BAD_USER_INPUT':
      return new RestError(400, { detail: error.message });
    // Masked, and in the log.
    case 'INTERNAL_SERVER_ERROR':
      return internalError();
    default:
      return error;
  }
}
