// The operations of a legacy path: GET, HEAD, POST and OPTIONS.
import { type DocumentNode, getOperationAST } from 'graphql';
import { canIdentify } from '../admission/viewer.ts';
import { invalidKey } from '../errors.ts';
import { mediaTypes } from '../rest/body.ts';
import { findFields } from '../rest/create-document.ts';
import { allowOf, type Route } from '../rest/routes.ts';
import { isRequired, schemaOfBody } from './body-schema.ts';
import type { DocumentOptions } from './document.ts';
import {
  describeErrors,
  findCommonErrors,
  findCreateErrors,
  findMethodErrors,
  findReadErrors,
} from './error-answers.ts';
import { type Headers, headersOf, validatorHeaders } from './headers.ts';
import { describedBy, type JsonSchema, type NamedSchemas } from './json-schema.ts';
import { describeParameters, findParameterErrors } from './parameters.ts';
import { recordsOf, type Samples } from './samples.ts';
import { findField, schemaOfPage, schemaOfPresent } from './selection-schema.ts';

/** What the operations of a path are made from. */
interface PathContext extends DocumentOptions {
  readonly route: Route;
  readonly named: NamedSchemas;
  readonly samples: Samples;
  /** Of every answer of the path. */
  readonly headers: Headers;
}

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

export function describePath(
  route: Route,
  options: DocumentOptions,
  named: NamedSchemas,
  samples: Samples,
): JsonSchema {
  const headers = headersOf(route, options.config);
  const context = { ...options, route, named, samples, headers };
  const get = describeRead(context);
  return {
    description: `The path without its last slash redirects here. Methods other than ${allowOf(route)} are answered as \`x-other-methods\` says.`,
    get,
    ...(route.create ? { post: describeCreate(context, route.create) } : {}),
    head: withoutContent({ ...get, operationId: `${get.operationId}Head` }),
    options: describeOptions(context, `${get.operationId}Options`),
    'x-other-methods': describeErrors(findMethodErrors(), headers, named),
  };
}

interface Operation {
  readonly operationId: string;
  readonly responses: Readonly<Record<string, JsonSchema>>;
  readonly [key: string]: unknown;
}

function describeRead(context: PathContext): Operation {
  const { route, schema, named, samples, headers, config } = context;
  const document = route.list ?? route.record;
  if (!document) throw new Error(`The path ${route.path} has neither a list nor a record.`);
  const selected = { schema, document, named };
  const parameters = describeParameters(schema, route, named);
  const body = route.list
    ? schemaOfPage(route.name.replaceAll(/\W/g, ''), selected)
    : schemaOfPresent(findField('record', selected), selected);
  const example = samples.get(`GET ${route.path}`);
  const errors = findReadErrors(route, config, findParameterErrors(schema, route, parameters));
  const validated = { ...headers, ...validatorHeaders };
  return {
    ...describeOperation(context, operationIdOf(route, document, 'get')),
    description: route.description,
    ...(canIdentify(config) ? { security: [{}, { bearer: [] }] } : {}),
    parameters: [...parameters, ifNoneMatch],
    responses: {
      200: answer('OK', validated, { schema: body, ...(example ? { example } : {}) }),
      304: { description: 'Not Modified', headers: validated },
      ...describeErrors(errors, headers, named),
    },
  };
}

function describeCreate(context: PathContext, document: DocumentNode): Operation {
  const { route, schema, named, headers, config } = context;
  const selected = { schema, document, named };
  const fields = findFields(schema, document);
  const operationId = operationIdOf(route, document, 'post');
  const whole = schemaOfBody(fields, named);
  const body = named.refer(
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
  const content = { schema: body, ...(given ? { example: given } : {}) };
  const canWrite = canIdentify(config);
  return {
    ...describeOperation(context, operationId),
    ...describedBy(
      findField('created', selected).description,
      canWrite
        ? undefined
        : 'Nobody can sign in to this gateway now, so that every answer is a 401.',
    ),
    ...(canWrite ? { security: [{ bearer: [] }] } : {}),
    parameters: [idempotencyKey],
    requestBody: {
      required: fields.some(isRequired),
      content: { [json]: content, [form]: content },
    },
    responses: {
      201: answer('Created', headers, { schema: record, ...(example ? { example } : {}) }),
      ...describeErrors(findCreateErrors(fields, config), headers, named),
    },
  };
}

/** A record of the list at this path, if they are the same as those that are made here. */
function findRecord({ route, schema, named, samples }: PathContext, record: JsonSchema) {
  if (!route.list) return undefined;
  const selected = { schema, document: route.list, named };
  const { items } = schemaOfPresent(findField('results', selected), selected);
  const isSame = JSON.stringify(items) === JSON.stringify(record);
  return isSame ? recordsOf(samples.get(`GET ${route.path}`))[0] : undefined;
}

function describeOptions(context: PathContext, operationId: string): Operation {
  const { route, named, samples, headers, config } = context;
  const example = samples.get(`OPTIONS ${route.path}`);
  const texts = { type: 'array', items: { type: 'string' } };
  const schema = named.refer('PathDescription', {
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
  const parameters = describeParameters(context.schema, route, named);
  return {
    ...describeOperation(context, operationId),
    ...(canIdentify(config) ? { security: [{}, { bearer: [] }] } : {}),
    parameters: parameters.filter((parameter) => parameter.in === 'path'),
    responses: {
      200: answer('OK', headers, { schema, ...(example ? { example } : {}) }),
      ...describeErrors(findCommonErrors(config), headers, named),
    },
  };
}

function describeOperation({ route, config }: PathContext, operationId: string) {
  return {
    operationId,
    tags: [route.name],
    ...(config.restDeprecated || config.restSunset ? { deprecated: true } : {}),
  };
}

function answer(description: string, headers: Headers, content: object): JsonSchema {
  return { description, headers, content: { [json]: content } };
}

/** That of the stored document; of the path where it has none. */
function operationIdOf({ path }: Route, document: DocumentNode, method: string): string {
  const name = getOperationAST(document)?.name?.value;
  if (name) return `${name.slice(0, 1).toLowerCase()}${name.slice(1)}`;
  return `${method}${path.replace(/\W+(\w?)/g, (_all, letter: string) => letter.toUpperCase())}`;
}

/** What HEAD answers where GET has a body. */
function withoutContent({ responses, ...operation }: Operation): Operation {
  const heads = Object.entries(responses).map(([status, { content: _content, ...head }]) => [
    status,
    head,
  ]);
  return { ...operation, responses: Object.fromEntries(heads) };
}
