// Responses in the OpenAPI document: a table of headers and a table of error statuses, for all settings.
import { mediaTypes } from '../create.ts';
import type { JsonSchema } from './schemas.ts';

interface Header {
  readonly description: string;
  readonly type?: 'integer';
  /** Statuses that always have the header; undefined: any status may have it. */
  readonly on?: 'all' | readonly number[];
}

/** Without the headers of message framing, such as `Content-Length`. */
const headers: Readonly<Record<string, Header>> = {
  'Access-Control-Allow-Origin': { description: 'The origin whose pages may read the answer.' },
  'Access-Control-Expose-Headers': { description: 'Headers that these pages may read.' },
  Allow: { description: 'The methods of the path.' },
  'Cache-Control': {
    description: 'Which caches may store the answer; each use is revalidated.',
    on: [200, 304],
  },
  'Content-Encoding': { description: 'How the body is compressed.' },
  'Cross-Origin-Opener-Policy': { description: 'Isolates it from other origins.', on: 'all' },
  Deprecation: { description: 'When the path is or was deprecated (RFC 9745).' },
  ETag: { description: 'Entity tag of these bytes, for `If-None-Match`.', on: [200, 304] },
  Link: { description: 'The successor of a deprecated path.' },
  RateLimit: { description: 'Requests left, and seconds until there are more.' },
  'RateLimit-Policy': { description: 'The rate limit: requests in a window of seconds.' },
  'Referrer-Policy': { description: 'Keeps its address from other origins.', on: 'all' },
  'Retry-After': { description: 'Seconds to wait.', type: 'integer', on: [429, 503] },
  Sunset: { description: 'When the path ends (RFC 8594).' },
  Vary: { description: 'Headers of the request that the answer depends on.' },
  'WWW-Authenticate': { description: 'The scheme, and what is wrong (RFC 6750).', on: [401] },
  'X-Content-Type-Options': { description: 'Forbids to sniff its type.', on: 'all' },
  'X-Frame-Options': { description: 'Forbids to embed it.', on: 'all' },
  'X-Request-Id': { description: 'Id in the log: that of the request, or a new one.', on: 'all' },
};

type Method = 'get' | 'post';

/** An error without a method belongs to both. */
const errors: Readonly<Record<string, { readonly when: string; readonly method?: Method }>> = {
  400: { when: 'A parameter, a header, the body or the request as a whole cannot be read.' },
  401: { when: 'The token is invalid, or missing where one is needed.' },
  404: { when: 'There is no such page or record.', method: 'get' },
  406: { when: '`Accept` excludes JSON.' },
  408: { when: 'The request did not arrive in time.' },
  413: { when: 'The body is too large.', method: 'post' },
  415: { when: 'The type or encoding of the body is not supported.', method: 'post' },
  422: { when: 'The `Idempotency-Key` belongs to another request.', method: 'post' },
  429: { when: 'The rate limit is exceeded.' },
  431: { when: 'The request target or a header is too large.' },
  500: { when: 'A fault of the gateway.' },
  503: { when: 'The gateway or its database is busy or away, or writing is switched off.' },
  default: { when: 'Any other error.' },
};

export const errorSchemas: Readonly<Record<string, JsonSchema>> = {
  Error: {
    type: 'object',
    description: 'Error message of the request as a whole.',
    properties: { detail: { type: 'string' } },
    required: ['detail'],
    examples: [{ detail: 'Not found.' }],
  },
  FieldErrors: {
    type: 'object',
    description: 'Error messages by field or parameter.',
    additionalProperties: { type: 'array', items: { type: 'string' } },
    examples: [{ image_key: ['Enter a valid URL.'] }],
  },
};

export function describeHeaders(): JsonSchema {
  const described = Object.entries(headers).map(([name, { description, type = 'string', on }]) => [
    name,
    { description, required: on !== undefined, schema: { type } },
  ]);
  return Object.fromEntries(described);
}

/** @param body undefined: no body */
export function describeAnswer(
  status: number | string,
  description: string,
  body?: JsonSchema,
): JsonSchema {
  const names = Object.entries(headers).flatMap(([name, { on = 'all' }]) =>
    on === 'all' || on.includes(Number(status)) ? [name] : [],
  );
  const references = names.map((name) => [name, { $ref: `#/components/headers/${name}` }]);
  return {
    description,
    headers: Object.fromEntries(references),
    ...(body ? { content: { [mediaTypes[0]]: body } } : {}),
  };
}

export function describeErrors(method: Method): JsonSchema {
  const detail = { $ref: '#/components/schemas/Error' };
  const fields = { $ref: '#/components/schemas/FieldErrors' };
  const answers = Object.entries(errors)
    .filter(([, error]) => (error.method ?? method) === method)
    .map(([status, { when }]) => {
      const schema = status === '400' ? { anyOf: [detail, fields] } : detail;
      return [status, describeAnswer(status, when, { schema })];
    });
  return Object.fromEntries(answers);
}
