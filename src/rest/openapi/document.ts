// Generates the OpenAPI document from the table of routes, the stored documents and the GraphQL schema.
import {
  type DocumentNode,
  type GraphQLInputType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  getOperationAST,
  isEnumType,
  isListType,
  isNonNullType,
  print,
  typeFromAST,
  valueFromAST,
} from 'graphql';
import type { Config } from '../../config/config.ts';
import { version } from '../../config/package.ts';
import { invalidKey } from '../../errors.ts';
import type { DeprecationConfig } from '../../http/headers.ts';
import { mediaTypes } from '../create.ts';
import { findInputs } from '../describe.ts';
import type { Envelope } from '../documents.ts';
import { allowOf, type Create, type Route } from '../routes.ts';
import { fillPath, maxPage, rangeOf } from '../variables.ts';
import { components, describeResponses, errorSchemas, errorTable } from './responses.ts';
import { describedBy, type JsonSchema, Schemas } from './schemas.ts';

export interface DocumentOptions {
  readonly schema: GraphQLSchema;
  readonly routes: readonly Route[];
  readonly config: DeprecationConfig &
    Pick<Config, 'authCookies' | 'authUserClaim' | 'authWebhookUrl' | 'likers' | 'privateOutfits'>;
}

/** @see https://spec.openapis.org/oas/v3.1.1#parameter-object */
export interface Parameter {
  readonly name: string;
  readonly in?: string;
  readonly description?: string;
  readonly required?: boolean;
  readonly schema: JsonSchema;
}

interface Parts extends DocumentOptions {
  readonly schemas: Schemas;
  /** The credentials that are accepted, as alternatives. */
  readonly security: readonly JsonSchema[];
}

export function createDocument(options: DocumentOptions): JsonSchema {
  const { config, routes, schema } = options;
  const schemas = new Schemas(schema, errorSchemas);
  const securitySchemes = describeSecurity(config);
  const security = Object.keys(securitySchemes).map((name) => ({ [name]: [] }));
  const parts = { ...options, schemas, security };
  const paths = routes.map((route) => {
    const get = describeRead(parts, route);
    const post = route.create && describeCreate(parts, route, route.create);
    return [route.path.replace(/:(\w+)/g, '{$1}'), post ? { get, post } : { get }];
  });
  // Of routes with the same name, the first one describes the tag.
  const tags = new Map(routes.toReversed().map(({ name, description }) => [name, description]));
  return {
    openapi: '3.1.0',
    info: {
      title: 'REST API of the outfit gateway',
      version,
      description: `The REST paths. Everything that they give, and more, is in the GraphQL schema at \`/graphql\` too.\n\n${errorTable}`,
      contact: { name: 'The operator of this gateway' },
      license: { name: 'MIT', identifier: 'MIT' },
    },
    // A relative URL: resolved against the address of the document.
    servers: [{ url: config.publicUrl ?? '/' }],
    tags: [...tags].map(([name, description]) => ({ name, description })).toReversed(),
    paths: Object.fromEntries(paths),
    components: {
      schemas: schemas.components,
      ...components,
      securitySchemes,
    },
  };
}

function describeSecurity({
  authCookies,
  authUserClaim,
  authWebhookUrl,
}: DocumentOptions['config']) {
  const bearer = {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: `Its \`${authUserClaim}\` is the id of a user. Without a key for tokens, none is valid.`,
  };
  if (authWebhookUrl === undefined) return { bearer };
  const verified = 'What the service behind AUTH_WEBHOOK_URL accepts';
  const authorization = {
    type: 'apiKey',
    in: 'header',
    name: 'Authorization',
    description: `${verified}, such as \`Token ...\`.`,
  };
  const cookies = authCookies.map((name) => {
    const description = `${verified}. It authorises a write only from an origin that may send it.`;
    return [
      `cookie ${name}`.replace(/[^\w.-]/g, '_'),
      { type: 'apiKey', in: 'cookie', name, description },
    ];
  });
  return { bearer, authorization, ...Object.fromEntries(cookies) };
}

function describeRead(parts: Parts, route: Route): JsonSchema {
  const { config, schemas } = parts;
  const { document, envelope } = route;
  const body = envelope
    ? schemas.refer(route.name.replaceAll(/\W/g, ''), describePage(parts, route, envelope))
    : schemas.ofField(schemas.findField(document, 'record'));
  const headers = envelope?.headers.map(({ name }) => name);
  const personal = config.likers === 'public' ? /\bviewer/ : /\b(?:viewer|likers|likedOutfits)/;
  const isForAll = config.privateOutfits === 'listed' && !personal.test(print(document));
  return {
    ...describeOperation(parts, route, 'get', document, [
      route.description,
      'A request that prefers HTML may get the same answer as a page.',
      'HEAD gives the same without a body. OPTIONS describes the path, or answers a CORS preflight (204).',
      `Methods other than ${allowOf(route)} get 405.`,
      'The path without its last slash redirects here: with 301 for GET and HEAD, or else 308.',
    ]),
    // Reading needs a credential only for what a viewer alone sees.
    security: isForAll ? [] : [{}, ...parts.security],
    parameters: [
      ...describeParameters(parts, route),
      {
        name: 'If-None-Match',
        in: 'header',
        description: 'The `ETag` of an answer: when nothing has changed since, there is a 304.',
        schema: { type: 'string' },
      },
    ],
    responses: describeResponses(200, body, headers),
  };
}

function describePage({ config, schemas }: Parts, { pages, path }: Route, envelope: Envelope) {
  const { offset, page, pageSize } = pages;
  const base = config.publicUrl ?? 'https://shop.example.com';
  return schemas.ofPage(envelope, (relation) => {
    const isNext = relation === 'next';
    const query =
      offset === undefined
        ? `${page}=${isNext ? 3 : 1}`
        : `${pageSize}=20${isNext ? `&${offset}=40` : ''}`;
    return `${base}${fillPath(path, { id: '112' })}?${query}`;
  });
}

/** The variables of a document as parameters, by their types. */
function describeParameters({ schema, schemas }: Parts, route: Route): Parameter[] {
  const { document, envelope, operation, pages, parameters: inQuery } = route;
  const inputs = new Map(findInputs(schema, document).map((found) => [found.name, found.input]));
  const page = envelope && pages.page;
  return (operation.variableDefinitions ?? []).flatMap((definition): Parameter[] => {
    const { variable, type: node, defaultValue } = definition;
    const name = variable.name.value;
    if (page !== undefined && name === pages.last) return [];
    const description = inputs.get(name)?.description;
    if (name === page) {
      const text = describedBy(description, '`last` is the last page.');
      const number = { type: 'integer', minimum: 1, maximum: maxPage };
      const schema = { anyOf: [number, { type: 'string', const: 'last' }] };
      return [{ name, in: 'query', ...text, schema }];
    }
    const type = typeFromAST(schema, node as never) as GraphQLInputType;
    const leaf = getNamedType(type);
    const { description: meaning, ...item } = schemas.ofInput(leaf, description);
    const [minimum, maximum] = rangeOf(inputs.get(name)) ?? [];
    const choices = isEnumType(leaf) ? leaf.getValues() : [];
    const value =
      (defaultValue && valueFromAST(defaultValue, type)) ??
      choices.find(({ extensions }) => extensions['isDefault'])?.value;
    const isList = inQuery.has(name) && isListType(getNullableType(type));
    return [
      {
        name,
        in: inQuery.has(name) ? 'query' : 'path',
        required: !inQuery.has(name) || (isNonNullType(type) && !defaultValue),
        ...describedBy(meaning),
        schema: {
          ...(isList ? { type: 'array', items: item } : item),
          ...(minimum === undefined ? {} : { minimum, maximum }),
          ...(value === undefined ? {} : { default: value }),
        },
      },
    ];
  });
}

function describeCreate(parts: Parts, route: Route, { document, fields }: Create): JsonSchema {
  const { schemas } = parts;
  const record = schemas.ofField(schemas.findField(document, 'created', 'record'));
  const operation = describeOperation(parts, route, 'post', document, [
    schemas.findField(document, 'created').description,
  ]);
  const name = `${operation.operationId.replace(/^./, (first) => first.toUpperCase())}Body`;
  const content = { schema: schemas.refer(name, schemas.ofBody(fields)) };
  return {
    ...operation,
    security: parts.security,
    parameters: [
      {
        name: 'Idempotency-Key',
        in: 'header',
        description: `Names the request, so that it may be sent again. ${invalidKey().message}`,
        schema: { type: 'string', minLength: 1, maxLength: 255 },
      },
    ],
    requestBody: {
      required: fields.some(({ input }) => input.extensions['required']),
      content: Object.fromEntries(mediaTypes.map((type) => [type, content])),
    },
    responses: describeResponses(201, record),
  };
}

/** @param texts paragraphs of the description; the first sentence is the summary */
function describeOperation(
  { config }: Parts,
  { name, path }: Route,
  method: string,
  document: DocumentNode,
  texts: readonly (string | null | undefined)[],
) {
  const camelCased = path.replace(/\W+(\w?)/g, (_all, letter: string) => letter.toUpperCase());
  const own = getOperationAST(document)?.name?.value ?? `${method}${camelCased}`;
  const operationId = own.replace(/^./, (first) => first.toLowerCase());
  return {
    operationId,
    tags: [name],
    summary: (texts[0] || name).split(/(?<=\.)\s/, 1)[0],
    ...describedBy(...texts),
    ...(config.restDeprecated || config.restSunset ? { deprecated: true } : {}),
  };
}
