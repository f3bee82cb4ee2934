// Which query parameters a legacy path reads: the variables of its stored document.
import { getOperationAST } from 'graphql';
import type { Config } from '../config.ts';
import { unknownParameters } from './errors.ts';
import type { QueryParameters } from './query-string.ts';
import type { Route } from './routes.ts';

/** A list reads `page`, and never `last`; what stands in the path is not read from the query string. */
export function knownParametersOf({ path, list, record }: Route): ReadonlySet<string> {
  const document = list ?? record;
  const definitions = document && getOperationAST(document)?.variableDefinitions;
  const known = new Set(definitions?.map(({ variable }) => variable.name.value));
  if (list) known.add('page').delete('last');
  else for (const [, name = ''] of path.matchAll(/:(\w+)/g)) known.delete(name);
  return known;
}

/** @throws RestError 400 that names every parameter that is not known */
export type CheckParameters = (parameters: QueryParameters) => void;

/** Checks nothing, unless unknown parameters are refused. */
export function createParameterCheck(
  known: ReadonlySet<string>,
  mode: Config['unknownParameters'],
): CheckParameters {
  if (mode !== 'refuse') return () => {};
  return (parameters) => {
    const names = parameters.map(([name]) => name).filter((name) => !known.has(name));
    if (names.length > 0) throw unknownParameters(names);
  };
}
