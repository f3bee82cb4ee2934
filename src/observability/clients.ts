// Client identification: name and version of the app that sends a request, from headers that are not authenticated.
// Bounded cardinality: each name costs memory and a line of the metrics, so a limited number is counted separately.
import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { LRUCache } from 'lru-cache';

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
      const product = /^\s*Mozilla\//.test(userAgent) ? browserIn(userAgent) : userAgent;
      const [, name = '', version = ''] = /^\s*([^\s/()]+)(?:\/([^\s()]+))?/.exec(product) ?? [];
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

const engines = /^(?:Mozilla|AppleWebKit|Gecko|Mobile|Version|Safari)(?:\/|$)/;

/** The product of a browser, an app in a browser, or a robot, which all begin with `Mozilla/5.0`. */
function browserIn(userAgent: string): string {
  const text = userAgent.slice(0, 512);
  const products = text.replace(/\([^)]*\)?/g, ' ').split(/\s+/);
  const own = products.findLast((product) => product !== '' && !engines.test(product));
  const safari = products.find((product) => /^(?:Version|Safari)\//.test(product));
  const [, robot] = /\(compatible; ([^;)\s]+)/.exec(text) ?? [];
  return own ?? safari?.replace('Version', 'Safari') ?? robot ?? text;
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

/** The name under which names beyond the limit are counted together. */
export const other = 'other';

/** Requests from which on a name counts as established, not as noise. */
const established = 100;
/** Milliseconds without a request after which a name may be evicted for a new one. */
const idleTimeout = { passing: 60_000, established: 86_400_000 };

interface Entry<Value> {
  readonly value: Value;
  requests: number;
  lastSeen: number;
}

/** One value per name up to a maximum; other names share one. Evicts idle names: after a day, or a minute if rare. */
export class BoundedNames<Value> {
  readonly #entries = new Map<string, Entry<Value>>();
  #other: Value | undefined;
  /** Names that were evicted. */
  evicted = 0;
  /** Time of the next possible eviction, so that a flood of names does not cost a search per request. */
  #fullUntil = 0;

  constructor(
    private readonly max: number,
    private readonly create: (name: string) => Value,
  ) {}

  /** The value of a name, and counts a request. */
  count(name: string, now: number): Value {
    return this.#find(name, now, 1);
  }

  /** The value of a name whose request is counted elsewhere, as when it is logged. */
  lookup(name: string, now: number): Value {
    return this.#find(name, now, 0);
  }

  #find(name: string, now: number, requests: number): Value {
    const entry = this.#entries.get(name);
    if (entry) {
      entry.requests += requests;
      entry.lastSeen = now;
      return entry.value;
    }
    if (name === other || !this.#makeRoom(now)) {
      this.#other ??= this.create(other);
      return this.#other;
    }
    const value = this.create(name);
    this.#entries.set(name, { value, requests, lastSeen: now });
    return value;
  }

  *values(): Generator<Value> {
    for (const { value } of this.#entries.values()) yield value;
    if (this.#other !== undefined) yield this.#other;
  }

  #makeRoom(now: number): boolean {
    if (this.#entries.size < this.max) return true;
    if (now < this.#fullUntil) return false;
    let idlest: string | undefined;
    let earliest = Number.POSITIVE_INFINITY;
    for (const [name, { requests, lastSeen }] of this.#entries) {
      const until = lastSeen + idleTimeout[requests < established ? 'passing' : 'established'];
      if (until < earliest) [idlest, earliest] = [name, until];
    }
    if (idlest === undefined || now < earliest) {
      this.#fullUntil = earliest;
      return false;
    }
    this.#entries.delete(idlest);
    this.evicted += 1;
    return true;
  }
}
