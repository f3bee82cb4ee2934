// Which client sends a request: name and version, from headers that nobody has checked.
import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { LRUCache } from 'lru-cache';
import { BoundedNames, other } from './bounded-names.ts';

/** A client that is told apart; always the same object for as long as it is. */
export interface Client {
  /** `unknown` when the request does not say; `other` for those that are not told apart. */
  readonly name: string;
  readonly version: string;
}

const unknown = 'unknown';
export const maxNames = 50;
const maxVersions = 10;
const maxLength = 64;
/** Bytes that remembered headers may take, about. */
const maxMemory = 1_000_000;

/** Tells clients apart by what they claim in headers: for counting, never for deciding who may do what. */
export class Clients {
  readonly #names = new BoundedNames(maxNames, (name) => ({
    name,
    versions: new BoundedNames(name === other ? 0 : maxVersions, (version): Client => {
      return { name, version };
    }),
  }));
  /** Headers are few and come again: reading them anew took longer than all the counting. */
  readonly #remembered = new LRUCache<string, Client | false>({ maxSize: maxMemory });

  /** Counts a request. At most 51 names, each with at most 11 versions, at a time. */
  of({ headers }: { readonly headers: IncomingHttpHeaders }, requests = 1): Client {
    const now = Date.now();
    const { name, version } = this.#identify(headers);
    return this.#names.take(name, now, requests).versions.take(version, now, requests);
  }

  /** The same, when the request is not to be counted, or has been. */
  peek(request: { readonly headers: IncomingHttpHeaders }): Client {
    return this.of(request, 0);
  }

  get forgotten(): number {
    return this.#names.forgotten;
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
    return this.#remember(`${name}\n${version}`, () => identityOf(name, String(version)));
  }

  #product(userAgent: string | undefined): Client | false {
    if (userAgent === undefined) return false;
    return this.#remember(userAgent, () => {
      const [, name = '', version = ''] = /^\s*([^\s/()]+)(?:\/([^\s()]+))?/.exec(userAgent) ?? [];
      return identityOf(name, version);
    });
  }

  #remember(key: string, read: () => Client | false): Client | false {
    const remembered = this.#remembered.get(key);
    if (remembered !== undefined) return remembered;
    const identity = read();
    this.#remembered.set(key, identity, { size: 500 + 2 * key.length });
    return identity;
  }
}

function identityOf(name: string, version: string): Client | false {
  const shown = showable(decode(name)).trim();
  return shown !== '' && { name: shown, version: showable(decode(version)).trim() || unknown };
}

/** Node reads headers as Latin-1; apps write UTF-8. */
function decode(header: string): string {
  const bytes = Buffer.from(header, 'latin1');
  return isUtf8(bytes) ? bytes.toString('utf8') : header;
}

/** At most 64 letters, digits and printable ASCII; what could control a terminal or turn a line becomes U+FFFD. */
export function showable(name: string): string {
  // Cut first, as a header may have 16 KiB; and by code points, so that none is left in halves.
  const start = [...name.slice(0, 2 * maxLength)].slice(0, maxLength).join('');
  return start.replace(/[^\p{L}\p{M}\p{N}\x20-\x7e]/gu, '\ufffd');
}
