/** An intended error. REST and GraphQL format it, with the same status and headers. */
export class HttpError extends Error {
  override readonly name = 'HttpError';

  constructor(
    readonly status: number,
    /** `extensions.code` in GraphQL. */
    readonly code: string,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

const unauthenticated = (message: string, challenge: string) =>
  new HttpError(401, 'UNAUTHENTICATED', message, { 'WWW-Authenticate': challenge });

export const notAuthenticated = () =>
  unauthenticated('Authentication credentials were not provided.', 'Bearer');

export const invalidToken = () => unauthenticated('Invalid token.', 'Bearer error="invalid_token"');

export const notHttp = () => new HttpError(400, 'BAD_REQUEST', 'The request is not valid HTTP.');

export const invalidHost = () => new HttpError(400, 'INVALID_HOST', 'Invalid Host header.');

export const arrivedTooSlowly = () =>
  new HttpError(408, 'REQUEST_TIMEOUT', 'The request took too long to arrive.');

export const headTooLarge = () =>
  new HttpError(431, 'HEAD_TOO_LARGE', 'The request target or a header is too large.');

export const invalidKey = () =>
  new HttpError(
    400,
    'BAD_USER_INPUT',
    'Idempotency-Key must be 1 to 255 printable ASCII characters.',
  );

export const keyReused = () =>
  new HttpError(
    422,
    'IDEMPOTENCY_KEY_REUSED',
    'This Idempotency-Key was used for another request: use a new key for a new request.',
  );

/** An intended error of one field of a document: the others are returned. Its cause is logged, and not told. */
export class FieldError extends Error {
  constructor(
    readonly code: 'FORBIDDEN' | 'NOT_FOUND',
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

export const noSuchOutfit = (id: number) =>
  new FieldError('NOT_FOUND', `There is no outfit with the id ${id}.`);

export const notTheOwner = (id: number) =>
  new FieldError('FORBIDDEN', `Outfit ${id} belongs to another user.`);

/** @param seconds whole seconds until the next request is admitted */
export const throttled = (seconds: number, quota: Readonly<Record<string, string>>) =>
  new HttpError(
    429,
    'TOO_MANY_REQUESTS',
    `Request was throttled. Expected available in ${seconds} second${seconds === 1 ? '' : 's'}.`,
    { 'Retry-After': String(seconds), ...quota },
  );

const notNow = (code: string, message: string, seconds = 1, options?: ErrorOptions) =>
  new HttpError(503, code, message, { 'Retry-After': String(seconds) }, options);

/** The database, or another dependency, is unavailable; the cause goes to the log only. */
export const unavailable = (options?: ErrorOptions) => {
  const message = 'Service temporarily unavailable, try again later.';
  return notNow('SERVICE_UNAVAILABLE', message, 1, options);
};

export const overloaded = () =>
  notNow('SERVICE_UNAVAILABLE', 'The service is busy, try again later.');

export const timedOut = () => notNow('TIMEOUT', 'The request took too long and was stopped.');

/** @param seconds that an expensive statement may take (EXPENSIVE_QUERY_TIMEOUT) */
export const tooExpensive = (seconds: number) =>
  notNow(
    'TIMEOUT',
    `A list was stopped after ${seconds} s: no index serves its filter, or too many outfits match it. Narrow the filter.`,
  );

export const tooManyStreams = () =>
  notNow(
    'TOO_MANY_STREAMS',
    'All streams are in use, or other clients need this one. Try again later.',
    5,
  );

/** WRITES=off, such as during the last import. */
export const writesOff = () =>
  notNow('WRITES_OFF', 'Writing is switched off for now, try again later.', 60);

/** A browser adds cookies to what a page of any origin sends. */
export const crossOriginWrite = () =>
  new HttpError(
    403,
    'FORBIDDEN',
    'CSRF Failed: a cookie authorises a write only from a page of this origin, or of one that CORS_ORIGINS names.',
  );

/** Until the switch, the old service owns the data. */
export const legacyOwnsWrites = () =>
  new HttpError(
    403,
    'LEGACY_OWNS_WRITES',
    'The old service still takes all writes: send them to its paths under /api/.',
  );

/** An error for the operator: its message is a complete sentence, shown without a stack. */
export class OperatorError extends Error {
  override readonly name: string = 'OperatorError';
}

/** Node.js tries all addresses of a host, and throws an AggregateError without a message. */
export function messageOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(messageOf).join(', ');
  return error instanceof Error ? error.message || error.name : String(error);
}

/** Shortens text for a message: one line, a limited number of characters. */
export function cut(text: string, most = 80): string {
  const characters = [...text.slice(0, 3 * most).replace(/[\p{Cc}\u2028\u2029]/gu, ' ')];
  if (characters.length <= most) return characters.join('');
  return `${characters.slice(0, most - 1).join('')}…`;
}
