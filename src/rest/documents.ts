// Answers GET by stored documents: pages of a list, cached without their envelope, and single records.
import type { FastifyRequest } from 'fastify';
import type { ExecutionResult } from 'graphql';
import { LRUCache } from 'lru-cache';
import type { OperationCaller } from '../admission/admission.ts';
import type { Config } from '../config/config.ts';
import type { Engine } from '../graphql/engine.ts';
import type { Answer } from '../graphql/run.ts';
import { rawQuery } from '../http/headers.ts';
import { encodeJson, entityTag, type Representable } from '../http/representation.ts';
import { type Envelope, relationOf, writeEnvelope, writeHeaders } from './envelope.ts';
import { dataOf, notFound, pageNotFound } from './errors.ts';
import type { Route } from './routes.ts';
import {
  fillPath,
  formatQuery,
  type PathParameters,
  parseQuery,
  type QueryParameters,
} from './variables.ts';

export interface Answered extends Representable {
  /** Headers of the route. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** @throws RestError 400 for invalid parameters, 404 for a missing page or record */
export type ReadAnswer = (
  request: FastifyRequest,
  base: string,
  caller: OperationCaller,
) => Promise<Answered>;

export function createReader(
  engine: Engine,
  route: Route,
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
  { document, pages, path: ownPath, readVariables }: Route,
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

function createRecordReader(engine: Engine, { document, path, readVariables }: Route): ReadAnswer {
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
