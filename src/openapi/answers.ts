// The answers of a path by their statuses, whoever gives them: headers, bodies, examples.
import { STATUS_CODES } from 'node:http';
import { HttpError } from '../errors.ts';
import { shareOf } from '../legacy/canary.ts';
import { mediaTypes } from '../rest/create.ts';
import type { RestError } from '../rest/errors.ts';
import type { Route } from '../rest/routes.ts';
import type { DocumentOptions } from './document.ts';
import {
  type Errors,
  findOuterRefusals,
  findPathRefusals,
  type Refusals,
} from './error-answers.ts';
import { describeHeaders, fixed, type HeaderSets, type Headers } from './headers.ts';
import type { JsonSchema, NamedHeaders, NamedSchemas } from './json-schema.ts';
import type { Samples } from './samples.ts';

/** What the operations of a path are made from. */
export interface PathContext extends DocumentOptions {
  readonly route: Route;
  readonly named: Named;
  readonly samples: Samples;
  readonly headers: HeaderSets;
}

export type Responses = Readonly<Record<string, JsonSchema>>;

export interface OwnAnswers {
  /** What this gateway answers when nothing is wrong. */
  readonly own: Responses;
  readonly errors: Errors;
  readonly ofErrors: Headers;
}

/** Whatever a method of a path can be answered with: by this gateway, the old service, or both. */
export function answersOf(
  { route, config, headers, named }: PathContext,
  method: string,
  { own, errors, ofErrors }: OwnAnswers,
): Responses {
  const outer = findOuterRefusals(method, config, headers);
  const share = shareOf(config.legacyMode, method);
  const ofGateway = [{ headers: ofErrors, errors }, ...findPathRefusals(route, headers)];
  const isPassed = share < 100 && (config.writes || method !== 'POST');
  return {
    ...(share > 0 ? own : {}),
    ...describeErrors([...(share > 0 ? ofGateway : []), ...outer], named),
    ...(isPassed
      ? {
          default: {
            description: 'Whatever the old service answers, as it is.',
            headers: nameHeaders({ legacy: headers.ofLegacy }, named),
          },
        }
      : {}),
  };
}

/** How a browser asks for a page of another origin, before the request itself. */
export function describePreflight({ config, headers, named }: PathContext): Responses {
  const isOurs = shareOf(config.legacyMode, 'OPTIONS') > 0;
  if (config.corsOrigins.length === 0 || !isOurs) return {};
  return { 204: describeAnswer(204, { preflight: headers.ofPreflight }, named) };
}

/** The parts that answers share. */
export interface Named {
  readonly schemas: NamedSchemas;
  readonly headers: NamedHeaders;
}

/** An answer. The parts that it shares with others are referred to. */
export function describeAnswer(
  status: number,
  headers: Readonly<Record<string, Headers>>,
  named: Named,
  content?: object,
): JsonSchema {
  return {
    description: STATUS_CODES[status],
    headers: nameHeaders(headers, named),
    ...(content ? { content: { [mediaTypes[0]]: content } } : {}),
  };
}

export function nameHeaders(
  headers: Readonly<Record<string, Headers>>,
  named: Named,
): Readonly<Record<string, JsonSchema>> {
  return Object.fromEntries(
    Object.entries(describeHeaders(headers)).map(([name, header]) => [
      name,
      named.headers.refer(name, header as JsonSchema),
    ]),
  );
}

interface NamedRefusal {
  readonly name: string;
  readonly error: HttpError | RestError;
  readonly headers: Headers;
}

/** The answers that errors become, by status. */
export function describeErrors(refusals: readonly Refusals[], named: Named): Responses {
  const byStatus = new Map<number, NamedRefusal[]>();
  for (const { errors, headers: common } of refusals) {
    for (const [name, error] of Object.entries(errors)) {
      const status = statusOf(error);
      const own = error instanceof HttpError ? fixed(error.headers) : {};
      const refusal = { name, error, headers: { ...common, ...own } };
      byStatus.set(status, [...(byStatus.get(status) ?? []), refusal]);
    }
  }
  return Object.fromEntries(
    [...byStatus].map(([status, ofStatus]) => {
      const headers = Object.fromEntries(ofStatus.map(({ name, headers }) => [name, headers]));
      const examples = ofStatus.map(({ name, error }) => [name, { value: bodyOf(error) }]);
      const content = {
        schema: schemaOfErrors(ofStatus, named.schemas),
        examples: Object.fromEntries(examples),
      };
      return [status, describeAnswer(status, headers, named, content)];
    }),
  );
}

function statusOf(error: HttpError | RestError): number {
  return error instanceof HttpError ? error.status : error.statusCode;
}

function bodyOf(error: HttpError | RestError): Readonly<Record<string, unknown>> {
  return error instanceof HttpError ? { detail: error.message } : error.body;
}

function schemaOfErrors(refusals: readonly NamedRefusal[], named: NamedSchemas): JsonSchema {
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
  const isDetail = refusals.map(({ error }) => typeof bodyOf(error)['detail'] === 'string');
  if (isDetail.every(Boolean)) return detail;
  return isDetail.some(Boolean) ? { anyOf: [detail, fields] } : fields;
}
