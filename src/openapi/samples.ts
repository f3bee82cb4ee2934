// Real answers for the examples: asked of this gateway itself, by nobody in particular, each time anew.
// From memory where the listing's own answers are, and never older than those.
import type { InnerApp } from '../rest/inner-app.ts';
import type { Route } from '../rest/routes.ts';

/** Whom the answers are for. */
export interface Audience {
  readonly protocol: string;
  readonly host: string;
}

/** Bodies by method and path, such as `GET /api/outfits/`; none where there was no answer. */
export type Samples = ReadonlyMap<string, unknown>;

/** Records of a page that an example has at most: as many as pages have by default. */
const maxRecords = 20;

export async function takeSamples(
  app: InnerApp,
  routes: readonly Route[],
  audience: Audience,
): Promise<Samples> {
  const samples = new Map<string, unknown>();
  const ask = async (path: string, target = path, method: 'GET' | 'OPTIONS' = 'GET') => {
    const answer = await app.ask({ method, headers: {}, ...audience, target });
    if (answer.statusCode === 200) samples.set(`${method} ${path}`, shorten(answer.json()));
  };
  const lists = routes.filter(({ list }) => list);
  await Promise.all(lists.map(({ path }) => ask(path)));
  await Promise.all(
    routes.map(async (route) => {
      const target = route.list ? route.path : fillPath(route, [...samples.values()]);
      if (target === undefined) return;
      if (!route.list) await ask(route.path, target);
      await ask(route.path, target, 'OPTIONS');
    }),
  );
  return samples;
}

/** A path of a record that is in some list; undefined where none has what the path names. */
function fillPath({ path }: Route, lists: readonly unknown[]): string | undefined {
  const records = lists.flatMap((list) => recordsOf(list).slice(0, 1));
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name);
  const record = records.find((candidate) => names.every((name) => Object.hasOwn(candidate, name)));
  if (!record && names.length > 0) return undefined;
  return path.replace(/:(\w+)/g, (_all, name: string) =>
    encodeURIComponent(String(Reflect.get(record ?? {}, name))),
  );
}

/** The records of a page, if it is one. */
export function recordsOf(sample: unknown): readonly object[] {
  const results = typeof sample === 'object' && sample !== null && Reflect.get(sample, 'results');
  return Array.isArray(results) ? results.filter((record) => record instanceof Object) : [];
}

function shorten(body: object): object {
  const records = recordsOf(body);
  return records.length > maxRecords ? { ...body, results: records.slice(0, maxRecords) } : body;
}
