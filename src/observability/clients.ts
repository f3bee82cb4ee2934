// Client identification: name and version of the app that sends a request, from headers that are not authenticated. For
// the log, traces and metrics, never for authorization. And a bound on the number of names that clients choose.
import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { LRUCache } from 'lru-cache';

export interface Client {
  /** `unknown` without a header. */
  readonly name: string;
  readonly version: string;
}

const unknown: Client = { name: 'unknown', version: 'unknown' };
const maxLength = 64;

/** Headers repeat: parsing them per request took longer than all the counting. Bytes, roughly. */
const parsed = new LRUCache<string, Client>({ maxSize: 1_000_000 });

export function clientOf({ headers }: { readonly headers: IncomingHttpHeaders }): Client {
  const names = ['apollographql-client', 'x-client'].map((prefix) => [
    headers[`${prefix}-name`],
    headers[`${prefix}-version`] ?? '',
  ]);
  const agent = headers['user-agent'] ?? '';
  const key = [...names.flat(), agent].join('\n');
  const cached = parsed.get(key);
  if (cached) return cached;
  const client =
    names.map(([name, version]) => identityOf(name, version)).find((named) => named) ??
    productOf(agent) ??
    unknown;
  parsed.set(key, client, { size: 500 + 2 * key.length });
  return client;
}

function productOf(userAgent: string): Client | undefined {
  const product = /^\s*Mozilla\//.test(userAgent) ? browserIn(userAgent) : userAgent;
  const [, name = '', version = ''] = /^\s*([^\s/()]+)(?:\/([^\s()]+))?/.exec(product) ?? [];
  return identityOf(name, version);
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

function identityOf(name: unknown, version: unknown): Client | undefined {
  const shown = sanitizeName(decode(name)).trim();
  if (shown === '') return undefined;
  return { name: shown, version: sanitizeName(decode(version)).trim() || unknown.version };
}

/** Node decodes headers as Latin-1; apps send UTF-8. */
function decode(header: unknown): string {
  if (typeof header !== 'string') return '';
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
const other = 'other';

/** Milliseconds without a request after which a name makes room for a new one. */
const idleTimeout = 600_000;

/** One value for each name up to a maximum; other names share one. */
export class BoundedNames<Value extends object> {
  readonly #values: LRUCache<string, Value>;
  #other: Value | undefined;

  constructor(
    private readonly max: number,
    private readonly create: (name: string) => Value,
  ) {
    // Who is idle stays until there is no room.
    const kept = { allowStale: true, noDeleteOnStaleGet: true, ttlResolution: 0 };
    this.#values = new LRUCache({ max, ttl: idleTimeout, ...kept });
  }

  /** The value of a name that is in use. */
  get(name: string): Value {
    const known = this.#values.get(name);
    if (!known && this.#isFull()) {
      this.#other ??= this.create(other);
      return this.#other;
    }
    const value = known ?? this.create(name);
    this.#values.set(name, value);
    return value;
  }

  /** With an idle name it is not: a new one then takes the place of the one that has been idle for the longest. */
  #isFull(): boolean {
    const [oldest = ''] = this.#values.rkeys();
    return this.#values.size === this.max && this.#values.getRemainingTTL(oldest) > 0;
  }

  *values(): Generator<Value> {
    for (const value of this.#values.rvalues()) if (value) yield value;
    if (this.#other !== undefined) yield this.#other;
  }
}
