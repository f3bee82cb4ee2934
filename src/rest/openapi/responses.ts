// Responses in the OpenAPI document: statuses and headers, written once for all operations and settings.
import { mediaTypes } from '../create.ts';
import type { JsonSchema } from './schemas.ts';

/** Of successes. Those of security and CORS are for browsers, and not described. */
const headers = {
  'Cache-Control': 'Which caches may store it; each use is revalidated.',
  Deprecation: 'When the path is or was deprecated (RFC 9745).',
  ETag: 'Entity tag of these bytes, for `If-None-Match`.',
  Link: 'Other pages (RFC 8288), or the successor of a deprecated path.',
  RateLimit: 'Requests left, and seconds until there are more.',
  'RateLimit-Policy': 'The rate limit: requests in a window of seconds.',
  Sunset: 'When the path ends (RFC 8594).',
  'X-Request-Id': 'Id in the log of the gateway.',
};

const errorHeaders = {
  'Retry-After': 'Of 429 and 503: seconds to wait.',
  'WWW-Authenticate': 'Of 401: the scheme, and what is wrong (RFC 6750).',
};

const errors: Readonly<Record<string, string>> = {
  400: 'A parameter, a header, the body or the request as a whole cannot be read.',
  401: 'The token is invalid, or missing where one is needed.',
  403: 'Another service takes the writes, or the cookie came from a page of another origin.',
  404: 'The page or record does not exist.',
  406: '`Accept` excludes JSON.',
  408: 'The request did not arrive in time.',
  413: 'The body is too large.',
  415: 'The type or encoding of the body is not supported.',
  422: 'The `Idempotency-Key` belongs to another request.',
  429: 'The rate limit is exceeded.',
  431: 'The request target or a header is too large.',
  500: 'A fault of the gateway.',
  503: 'The gateway or its database is busy or away, or writing is switched off.',
};

/** In Markdown, for the description of the document. */
export const errorTable = [
  '| Status | When |\n| --- | --- |',
  ...Object.entries(errors).map(([status, when]) => `| ${status} | ${when} |`),
].join('\n');

const describeHeaders = (texts: Readonly<Record<string, string>>) =>
  Object.fromEntries(
    Object.entries(texts).map(([name, description]) => [
      name,
      { description, schema: { type: name === 'Retry-After' ? 'integer' : 'string' } },
    ]),
  );

const refer = (section: string, name: string) => ({ $ref: `#/components/${section}/${name}` });

const error = (description: string, schema: JsonSchema) => ({
  description: `${description} The description of this document lists the statuses.`,
  headers: describeHeaders(errorHeaders),
  content: { [mediaTypes[0]]: { schema } },
});

/** Components that operations refer to. */
export const components = {
  headers: describeHeaders(headers),
  responses: {
    Error: error('The request failed.', refer('schemas', 'Error')),
    Invalid: error('The request cannot be read.', {
      anyOf: [refer('schemas', 'Error'), refer('schemas', 'FieldErrors')],
    }),
    NotModified: { description: 'It has not changed.' },
  },
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

/** Responses of an operation. @param own names of headers of the route */
export function describeResponses(
  status: 200 | 201,
  schema: JsonSchema,
  own: readonly string[] = [],
): JsonSchema {
  const given = Object.keys(headers).map((name) => [name, refer('headers', name)]);
  const added = own.map((name) => [name, { schema: { type: 'string' } }]);
  return {
    [status]: {
      description: status === 200 ? 'OK' : 'Created',
      headers: Object.fromEntries([...added, ...given]),
      content: { [mediaTypes[0]]: { schema } },
    },
    ...(status === 200 ? { 304: refer('responses', 'NotModified') } : {}),
    400: refer('responses', 'Invalid'),
    default: refer('responses', 'Error'),
  };
}
