// Client identification: name and version of the app that sends a request, from headers that are not authenticated.
import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { LRUCache } from 'lru-cache';
import { BoundedNames, other } from './bounded-names.ts';

/** A client, one object until it is evicted: counters may use it as a key. */
export interface Client {
  /** `unknown` without a header; `other` beyond the limit of names. */
  readonly name: string;
  readonly version: string;
}

const unknown = 'unknown';
export const maxNames = 50;
const maxVersions = 10;
const maxLength = 64;
/** Bytes of the cache of parsed headers, roughly. */
const maxMemory = 1_000_000;

/** Identifies clients by their headers: for statistics, never for authorization. */
export class Clients {
  readonly #names = new BoundedNames(maxNames, (name) => ({
    name,
    versions: new BoundedNames(name === other ? 0 : maxVersions, (version): Client => {
      return { name, version };
    }),
  }));
  /** Headers repeat: parsing them per request took longer than all the counting. */
  readonly #parsed = new LRUCache<string, Client | false>({ maxSize: maxMemory });

  /** The client of a request, which is counted. At most 51 names with at most 11 versions each. */
  count({ headers }: { readonly headers: IncomingHttpHeaders }): Client {
    const now = Date.now();
    const { name, version } = this.#identify(headers);
    return this.#names.count(name, now).versions.count(version, now);
  }

  /** The client of a request that is counted elsewhere. */
  lookup({ headers }: { readonly headers: IncomingHttpHeaders }): Client {
    const now = Date.now();
    const { name, version } = this.#identify(headers);
    return this.#names.lookup(name, now).versions.lookup(version, now);
  }

  get evicted(): number {
    return this.#names.evicted;
  }

  *[Symbol.iterator](): Generator<Client> {
    for (const { versions } of this.#names.values()) yield* versions.values();
  }

  #identify(headers: IncomingHttpHeaders): Client {
    return (
      this.#named(headers['apollographql-client-name'], headers['apollographql-client-version']) ||
      this.#named(headers['x-client-name'], headers['x-client-version']) ||
      this.#product(headers['user-agent']) || { name: unknown, version: unknown }
    );
  }

  #named(name: string | string[] | undefined, version: string | string[] = ''): Client | false {
    if (typeof name !== 'string') return false;
    return this.#parse(`${name}\n${version}`, () => identityOf(name, String(version)));
  }

  #product(userAgent: string | undefined): Client | false {
    if (userAgent === undefined) return false;
    return this.#parse(userAgent, () => {
      const [, name = '', version = ''] = /^\s*([^\s/()]+)(?:\/([^\s()]+))?/.exec(userAgent) ?? [];
      return identityOf(name, version);
    });
  }

  #parse(key: string, read: () => Client | false): Client | false {
    const cached = this.#parsed.get(key);
    if (cached !== undefined) return cached;
    const identity = read();
    this.#parsed.set(key, identity, { size: 500 + 2 * key.length });
    return identity;
  }
}

function identityOf(name: string, version: string): Client | false {
  const shown = sanitizeName(decode(name)).trim();
  return shown !== '' && { name: shown, version: sanitizeName(decode(version)).trim() || unknown };
}

/** Node decodes headers as Latin-1; apps send UTF-8. */
function decode(header: string): string {
  const bytes = Buffer.from(header, 'latin1');
  return isUtf8(bytes) ? bytes.toString('utf8') : header;
}

/** Sanitizes a name for a log: 64 characters at most; control and formatting characters become U+FFFD. */
export function sanitizeName(name: string): string {
  // Truncated first, as a header may have 16 KiB; by code points, so that no surrogate pair is split.
  const start = [...name.slice(0, 2 * maxLength)].slice(0, maxLength).join('');
  return start.replace(/[^\p{L}\p{M}\p{N}\x20-\x7e]/gu, '\ufffd');
}
