// Answers GET by stored documents: pages of a list, cached without their envelope, and single records.
import type { FastifyRequest } from 'fastify';
import { type ExecutionResult, type GraphQLSchema, getOperationAST } from 'graphql';
import { LRUCache } from 'lru-cache';
import type { OperationCaller } from '../admission/admission.ts';
import type { Config } from '../config.ts';
import type { Answer } from '../graphql/engine/answer-cache.ts';
import type { Engine } from '../graphql/engine/engine.ts';
import { encodeJson } from '../http/json.ts';
import { entityTag, type Representable } from '../http/representation.ts';
import { dataOf, notFound, pageNotFound, RestError, unknownParameters } from './errors.ts';
import type { Page, Route } from './routes.ts';
import { formatQuery, parseQuery, type QueryParameters, rawQuery } from './url.ts';
import {
  createRouteReader,
  createVariableReader,
  isByOffset,
  isByPage,
  type PathParameters,
} from './variables.ts';

/** @throws RestError 400 for invalid parameters, 404 for a missing page or record */
export type ReadAnswer = (
  request: FastifyRequest,
  base: string,
  caller: OperationCaller,
) => Promise<Representable>;

export interface ReaderOptions {
  readonly engine: Engine;
  readonly schema: GraphQLSchema;
  readonly config: Pick<Config, 'pageSize' | 'unknownParameters'>;
}

/** @throws when the document does not fit the schema, or has a variable of an unsupported type */
export function createReader(options: ReaderOptions, route: Route): ReadAnswer {
  const { list, record } = route;
  if (list) return createPageReader(options, { ...route, list });
  if (record) return createRecordReader(options, { ...route, record });
  throw new Error(`The path ${route.path} has neither a list nor a record.`);
}

/** Query parameters of a route: the variables of its document, without path parameters; `page` in place of `last`. */
export function knownParametersOf(route: Route): ReadonlySet<string> {
  const { path, list, record } = route;
  const document = list ?? record;
  const operation = document && getOperationAST(document);
  const definitions = operation?.variableDefinitions;
  const parameters = new Set(definitions?.map(({ variable }) => variable.name.value));
  if (operation && isByPage(route, operation)) parameters.add('page').delete('last');
  for (const [, name = ''] of path.matchAll(/:(\w+)/g)) parameters.delete(name);
  return parameters;
}

/** Whether the variables in a path can be read: `/api/outfits/popular/` may be a path of the old service. */
export function createPathTest(schema: GraphQLSchema, { record }: Route) {
  const operation = record && getOperationAST(record);
  const readVariables = operation && createVariableReader(schema, operation, []);
  return (parameters: PathParameters): boolean => {
    try {
      readVariables?.([], parameters);
      return true;
    } catch (error) {
      return !(error instanceof RestError) || error.statusCode !== 404;
    }
  };
}

function createParser({ config }: ReaderOptions, route: Route): (raw: string) => QueryParameters {
  if (config.unknownParameters !== 'refuse') return parseQuery;
  const knownParameters = knownParametersOf(route);
  return (raw) => {
    const parameters = parseQuery(raw);
    const names = parameters.map(([name]) => name).filter((name) => !knownParameters.has(name));
    if (names.length > 0) throw unknownParameters(names);
    return parameters;
  };
}

interface PageRequest {
  readonly query: string;
  readonly parameters: QueryParameters;
  readonly variables: Record<string, unknown>;
  readonly toQuery: ToQuery;
  /** Cache key: without parameters that are no variables. */
  readonly key: string;
}

function createPageReader(
  options: ReaderOptions,
  route: Route & Required<Pick<Route, 'list'>>,
): ReadAnswer {
  const { config, engine, schema } = options;
  const operation = engine.store(route.list);
  const toOffset = isByOffset(operation.node) ? toQueryByOffset : undefined;
  const parse = createParser(options, route);
  const readVariables = createRouteReader(schema, route, operation.node);
  // Memoized: query strings repeat, and parsing one took as long as sending the page.
  const requests = new LRUCache<string, PageRequest>({ maxSize: 1_000_000 });
  const parseRequest = (query: string): PageRequest => {
    const parameters = parse(query);
    const variables = readVariables(parameters);
    const key = `${route.path} ${JSON.stringify(variables)}`;
    const toQuery = toOffset ? toOffset(variables['limit'] ?? config.pageSize) : toPage;
    const request = { query, parameters, variables, toQuery, key };
    requests.set(query, request, { size: 1000 + 4 * query.length });
    return request;
  };

  return async ({ raw }, base, caller) => {
    const query = rawQuery(raw);
    const request = requests.get(query) ?? parseRequest(query);
    const { variables, key } = request;
    const execution = { operation, variables, key, toAnswer: toCachedPage };
    const { answer: page } = await engine.answer(execution, caller);
    const path = `${base}${route.path}`;
    const address = `${path}?${query}`;
    if (page.lastEnvelope?.address === address) return page.lastEnvelope;
    const { head, body } = buildEnvelope(path, page, request.parameters, request.toQuery);
    const tag = entityTag(head + page.resultsTag);
    page.lastEnvelope = { address, body, tag, shareable: page.shareable };
    return page.lastEnvelope;
  };
}

interface CachedPage extends Answer, Omit<Page, 'results'> {
  readonly results: Buffer;
  readonly resultsTag: string;
  /** The envelope of the last request: most clients use the same address. */
  lastEnvelope?: Representable & { readonly address: string };
}

function toCachedPage(result: ExecutionResult, isShared: boolean): CachedPage {
  const { count, next, previous, results } = dataOf<{ page: Page }>(result).page;
  const bytes = encodeJson(results);
  return {
    count,
    next,
    previous,
    results: bytes,
    resultsTag: entityTag(bytes),
    // Includes an envelope and its compressed representations.
    size: 3 * bytes.length,
    shareable: isShared,
  };
}

/** The query of a link to a page. */
type ToQuery = (parameters: QueryParameters, place: number) => string;

const toPage: ToQuery = (parameters, page) => formatQuery(parameters, 'page', String(page));

/** As LimitOffsetPagination of Django REST Framework: `limit` is always set, and the first page has no `offset`. */
const toQueryByOffset =
  (limit: unknown): ToQuery =>
  (parameters, offset) => {
    const others = parameters.filter(([name]) => name !== 'limit');
    const sized = [...others, ['limit', String(limit)] as const];
    return formatQuery(sized, 'offset', offset === 0 ? undefined : String(offset));
  };

export function buildEnvelope(
  path: string,
  { count, next, previous, results }: Pick<CachedPage, 'count' | 'next' | 'previous' | 'results'>,
  parameters: QueryParameters,
  toQuery = toPage,
): { readonly head: string; readonly body: Buffer } {
  const link = (number: number | null) =>
    number === null ? null : `${path}?${toQuery(parameters, number)}`;
  const empty = { count, next: link(next), previous: link(previous), results: null };
  const head = JSON.stringify(empty).slice(0, -'null}'.length);
  return { head, body: Buffer.concat([Buffer.from(head), results, Buffer.from('}')]) };
}

function createRecordReader(
  options: ReaderOptions,
  route: Route & Required<Pick<Route, 'record'>>,
): ReadAnswer {
  const { engine, schema } = options;
  const operation = engine.store(route.record);
  const parse = createParser(options, route);
  const readVariables = createRouteReader(schema, route, operation.node);
  return async ({ raw, params }, _base, caller) => {
    const variables = readVariables(parse(rawQuery(raw)), params as PathParameters);
    const key = `${route.path} ${JSON.stringify(variables)}`;
    const execution = { operation, variables, key, toAnswer: toCachedRecord };
    return (await engine.answer(execution, caller)).answer;
  };
}

function toCachedRecord(result: ExecutionResult, isShared: boolean): Answer & Representable {
  const [error] = result.errors ?? [];
  // Only the error of a list that is the whole answer is part of the contract: this one has the number of pages.
  if (error?.extensions['code'] === 'PAGE_NOT_FOUND') throw pageNotFound(error.message);
  const { record } = dataOf<{ record: unknown }>(result);
  if (record === null) throw notFound();
  const body = encodeJson(record);
  return { body, size: 2 * body.length, shareable: isShared };
}
