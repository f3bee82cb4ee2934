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

export const invalidChoice = (parameter: string, value: string, choices: readonly string[]) =>
  new RestError(400, {
    [parameter]: [
      `Select a valid choice. ${value} is not one of the available choices: ${choices.join(', ')}.`,
    ],
  });

export const internalError = () => new RestError(500, { detail: 'Internal server error.' });
