// The headers of the answers of a legacy path: what each means, and which of them an answer has, by
// who gives it. Their values are from where they are set. Those of HTTP's own framing, such as
// Content-Length, are not told, and OpenAPI has another place for Content-Type.
import { exposedHeaders, preflightHeaders, varyByOrigin } from '../http/cors.ts';
import { requestIdHeader, securityHeaders } from '../http/headers.ts';
import { cacheControls } from '../http/representation.ts';
import { servedByHeader } from '../legacy/forwarded-headers.ts';
import { varyOf } from '../rest/adapter.ts';
import { deprecationHeaders, exposeAlso } from '../rest/deprecation.ts';
import { allowOf, type Route } from '../rest/routes.ts';
import type { DocumentOptions } from './document.ts';
import type { JsonSchema } from './json-schema.ts';

/** A header of one kind of answer. */
export interface Header {
  readonly schema: JsonSchema;
  /** Whether each of these answers has it. */
  readonly required: boolean;
  /** As it is sent; undefined where that depends on the request. */
  readonly value?: string | undefined;
}

/** By the name on the wire, whose case does not matter. */
export type Headers = Readonly<Record<string, Header>>;

/** The headers of an answer, by who gives it. */
export interface HeaderSets {
  /** What is no HTTP request, before there is any path. */
  readonly ofServer: Headers;
  /** The preflight of a page of another origin. */
  readonly ofPreflight: Headers;
  /** The gateway, where it does not pass a request on. */
  readonly ofUnpassed: Headers;
  /** The gateway in place of the old service, which does not answer. */
  readonly ofUnanswered: Headers;
  /** The old service. */
  readonly ofLegacy: Headers;
  /** What is below `/api/`, but none of the paths. */
  readonly ofApi: Headers;
  /** The path without its last slash. */
  readonly ofRedirect: Headers;
  /** The path. */
  readonly ofPath: Headers;
  /** The path, when it is asked for what is there. */
  readonly ofRead: Headers;
  /** The same with a body. */
  readonly ofBody: Headers;
}

const meanings: Readonly<Record<string, string>> = {
  'access-control-allow-headers': 'The headers that the page has asked for.',
  'access-control-allow-methods': 'What a page of another origin may send.',
  'access-control-allow-origin':
    'The `Origin` of the request, when it is one of those whose pages may read answers.',
  'access-control-expose-headers': 'Which headers a page of another origin may read.',
  'access-control-max-age': 'Seconds for which a browser need not ask again.',
  allow: 'The methods of the path.',
  'cache-control': 'Who may keep the answer: nobody without asking whether it has changed.',
  'content-encoding':
    'How the body is compressed, for whoever takes that (`Accept-Encoding`): not at all without it.',
  'cross-origin-opener-policy': 'Browsers give it no window in common with pages of other origins.',
  deprecation: 'Since when the path is deprecated (RFC 9745).',
  etag: 'Names these bytes, for `If-None-Match`.',
  link: 'What comes instead of the path.',
  location: 'The path with its last slash, and the same query.',
  'referrer-policy': 'Browsers tell its address to no other origin.',
  'retry-after': 'Seconds to wait before the request is sent again.',
  sunset: 'When the path ends (RFC 8594).',
  vary: 'Which headers of the request the answer depends on.',
  'www-authenticate': 'How to sign in, and what is wrong with a token (RFC 6750).',
  'x-content-type-options': 'Browsers do not guess its type.',
  'x-frame-options': 'Browsers show it in no frame.',
  'x-request-id': 'Names the request in the log: as its sender did in this header, or else anew.',
  'x-served-by': 'Who has answered: this gateway, or the old service.',
};

const text: Header = { required: true, schema: { type: 'string' } };

export function findHeaders(route: Route, config: DocumentOptions['config']): HeaderSets {
  const isOpen = config.corsOrigins.length > 0;
  const deprecation = deprecationHeaders(config) ?? {};
  const vary = (value?: string): Headers => {
    if (isOpen) return fixed({ Vary: varyByOrigin(value) });
    return value === undefined ? {} : fixed({ Vary: value });
  };
  const servedBy = (side: string): Headers =>
    config.legacyMode.kind === 'off' ? {} : { [servedByHeader]: oneOf(side) };
  const ofGateway = { [requestIdHeader]: text, ...fixed(securityHeaders) };
  const ofServer = { ...ofGateway, ...servedBy('gateway') };
  const origin = { 'Access-Control-Allow-Origin': { ...text, required: false } };
  const exposed = exposeAlso(exposedHeaders, deprecation);
  const readable = isOpen
    ? { ...origin, ...optional(fixed({ 'Access-Control-Expose-Headers': exposed })) }
    : {};
  const ofPaths = { ...readable, ...fixed(deprecation), ...vary() };
  const ofApi = { ...ofServer, ...ofPaths };
  const ofPath = {
    ...ofApi,
    ...fixed({ Allow: allowOf(route) }),
    ...vary(varyOf(config.compression)),
  };
  const ofRead = {
    ...ofPath,
    ETag: text,
    'Cache-Control': oneOf(...Object.values(cacheControls)),
  };
  return {
    ofServer,
    ofPreflight: {
      ...ofServer,
      'Access-Control-Allow-Origin': text,
      'Access-Control-Allow-Headers': { ...text, required: false },
      ...fixed(preflightHeaders),
      ...vary(preflightHeaders.Vary),
    },
    ofUnpassed: { ...ofServer, ...ofPaths },
    ofUnanswered: { ...ofGateway, ...servedBy('legacy'), ...ofPaths },
    ofLegacy: servedBy('legacy'),
    ofApi,
    // Where it leads is an example only if that is the same for all.
    ofRedirect: {
      ...ofApi,
      Location: { ...text, value: /:/.test(route.path) ? undefined : route.path },
    },
    ofPath,
    ofRead,
    ofBody: {
      ...ofRead,
      ...(config.compression === 'all'
        ? optional({ 'Content-Encoding': oneOf('br', 'gzip') })
        : {}),
    },
  };
}

/** Headers that are the same in each answer that has them. */
export function fixed(values: Readonly<Record<string, string>>): Headers {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      { required: true, schema: { type: isNumber(value) ? 'integer' : 'string' }, value },
    ]),
  );
}

function oneOf(...values: string[]): Header {
  return { required: true, schema: { type: 'string', enum: values } };
}

function optional(headers: Headers): Headers {
  return Object.fromEntries(
    Object.entries(headers).map(([name, header]) => [name, { ...header, required: false }]),
  );
}

/**
 * What the document says of the headers of a status.
 * @param answers the headers of each of its answers, by names for these
 */
export function describeHeaders(answers: Readonly<Record<string, Headers>>): JsonSchema {
  const names = new Set(Object.values(answers).flatMap((headers) => Object.keys(headers)));
  return Object.fromEntries([...names].map((name) => [name, describeHeader(name, answers)]));
}

function describeHeader(name: string, answers: Readonly<Record<string, Headers>>): JsonSchema {
  const found = Object.entries(answers).map(
    ([answer, headers]) => [answer, headers[name]] as const,
  );
  const given = found.flatMap(([answer, header]) => (header ? [[answer, header] as const] : []));
  const values = given.flatMap(([answer, { value }]) =>
    value === undefined ? [] : [[answer, isNumber(value) ? Number(value) : value] as const],
  );
  const description = meanings[name.toLowerCase()];
  if (description === undefined) throw new Error(`Nothing is said of the header ${name}.`);
  return {
    description,
    ...(found.every(([, header]) => header?.required) ? { required: true } : {}),
    schema: uniteSchemas(given.map(([, { schema }]) => schema)),
    ...describeValues(values),
  };
}

function uniteSchemas(schemas: readonly JsonSchema[]): JsonSchema {
  const choices = schemas.flatMap(({ enum: values }) => (Array.isArray(values) ? values : []));
  return { ...schemas[0], ...(choices.length > 0 ? { enum: [...new Set(choices)] } : {}) };
}

function describeValues(values: readonly (readonly [string, string | number])[]): JsonSchema {
  const [first] = values;
  if (!first) return {};
  if (values.every(([, value]) => value === first[1])) return { example: first[1] };
  return { examples: Object.fromEntries(values.map(([answer, value]) => [answer, { value }])) };
}

/** A header of whole numbers is one for whoever reads it by its schema. */
function isNumber(value: string): boolean {
  return /^\d+$/.test(value);
}
