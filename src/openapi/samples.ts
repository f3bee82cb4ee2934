// Real answers for the examples: asked for each time, so that they are never older than the listing.
import type { InnerApp } from '../rest/inner-app.ts';
import type { Route } from '../rest/routes.ts';

/** Bodies of answers to GET, by the path in the table; none where there was no answer. */
export type Samples = ReadonlyMap<string, unknown>;

/** As many as pages have by default. */
const maxRecords = 20;

/** Asks for each path without a token; for one with parameters as the first record of a list names them. */
export async function takeSamples(
  { ask }: InnerApp,
  routes: readonly Route[],
  audience: { readonly protocol: string; readonly host: string },
): Promise<Samples> {
  const samples = new Map<string, unknown>();
  const parameter = /:(\w+)/g;
  const isNamed = ({ path }: Route) => path.includes(':');
  for (const { path } of [
    ...routes.filter((route) => !isNamed(route)),
    ...routes.filter(isNamed),
  ]) {
    const names = [...path.matchAll(parameter)].map(([, name = '']) => name);
    const records = [{}, ...[...samples.values()].flatMap((body) => recordsOf(body).slice(0, 1))];
    const record = records.find((one) => names.every((name) => Object.hasOwn(one, name)));
    if (!record) continue;
    const target = path.replace(parameter, (_all, name: string) =>
      encodeURIComponent(String(Reflect.get(record, name))),
    );
    const answer = await ask({ headers: {}, ...audience, target });
    if (answer.statusCode !== 200) continue;
    const body: object = answer.json();
    const results = recordsOf(body).slice(0, maxRecords);
    samples.set(path, 'results' in body ? { ...body, results } : body);
  }
  return samples;
}

/** The records of a page, if it is one. */
export function recordsOf(body: unknown): readonly object[] {
  const results = body instanceof Object && Reflect.get(body, 'results');
  return Array.isArray(results) ? results.filter((record) => record instanceof Object) : [];
}
