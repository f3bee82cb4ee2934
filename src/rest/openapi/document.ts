// Generates the OpenAPI document from the table of routes, the stored documents and the GraphQL schema.
import { type DocumentNode, type GraphQLSchema, getOperationAST } from 'graphql';
import type { Config } from '../../config.ts';
import { invalidKey } from '../../errors.ts';
import type { DeprecationConfig } from '../../http/deprecation.ts';
import { version } from '../../package.ts';
import { findFields, mediaTypes } from '../create.ts';
import { allowOf, type Route } from '../routes.ts';
import { describeAnswer, describeErrors, describeHeaders, errorSchemas } from './answers.ts';
import { describeParameters, readDocumentOf } from './parameters.ts';
import { describedBy, type JsonSchema, Schemas } from './schemas.ts';

export interface DocumentOptions {
  readonly schema: GraphQLSchema;
  readonly routes: readonly Route[];
  readonly config: DeprecationConfig &
    Pick<Config, 'authCookies' | 'authUserClaim' | 'authWebhookUrl'>;
}

interface Parts extends DocumentOptions {
  readonly schemas: Schemas;
  readonly operationIds: Set<string>;
  /** The credentials that are accepted, as alternatives. */
  readonly security: readonly JsonSchema[];
}

export function createDocument(options: DocumentOptions): JsonSchema {
  const { config, routes, schema } = options;
  const schemas = new Schemas(schema, errorSchemas);
  const securitySchemes = describeSecurity(config);
  const security = Object.keys(securitySchemes).map((name) => ({ [name]: [] }));
  const parts = { ...options, schemas, security, operationIds: new Set<string>() };
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
      description:
        'The REST paths. Everything that they give, and more, is in the GraphQL schema at `/graphql` too.',
      contact: { name: 'The operator of this gateway' },
      license: { name: 'MIT', identifier: 'MIT' },
    },
    // A relative URL: resolved against the address of the document.
    servers: [{ url: config.publicUrl ?? '/' }],
    tags: [...tags].map(([name, description]) => ({ name, description })).toReversed(),
    paths: Object.fromEntries(paths),
    components: {
      schemas: schemas.components,
      headers: describeHeaders(),
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
  const { schema, schemas } = parts;
  const document = readDocumentOf(route);
  const link = (which: string) => ({
    type: ['string', 'null'],
    format: 'uri',
    description: `Address of the ${which} page with the same parameters; null where there is none.`,
  });
  const links = { next: link('next'), previous: link('previous') };
  const body = route.list
    ? schemas.refer(
        route.name.replaceAll(/\W/g, ''),
        schemas.ofField(schemas.findField(document, 'page'), links),
      )
    : schemas.ofField(schemas.findField(document, 'record'));
  return {
    ...describeOperation(parts, route, 'get', document, [
      route.description,
      'A request that prefers HTML may get the same answer as a page.',
      'HEAD gives the same without a body. OPTIONS describes the path, or answers a CORS preflight (204).',
      `Methods other than ${allowOf(route)} get 405.`,
      'The path without its last slash redirects here: with 301 for GET and HEAD, or else 308.',
    ]),
    security: [{}, ...parts.security],
    parameters: [
      ...describeParameters(schema, route, schemas),
      {
        name: 'If-None-Match',
        in: 'header',
        description: 'The `ETag` of an answer: when nothing has changed since, there is a 304.',
        schema: { type: 'string' },
      },
    ],
    responses: {
      200: describeAnswer(200, 'OK', { schema: body }),
      304: describeAnswer(304, 'It has not changed.'),
      ...describeErrors('get'),
    },
  };
}

function describeCreate(parts: Parts, route: Route, document: DocumentNode): JsonSchema {
  const { schema, schemas } = parts;
  const fields = findFields(schema, document);
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
    responses: {
      201: describeAnswer(201, 'Created', { schema: record }),
      ...describeErrors('post'),
    },
  };
}

/** @param texts paragraphs of the description; the first sentence is the summary */
function describeOperation(
  { config, operationIds }: Parts,
  { name, path }: Route,
  method: string,
  document: DocumentNode,
  texts: readonly (string | null | undefined)[],
) {
  const camelCased = path.replace(/\W+(\w?)/g, (_all, letter: string) => letter.toUpperCase());
  const own = getOperationAST(document)?.name?.value ?? `${method}${camelCased}`;
  const base = own.replace(/^./, (first) => first.toLowerCase());
  // Routes may share a document: operation ids must differ.
  let operationId = base;
  for (let number = 2; operationIds.has(operationId); number += 1) operationId = base + number;
  operationIds.add(operationId);
  return {
    operationId,
    tags: [name],
    summary: (texts[0] || name).split(/(?<=\.)\s/, 1)[0],
    ...describedBy(...texts),
    ...(config.restDeprecated || config.restSunset ? { deprecated: true } : {}),
  };
}
