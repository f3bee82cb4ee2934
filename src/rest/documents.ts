// Answers GET by stored documents: pages of a list, cached without their envelope, and single records.
import type { FastifyRequest } from 'fastify';
import {
  type ConstValueNode,
  type DocumentNode,
  type ExecutionResult,
  type GraphQLSchema,
  Kind,
  valueFromASTUntyped,
} from 'graphql';
import { LRUCache } from 'lru-cache';
import type { OperationCaller } from '../admission/admission.ts';
import type { Config } from '../config/config.ts';
import type { Engine } from '../graphql/engine.ts';
import type { Answer } from '../graphql/run.ts';
import { rawQuery } from '../http/headers.ts';
import { encodeJson, entityTag, type Representable } from '../http/representation.ts';
import { findField, listFields, type SelectedField } from './describe.ts';
import { dataOf, notFound, pageNotFound } from './errors.ts';
import {
  fillPath,
  formatQuery,
  type PageParameters,
  type PathParameters,
  parseQuery,
  type QueryParameters,
  type ReadVariables,
} from './variables.ts';

/** A document that answers GET and HEAD, and what it declares. */
export interface Stored {
  /** With a trailing slash or without; the other one redirects. `:name` is a parameter. */
  readonly path: string;
  /** Of a list, which has the alias `page`, or of a record, which has the alias `record`. */
  readonly document: DocumentNode;
  /** Undefined: it answers with a record. */
  readonly envelope: Envelope | undefined;
  readonly pages: PageParameters;
  readonly readVariables: ReadVariables;
}

export interface Answered extends Representable {
  /** Headers of the route. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** @throws RestError 400 for invalid parameters, 404 for a missing page or record */
type ReadAnswer = (
  request: FastifyRequest,
  base: string,
  caller: OperationCaller,
) => Promise<Answered>;

export function createReader(
  engine: Engine,
  route: Stored,
  config: Pick<Config, 'pageSize'>,
): ReadAnswer {
  return route.envelope
    ? createPageReader(engine, route, route.envelope, config)
    : createRecordReader(engine, route);
}

interface PageRequest {
  readonly parameters: QueryParameters;
  readonly variables: Record<string, unknown>;
  /** Cache key: without parameters that are no variables. */
  readonly key: string;
}

function createPageReader(
  engine: Engine,
  { document, pages, path: ownPath, readVariables }: Stored,
  envelope: Envelope,
  config: Pick<Config, 'pageSize'>,
): ReadAnswer {
  const operation = engine.store(document);
  const toAnswer = toCachedPage(envelope.records);
  const { page = 'page', pageSize, offset } = pages;
  const hasParameters = ownPath.includes(':');
  // Memoized: query strings repeat, and parsing one took as long as sending the page.
  const requests = new LRUCache<string, PageRequest>({ maxSize: 1_000_000 });
  const parseRequest = (target: string, query: string, path: PathParameters): PageRequest => {
    const parameters = parseQuery(query);
    const variables = readVariables(parameters, path);
    const request = { parameters, variables, key: `${ownPath} ${JSON.stringify(variables)}` };
    requests.set(target, request, { size: 1000 + 4 * target.length });
    return request;
  };
  const toQuery = ({ parameters, variables }: PageRequest, place: number): string =>
    offset === undefined
      ? formatQuery(parameters, page, String(place))
      : toQueryByOffset(
          parameters,
          pageSize,
          variables[pageSize] ?? config.pageSize,
          offset,
          place,
        );

  return async ({ raw, params }, base, caller) => {
    const query = rawQuery(raw);
    const place = hasParameters ? fillPath(ownPath, params as PathParameters) : ownPath;
    const target = `${place}?${query}`;
    const request = requests.get(target) ?? parseRequest(target, query, params as PathParameters);
    const { variables, key } = request;
    const execution = { operation, variables, key, toAnswer };
    const { answer } = await engine.answer(execution, caller);
    const address = base + target;
    if (answer.lastEnvelope?.address === address) return answer.lastEnvelope;
    const readField = (name: string): unknown => {
      const [field, value] = [envelope.fields.get(name), answer.fields[name]];
      if (typeof value !== 'number' || !field || !relationOf(field)) return value;
      return `${base}${place}?${toQuery(request, value)}`;
    };
    const [head, tail] = writeEnvelope(envelope, readField);
    const headers = writeHeaders(envelope, readField);
    const body = Buffer.concat([Buffer.from(head), answer.records, Buffer.from(tail)]);
    const tag = entityTag(head + tail + JSON.stringify(headers) + answer.recordsTag);
    answer.lastEnvelope = { address, body, tag, headers, shareable: answer.shareable };
    return answer.lastEnvelope;
  };
}

interface CachedPage extends Answer {
  /** By their names on the wire, without the records. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly records: Buffer;
  readonly recordsTag: string;
  /** The envelope of the last request: most clients use the same address. */
  lastEnvelope?: Answered & { readonly address: string };
}

function toCachedPage(recordsName: string) {
  return (result: ExecutionResult, isShared: boolean): CachedPage => {
    const { page } = dataOf<{ page: Readonly<Record<string, unknown>> }>(result);
    const { [recordsName]: list = null, ...fields } = page;
    const records = encodeJson(list);
    // The size includes an envelope and its compressed representations.
    const kept = { size: 3 * records.length, shareable: isShared };
    return { fields, records, recordsTag: entityTag(records), ...kept };
  };
}

/** As LimitOffsetPagination of Django REST Framework: `limit` is always set, and the first page has no `offset`. */
function toQueryByOffset(
  parameters: QueryParameters,
  sizeName: string,
  size: unknown,
  offsetName: string,
  offset: number,
): string {
  const others = parameters.filter(([name]) => name !== sizeName);
  const sized = [...others, [sizeName, String(size)] as const];
  return formatQuery(sized, offsetName, offset === 0 ? undefined : String(offset));
}

function createRecordReader(engine: Engine, { document, path, readVariables }: Stored): ReadAnswer {
  const operation = engine.store(document);
  return async ({ raw, params }, _base, caller) => {
    const variables = readVariables(parseQuery(rawQuery(raw)), params as PathParameters);
    const key = `${path} ${JSON.stringify(variables)}`;
    const execution = { operation, variables, key, toAnswer: toCachedRecord };
    return (await engine.answer(execution, caller)).answer;
  };
}

function toCachedRecord(result: ExecutionResult, isShared: boolean): Answer & Representable {
  const [error] = result.errors ?? [];
  // Only the error of a list that is the whole answer is part of the contract: this one has the number of pages.
  if (error?.extensions['code'] === 'PAGE_NOT_FOUND') throw pageNotFound(error.message);
  const { record, ...others } = dataOf<{ record: object | null }>(result);
  if (record === null) throw notFound();
  // Other fields of the operation follow those of the record.
  const body = encodeJson(Object.assign({}, record, others));
  return { body, size: 2 * body.length, shareable: isShared };
}

/** Fields of a page that are numbers in GraphQL, and links on the wire, with their relation in the header `Link`. */
const relations: Readonly<Record<string, 'next' | 'prev'>> = {
  nextOffset: 'next',
  nextPage: 'next',
  previousOffset: 'prev',
  previousPage: 'prev',
};

export interface Envelope {
  readonly template: ConstValueNode;
  /** Fields of the page by their names on the wire. */
  readonly fields: ReadonlyMap<string, SelectedField>;
  /** The name of the field with the records. */
  readonly records: string;
  readonly headers: readonly { readonly name: string; readonly fields: readonly string[] }[];
}

/** As @route says it. */
export interface Written {
  /** With fields of the page as names; undefined: an object of them in their order. */
  readonly template?: ConstValueNode | undefined;
  /** With fields of the page as values, such as `X-Total-Count: count` or `Link: next previous`. */
  readonly headers?: readonly string[] | undefined;
}

type ReadField = (name: string) => unknown;

const headerPattern = /^([\w!#$%&'*+.^`|~-]+): *(\w+(?: +\w+)*)$/;
/** What HTTP or this service sets. */
const reserved =
  /^(?:access-control-.*|allow|cache-control|connection|content-.*|date|etag|retry-after|set-cookie|transfer-encoding|vary)$/i;

/** @throws when it names a field that the page does not have */
export function readEnvelope(
  schema: GraphQLSchema,
  document: DocumentNode,
  given: Written,
): Envelope {
  const listed = listFields(schema, findField(schema, document, 'page'));
  const fields = new Map(listed.map((field) => [field.name, field]));
  const check = (place: string) => (name: string) => {
    if (fields.has(name)) return;
    throw new Error(`${place} names ${name}, but page has ${[...fields.keys()].join(', ')}`);
  };
  const template = given.template ?? objectOf([...fields.keys()]);
  fill(template, check('its envelope'));
  const headers = (given.headers ?? []).map((text) => {
    const [, name = '', values = ''] = headerPattern.exec(text) ?? [];
    if (name === '' || reserved.test(name)) {
      throw new Error(
        `the header ${JSON.stringify(text)} must be a name of your own and fields of page, such as "X-Total-Count: count" or "Link: next previous"`,
      );
    }
    values.split(/ +/).forEach(check(`the header ${name}`));
    return { name, fields: values.split(/ +/) };
  });
  const records = listed.find(({ graphqlName }) => graphqlName === 'results')?.name ?? 'results';
  return { template, fields, records, headers };
}

export const relationOf = ({ graphqlName }: Pick<SelectedField, 'graphqlName'>) =>
  relations[graphqlName];

function objectOf(names: readonly string[]): ConstValueNode {
  const fields = names.map((name) => ({
    kind: Kind.OBJECT_FIELD as const,
    name: { kind: Kind.NAME as const, value: name },
    value: { kind: Kind.ENUM as const, value: name },
  }));
  return { kind: Kind.OBJECT, fields };
}

function fill(node: ConstValueNode, read: ReadField): unknown {
  if (node.kind === Kind.ENUM) return read(node.value) ?? null;
  if (node.kind === Kind.LIST) return node.values.map((value) => fill(value, read));
  if (node.kind !== Kind.OBJECT) return valueFromASTUntyped(node);
  return Object.fromEntries(node.fields.map(({ name, value }) => [name.value, fill(value, read)]));
}

/** The texts before and behind the records, which are encoded once for all envelopes. */
function writeEnvelope(
  { template, records }: Envelope,
  read: ReadField,
): readonly [head: string, tail: string] {
  const filled = fill(template, (name) => (name === records ? '\0' : read(name)));
  const [head = '', tail = ''] = JSON.stringify(filled).split('"\\u0000"');
  return [head, tail];
}

/** Undefined: the route has none. A header whose fields are all null is left out. */
function writeHeaders({ headers, fields }: Envelope, read: ReadField) {
  if (headers.length === 0) return undefined;
  const written = headers.flatMap((header) => {
    const values = header.fields.flatMap((name) => {
      const value = read(name) ?? null;
      const relation = relationOf({ graphqlName: '', ...fields.get(name) });
      return value === null ? [] : relation ? `<${value}>; rel="${relation}"` : String(value);
    });
    return values.length > 0 ? [[header.name, values.join(', ')] as const] : [];
  });
  return Object.fromEntries(written);
}
