// A stored document that gives one record, at a path with a parameter.
import type { GraphQLSchema } from 'graphql';
import type { Answer } from '../cache/answer-cache.ts';
import type { Asker, Engine } from '../graphql/engine.ts';
import type { Compressible } from '../http/compression.ts';
import { entityTag } from '../http/etag.ts';
import { encodeJson } from '../http/json.ts';
import { dataOf, notFound } from './errors.ts';
import type { QueryParameters } from './query-string.ts';
import type { Route } from './routes.ts';
import { createVariableReader, type PathParameters } from './variables.ts';

interface RecordAnswer extends Answer, Compressible {
  readonly tag: string;
}

/**
 * Reads the record that the parameters name.
 * @throws RestError 404 when there is none, or can be none; 400 for a parameter of the query string
 */
export type ReadRecord = (
  query: QueryParameters,
  path: PathParameters,
  asker: Asker,
) => Promise<RecordAnswer>;

/** @throws when the document does not fit the schema, or has a variable that cannot be read */
export function storeRecord(
  engine: Engine,
  schema: GraphQLSchema,
  { path: route, record: document }: Route & Required<Pick<Route, 'record'>>,
): ReadRecord {
  const operation = engine.store(document);
  const readVariables = createVariableReader(schema, operation.node, []);

  return async (query, path, asker) => {
    const variables = readVariables(query, path);
    return engine.answer(
      {
        operation,
        variables,
        key: `${route} ${JSON.stringify(variables)}`,
        toAnswer(result, isForAll) {
          const { record } = dataOf<{ record: unknown }>(result);
          if (record === null) throw notFound();
          const body = encodeJson(record);
          return { body, tag: entityTag(body), size: 2 * body.length, shareable: isForAll };
        },
      },
      asker,
    );
  };
}
