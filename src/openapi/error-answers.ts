// What a request to a legacy path can be refused with, as this gateway is set up: the errors themselves,
// from where they are made, and by whom.
import { canIdentify, type IdentityConfig } from '../admission/viewer.ts';
import type { Config } from '../config.ts';
import {
  arrivedTooSlowly,
  type HttpError,
  headTooLarge,
  invalidKey,
  invalidToken,
  keyReused,
  notAuthenticated,
  notHttp,
  overloaded,
  throttled,
  timedOut,
  unavailable,
  writesOff,
} from '../errors.ts';
import { shareOf } from '../legacy/canary.ts';
import { legacyLoop, legacyTimedOut, legacyUnreachable } from '../legacy/errors.ts';
import { KeyReusedError } from '../outfits/idempotency.ts';
import { coerceField, mediaTypes, readBody, type WritableField } from '../rest/create.ts';
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
import type { Route } from '../rest/routes.ts';
import type { HeaderSets, Headers } from './headers.ts';

/** Errors by names for them. */
export type Errors = Readonly<Record<string, HttpError | RestError>>;

/** Errors that come from one place, and what headers their answers have. */
export interface Refusals {
  readonly headers: Headers;
  readonly errors: Errors;
}

export type ErrorConfig = IdentityConfig &
  Pick<Config, 'legacyMode' | 'rateLimit' | 'unknownParameters' | 'writes'>;

/** What a request can be answered with before it is known what it asks for, and by other services. */
export function findOuterRefusals(
  method: string,
  config: ErrorConfig,
  headers: HeaderSets,
): Refusals[] {
  const { kind } = config.legacyMode;
  const errors = {
    invalidHttp: notHttp(),
    arrivedTooSlowly: arrivedTooSlowly(),
    headTooLarge: headTooLarge(),
  };
  const ofServer = { headers: headers.ofServer, errors };
  if (kind === 'off') return [ofServer];
  const loop = { headers: headers.ofUnpassed, errors: { loop: legacyLoop() } };
  if (shareOf(config.legacyMode, method) === 100) return [ofServer, loop];
  const isRead = method === 'GET' || method === 'HEAD' || method === 'OPTIONS';
  return [
    ofServer,
    loop,
    ...(config.writes || isRead
      ? []
      : [{ headers: headers.ofUnpassed, errors: { writesOff: writesOff() } }]),
    // WRITES=off refuses a POST before the old service is asked.
    ...(config.writes || method !== 'POST'
      ? [
          {
            headers: headers.ofUnanswered,
            errors: {
              legacyUnreachable: legacyUnreachable(undefined),
              legacyBusy: overloaded(),
              legacyTimedOut: legacyTimedOut(),
            },
          },
        ]
      : []),
  ];
}

/** What any path can answer that is asked with a host that no link may repeat. */
export const hostErrors: Errors = { invalidHost: invalidHost() };

/** What a path answers whoever is not let in. */
export function findAdmissionErrors({ rateLimit, authJwksUrl }: ErrorConfig): Errors {
  return {
    ...hostErrors,
    notAcceptable: notAcceptable(),
    invalidToken: invalidToken(),
    ...(authJwksUrl === undefined && !rateLimit ? {} : { unavailable: unavailable() }),
    // It is counted in the database.
    ...(rateLimit
      ? {
          throttled: throttled(rateLimit.seconds),
          timedOut: timedOut(),
          internalError: internalError(),
        }
      : {}),
  };
}

/** What a path can answer that asks the database. */
const workErrors: Errors = {
  unavailable: unavailable(),
  overloaded: overloaded(),
  timedOut: timedOut(),
  internalError: internalError(),
};

/** @param ofParameters what a parameter is answered with that cannot be read */
export function findReadErrors(route: Route, config: ErrorConfig, ofParameters: Errors): Errors {
  return {
    ...findAdmissionErrors(config),
    ...ofParameters,
    ...(config.unknownParameters === 'refuse'
      ? { unknownParameter: unknownParameters(['nope']) }
      : {}),
    ...(route.list ? { invalidPage: invalidPage() } : { notFound: notFound() }),
    ...workErrors,
  };
}

export function findCreateErrors(fields: readonly WritableField[], config: ErrorConfig): Errors {
  // In the order in which they are found: what stops every request is the last.
  if (!config.writes) {
    return { ...hostErrors, notAcceptable: notAcceptable(), writesOff: writesOff() };
  }
  if (!canIdentify(config)) {
    return {
      ...hostErrors,
      notAcceptable: notAcceptable(),
      invalidToken: invalidToken(),
      notAuthenticated: notAuthenticated(),
    };
  }
  return {
    ...findAdmissionErrors(config),
    notAuthenticated: notAuthenticated(),
    invalidFields: findFieldErrors(fields),
    notAnObject: notAnObject([]),
    invalidJson: findParseError(),
    unreadableBody: unreadableBody(),
    invalidKey: invalidKey(),
    bodyTooLarge: bodyTooLarge(),
    unsupportedMediaType: unsupportedMediaType('text/plain'),
    unsupportedEncoding: unsupportedEncoding('gzip'),
    keyReused: keyReused(new KeyReusedError().message),
    ...workErrors,
  };
}

/** What a method is answered with that the path does not know. */
export function findMethodErrors(config: ErrorConfig): Errors {
  return { ...findAdmissionErrors(config), methodNotAllowed: methodNotAllowed('DELETE') };
}

/** What a path with a parameter is answered with that is none: too long, or not to be decoded. */
export function findPathRefusals({ path }: Route, { ofApi }: HeaderSets): Refusals[] {
  return path.includes(':') ? [{ headers: ofApi, errors: { noSuchPath: notFound() } }] : [];
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
