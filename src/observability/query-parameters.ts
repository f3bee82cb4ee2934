// Names of query parameters, for counting; never their values.
import { LRUCache } from 'lru-cache';
import { showable } from './clients.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Query parameters that the route reads; undefined: it reads none of its own. */
    readonly knownParameters?: ReadonlySet<string>;
  }
}

/** Most names that are looked at in one query string. */
const maxParameters = 50;
/** Bytes that remembered addresses may take, about. */
const maxMemory = 1_000_000;
const none: readonly string[] = [];

/**
 * Makes a function that gives the names in the query string of an address, each once, in their order,
 * as they may be shown.
 */
export function createParameterReader(): (url: string) => readonly string[] {
  const remembered = new LRUCache<string, readonly string[]>({ maxSize: maxMemory });
  return (url) => {
    const start = url.indexOf('?');
    if (start === -1) return none;
    const known = remembered.get(url);
    if (known) return known;
    const names = new Set<string>();
    for (const name of new URLSearchParams(url.slice(start).split('#', 1)[0]).keys()) {
      names.add(showable(name));
      if (names.size === maxParameters) break;
    }
    const list = [...names];
    remembered.set(url, list, { size: 500 + 2 * url.length });
    return list;
  };
}
