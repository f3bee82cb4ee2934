// The operations of a legacy path: GET, HEAD, POST and OPTIONS.
import { type DocumentNode, getOperationAST } from 'graphql';
import { findWriteObstacle } from '../admission/admission.ts';
import { canIdentify } from '../admission/viewer.ts';
import { invalidKey } from '../errors.ts';
import { findFields, mediaTypes } from '../rest/create.ts';
import { allowOf, type Route } from '../rest/routes.ts';
import {
  answersOf,
  describeAnswer,
  describePreflight,
  type PathContext,
  type Responses,
} from './answers.ts';
import { isRequired, schemaOfBody } from './body-schema.ts';
import {
  findAdmissionErrors,
  findCreateErrors,
  findMethodErrors,
  findReadErrors,
} from './error-answers.ts';
import { describedBy, type JsonSchema } from './json-schema.ts';
import { describeParameters, findParameterErrors } from './parameters.ts';
import { recordsOf } from './samples.ts';
import { findField, schemaOfPage, schemaOfPresent } from './selection-schema.ts';

const [json, form] = mediaTypes;

const ifNoneMatch = {
  name: 'If-None-Match',
  in: 'header',
  description: 'The `ETag` of an answer: when nothing has changed since, there is a 304.',
  schema: { type: 'string' },
};

const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  description: `Names the request, so that it may be sent again. ${invalidKey().message}`,
  schema: { type: 'string', minLength: 1, maxLength: 255 },
};

export function describePath(context: PathContext): JsonSchema {
  const { route } = context;
  const get = describeRead(context);
  return {
    description: describeRest(context),
    get,
    ...(route.create ? { post: describeCreate(context, route.create) } : {}),
    head: withoutContent({ ...get, operationId: operationIdsOf(route).head }),
    options: describeOptions(context),
    'x-other-methods': describeOthers(context),
  };
}

/** What is to be said of a path as a whole. */
function describeRest({ route, config }: PathContext): string {
  const { kind, percent } = config.legacyMode;
  return [
    `The path without its last slash redirects here. Methods other than ${allowOf(route)} are answered as \`x-other-methods\` says.`,
    ...(config.browsable ? ['Who prefers HTML gets the same answer as a page.'] : []),
    ...(kind === 'canary'
      ? ['Until the switch, the old service answers whatever is not GET or HEAD.']
      : []),
    ...(kind === 'canary' && percent < 100
      ? [`This gateway answers ${percent} % of the clients, and the old service all others.`]
      : []),
  ].join(' ');
}

export interface Operation {
  readonly operationId: string;
  readonly responses: Responses;
  readonly [key: string]: unknown;
}

function describeRead(context: PathContext): Operation {
  const { route, schema, named, samples, headers, config } = context;
  const document = route.list ?? route.record;
  if (!document) throw new Error(`The path ${route.path} has neither a list nor a record.`);
  const selected = { schema, document, named: named.schemas };
  const parameters = describeParameters(schema, route, named.schemas);
  const body = route.list
    ? schemaOfPage(route.name.replaceAll(/\W/g, ''), selected)
    : schemaOfPresent(findField('record', selected), selected);
  const example = samples.get(`GET ${route.path}`);
  return {
    ...describeOperation(context, operationIdsOf(route).get),
    description: route.description,
    ...(canIdentify(config) ? { security: [{}, { bearer: [] }] } : {}),
    parameters: [...parameters, ifNoneMatch],
    responses: answersOf(context, 'GET', {
      own: {
        200: describeAnswer(200, { found: headers.ofBody }, named, withExample(body, example)),
        304: describeAnswer(304, { unchanged: headers.ofRead }, named),
      },
      errors: findReadErrors(route, config, findParameterErrors(schema, route, parameters)),
      ofErrors: headers.ofPath,
    }),
  };
}

function describeCreate(context: PathContext, document: DocumentNode): Operation {
  const { route, schema, named, headers, config } = context;
  const selected = { schema, document, named: named.schemas };
  const fields = findFields(schema, document);
  const operationId = operationIdsOf(route).post;
  const whole = schemaOfBody(fields, named.schemas);
  const body = named.schemas.refer(
    `${operationId.slice(0, 1).toUpperCase()}${operationId.slice(1)}Body`,
    whole,
  );
  const record = schemaOfPresent(findField('record', selected), selected);
  const example = findRecord(context, record);
  const given =
    example &&
    Object.fromEntries(
      fields.flatMap(({ name }) => {
        const value: unknown = Reflect.get(example, name);
        return value === null || value === undefined ? [] : [[name, value]];
      }),
    );
  const content = withExample(body, given);
  const obstacle = findWriteObstacle(config);
  return {
    ...describeOperation(context, operationId),
    ...describedBy(findField('created', selected).description, obstacle && obstacles[obstacle]),
    ...(canIdentify(config) ? { security: [{ bearer: [] }] } : {}),
    parameters: [idempotencyKey],
    requestBody: {
      required: fields.some(isRequired),
      content: { [json]: content, [form]: content },
    },
    responses: answersOf(context, 'POST', {
      own: obstacle
        ? {}
        : {
            201: describeAnswer(
              201,
              { created: headers.ofPath },
              named,
              withExample(record, example),
            ),
          },
      errors: findCreateErrors(fields, config),
      ofErrors: headers.ofPath,
    }),
  };
}

const obstacles = {
  off: 'Writing is switched off for now, so that nothing is published.',
  legacy: 'The old service answers it for now, by its own rules.',
  identity: 'Nobody can sign in to this gateway now, so that nothing is published.',
};

/** A record of the list at this path, if they are the same as those that are made here. */
function findRecord({ route, schema, named, samples }: PathContext, record: JsonSchema) {
  if (!route.list) return undefined;
  const selected = { schema, document: route.list, named: named.schemas };
  const { items } = schemaOfPresent(findField('results', selected), selected);
  const isSame = JSON.stringify(items) === JSON.stringify(record);
  return isSame ? recordsOf(samples.get(`GET ${route.path}`))[0] : undefined;
}

function describeOptions(context: PathContext): Operation {
  const { route, named, samples, headers, config } = context;
  const example = samples.get(`OPTIONS ${route.path}`);
  const texts = { type: 'array', items: { type: 'string' } };
  const schema = named.schemas.refer('PathDescription', {
    type: 'object',
    description:
      'What a path is and takes; `actions` has the fields of POST for whoever may send it.',
    properties: {
      name: { type: 'string' },
      description: { type: 'string' },
      renders: texts,
      parses: texts,
      actions: {
        type: 'object',
        additionalProperties: { type: 'object', additionalProperties: true },
      },
    },
    required: ['name', 'description', 'renders', 'parses'],
  });
  const parameters = describeParameters(context.schema, route, named.schemas);
  return {
    ...describeOperation(context, operationIdsOf(route).options),
    ...(canIdentify(config) ? { security: [{}, { bearer: [] }] } : {}),
    parameters: parameters.filter((parameter) => parameter.in === 'path'),
    responses: {
      ...describePreflight(context),
      ...answersOf(context, 'OPTIONS', {
        own: {
          200: describeAnswer(
            200,
            { described: headers.ofPath },
            named,
            withExample(schema, example),
          ),
        },
        errors: findAdmissionErrors(config),
        ofErrors: headers.ofPath,
      }),
    },
  };
}

/** What any other method is answered with. */
function describeOthers(context: PathContext): Responses {
  const { config, headers } = context;
  return answersOf(context, 'DELETE', {
    own: {},
    errors: findMethodErrors(config),
    ofErrors: headers.ofPath,
  });
}

/** What all operations have. */
export function describeOperation({ route, config }: PathContext, operationId: string) {
  return {
    operationId,
    tags: [route.name],
    ...(config.restDeprecated || config.restSunset ? { deprecated: true } : {}),
  };
}

function withExample(schema: JsonSchema, example: unknown): object {
  return { schema, ...(example === undefined ? {} : { example }) };
}

/** Those of the stored documents; of the path where they have none. */
export function operationIdsOf({ path, list, record, create }: Route) {
  const nameOf = (document: DocumentNode | undefined, method: string) => {
    const name = document && getOperationAST(document)?.name?.value;
    if (name) return `${name.slice(0, 1).toLowerCase()}${name.slice(1)}`;
    return `${method}${path.replace(/\W+(\w?)/g, (_all, letter: string) => letter.toUpperCase())}`;
  };
  const get = nameOf(list ?? record, 'get');
  return { get, head: `${get}Head`, options: `${get}Options`, post: nameOf(create, 'post') };
}

/** What HEAD answers where GET has a body. */
export function withoutContent({ responses, ...operation }: Operation): Operation {
  const heads = Object.entries(responses).map(([status, { content: _content, ...head }]) => [
    status,
    head,
  ]);
  return { ...operation, responses: Object.fromEntries(heads) };
}
