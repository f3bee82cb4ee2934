// What a request to a legacy path can be refused with: the errors themselves, from where they are made.
import { STATUS_CODES } from 'node:http';
import {
  HttpError,
  invalidKey,
  invalidToken,
  keyReused,
  notAuthenticated,
  overloaded,
  throttled,
  timedOut,
  unavailable,
  writesOff,
} from '../errors.ts';
import { KeyReusedError } from '../outfits/idempotency.ts';
import { mediaTypes, readBody } from '../rest/body.ts';
import {
  bodyTooLarge,
  internalError,
  invalidFields,
  invalidHost,
  invalidPage,
  methodNotAllowed,
  notAcceptable,
  notAnObject,
  notFound,
  RestError,
  unknownParameters,
  unreadableBody,
  unsupportedEncoding,
  unsupportedMediaType,
} from '../rest/errors.ts';
import { coerceField, type WritableField } from '../rest/fields.ts';
import type { Route } from '../rest/routes.ts';
import type { JsonSchema, NamedSchemas } from './json-schema.ts';

/** Errors by names for them. */
export type Errors = Readonly<Record<string, HttpError | RestError>>;

export interface ErrorConfig {
  readonly rateLimit: unknown;
  readonly unknownParameters: string;
  readonly writes: boolean;
}

/** What any request to the path can be answered with, beside what it asks for. */
export function findCommonErrors({ rateLimit }: Pick<ErrorConfig, 'rateLimit'>): Errors {
  return {
    invalidHost: invalidHost(),
    invalidToken: invalidToken(),
    notAcceptable: notAcceptable(),
    ...(rateLimit ? { throttled: throttled(60) } : {}),
    internalError: internalError(),
    unavailable: unavailable(),
  };
}

/** @param ofParameters what a parameter is answered with that cannot be read */
export function findReadErrors(route: Route, config: ErrorConfig, ofParameters: Errors): Errors {
  return {
    ...findCommonErrors(config),
    ...ofParameters,
    ...(config.unknownParameters === 'refuse'
      ? { unknownParameter: unknownParameters(['nope']) }
      : {}),
    ...(route.list ? { invalidPage: invalidPage() } : { notFound: notFound() }),
    overloaded: overloaded(),
    timedOut: timedOut(),
  };
}

export function findCreateErrors(
  fields: readonly WritableField[],
  config: Pick<ErrorConfig, 'rateLimit' | 'writes'>,
): Errors {
  return {
    ...findCommonErrors(config),
    invalidFields: findFieldErrors(fields),
    notAnObject: notAnObject([]),
    invalidJson: findParseError(),
    unreadableBody: unreadableBody(),
    invalidKey: invalidKey(),
    notAuthenticated: notAuthenticated(),
    bodyTooLarge: bodyTooLarge(),
    unsupportedMediaType: unsupportedMediaType('text/plain'),
    unsupportedEncoding: unsupportedEncoding('gzip'),
    keyReused: keyReused(new KeyReusedError().message),
    overloaded: overloaded(),
    timedOut: timedOut(),
    ...(config.writes ? {} : { writesOff: writesOff() }),
  };
}

/** What a method is answered with that the path does not know. */
export function findMethodErrors(): Errors {
  return { methodNotAllowed: methodNotAllowed('DELETE') };
}

/** A body in which every field has a value that none can have. */
function findFieldErrors(fields: readonly WritableField[]): RestError {
  const isForm = false;
  return invalidFields(
    Object.fromEntries(
      fields.flatMap((field) => {
        const { message } = coerceField(field, [], isForm);
        return message === undefined ? [] : [[field.name, [message]]];
      }),
    ),
  );
}

function findParseError(): RestError {
  try {
    readBody({ 'content-type': mediaTypes[0] }, Buffer.from('{'));
  } catch (error) {
    if (error instanceof RestError) return error;
  }
  throw new Error('A body that is no JSON was read.');
}

type Responses = Readonly<Record<string, JsonSchema>>;

/**
 * The answers that errors become, by status.
 * @param headers of all answers of the path
 */
export function describeErrors(
  errors: Errors,
  headers: Readonly<Record<string, JsonSchema>>,
  named: NamedSchemas,
): Responses {
  const byStatus = new Map<number, [name: string, error: HttpError | RestError][]>();
  for (const [name, error] of Object.entries(errors)) {
    const status = statusOf(error);
    byStatus.set(status, [...(byStatus.get(status) ?? []), [name, error]]);
  }
  return Object.fromEntries(
    [...byStatus].map(([status, ofStatus]) => {
      const bodies = ofStatus.map(([name, error]) => [name, { value: bodyOf(error) }] as const);
      const content = {
        schema: schemaOfErrors(ofStatus, named),
        examples: Object.fromEntries(bodies),
      };
      const own = Object.assign({}, ...ofStatus.map(([, error]) => describeHeaders(error)));
      return [
        status,
        {
          description: STATUS_CODES[status],
          headers: { ...headers, ...own },
          content: { 'application/json': content },
        },
      ];
    }),
  );
}

function statusOf(error: HttpError | RestError): number {
  return error instanceof HttpError ? error.status : error.statusCode;
}

function bodyOf(error: HttpError | RestError): Readonly<Record<string, unknown>> {
  return error instanceof HttpError ? { detail: error.message } : error.body;
}

function describeHeaders(error: HttpError | RestError): Record<string, JsonSchema> {
  if (!(error instanceof HttpError)) return {};
  return Object.fromEntries(
    Object.entries(error.headers).map(([name, example]) => [
      name,
      { schema: { type: /^\d+$/.test(example) ? 'integer' : 'string' }, example: read(example) },
    ]),
  );
}

/** A header of whole numbers is one for whoever reads it by its schema. */
function read(header: string): string | number {
  return /^\d+$/.test(header) ? Number(header) : header;
}

function schemaOfErrors(
  errors: readonly (readonly [string, HttpError | RestError])[],
  named: NamedSchemas,
): JsonSchema {
  const detail = named.refer('Error', {
    type: 'object',
    description: 'What is wrong with the request as a whole.',
    properties: { detail: { type: 'string' } },
    required: ['detail'],
  });
  const fields = named.refer('FieldErrors', {
    type: 'object',
    description: 'What is wrong, by the names of fields or parameters.',
    additionalProperties: { type: 'array', items: { type: 'string' } },
  });
  const isDetail = errors.map(([, error]) => typeof bodyOf(error)['detail'] === 'string');
  if (isDetail.every(Boolean)) return detail;
  return isDetail.some(Boolean) ? { anyOf: [detail, fields] } : fields;
}
