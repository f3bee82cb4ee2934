// Pages as they are kept, and their envelopes with links.
import type { ExecutionResult } from 'graphql';
import { LRUCache } from 'lru-cache';
import type { Answer } from '../cache/answer-cache.ts';
import type { Asker, Engine } from '../graphql/engine.ts';
import type { Compressible } from '../http/compression.ts';
import { entityTag } from '../http/etag.ts';
import { encodeJson } from '../http/json.ts';
import type { CheckParameters } from './known-parameters.ts';
import { type ListDocument, pageOf } from './list-document.ts';
import { formatQuery, parseQuery, type QueryParameters } from './query-string.ts';
import type { Page, Route } from './routes.ts';

/** What a query string asks for. */
export interface Asked {
  readonly query: string;
  readonly parameters: QueryParameters;
  readonly variables: Record<string, unknown>;
  /** Names the page in the cache: what is not a variable does not matter to it. */
  readonly key: string;
}

/**
 * Query strings are few and come again: reading one anew took as long as sending the page.
 * @param check is asked once for each: what is remembered has passed
 */
export function rememberRequests(
  route: Route,
  list: ListDocument,
  check: CheckParameters,
): (query: string) => Asked {
  const known = new LRUCache<string, Asked>({ maxSize: 1_000_000 });
  return (query) => {
    const remembered = known.get(query);
    if (remembered) return remembered;
    const parameters = parseQuery(query);
    check(parameters);
    const variables = list.readVariables(parameters);
    const asked = {
      query,
      parameters,
      variables,
      key: `${route.path} ${JSON.stringify(variables)}`,
    };
    known.set(query, asked, { size: 1000 + 4 * query.length });
    return asked;
  };
}

/** A page as it is kept: what does not depend on the address and parameters of a request. */
export interface KeptPage extends Answer, Omit<Page, 'results'> {
  /** The JSON of the records. */
  readonly results: Buffer;
  readonly resultsTag: string;
  /** The envelope of the latest request: most clients use the same address. */
  latest?: Envelope;
}

export interface Envelope extends Compressible {
  /** The address whose links it has. */
  readonly address: string;
  readonly tag: string;
}

export function readPage(
  engine: Engine,
  { operation }: ListDocument,
  { key, variables }: Asked,
  asker: Asker,
): Promise<KeptPage> {
  const toAnswer = (result: ExecutionResult, isForAll: boolean): KeptPage => {
    const { count, next, previous, results } = pageOf(result);
    const bytes = encodeJson(results);
    return {
      count,
      next,
      previous,
      results: bytes,
      resultsTag: entityTag(bytes),
      // With room for an envelope and its compressed forms.
      size: 3 * bytes.length,
      shareable: isForAll,
    };
  };
  return engine.answer({ operation, variables, key, toAnswer }, asker);
}

export function encloseFor(path: string, page: KeptPage, { query, parameters }: Asked): Envelope {
  const address = `${path}?${query}`;
  if (page.latest?.address !== address) {
    const link = (number: number | null) =>
      number === null ? null : `${path}?${formatQuery(parameters, 'page', String(number))}`;
    const { count, next, previous } = page;
    const empty = { count, next: link(next), previous: link(previous), results: null };
    const head = JSON.stringify(empty).slice(0, -'null}'.length);
    page.latest = {
      address,
      body: Buffer.concat([Buffer.from(head), page.results, Buffer.from('}')]),
      tag: entityTag(head + page.resultsTag),
    };
  }
  return page.latest;
}
