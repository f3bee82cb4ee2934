// Parses the requests of an access log: common, combined, JSON or W3C format.
import type { Readable } from 'node:stream';
import { messageOf } from '../../errors.ts';
import { openInput, readLines } from '../../old-listing/lines.ts';
import { SourceError } from '../../old-listing/page.ts';

export interface LoggedRequest {
  readonly method: string;
  /** The request target, undecoded, as Latin-1: a character per byte. */
  readonly target: string;
}

interface LogLine {
  readonly where: string;
  readonly request: LoggedRequest | undefined;
}

const maxLine = 1024 * 1024;
const colours = new RegExp(`${String.fromCharCode(27)}\\[[\\d;]*m`, 'g');

/** @throws SourceError when it cannot be read */
export async function* readAccessLog(
  file: string,
  stdin: Readable,
  signal: AbortSignal,
): AsyncGenerator<LogLine> {
  let w3cFields: readonly string[] | undefined;
  try {
    for await (const { number, bytes } of readLines(
      await openInput(file, stdin, signal),
      maxLine,
    )) {
      // Some programs colour their lines.
      const line = bytes?.toString('latin1').replace(colours, '').trim();
      if (line === '') continue;
      if (line?.startsWith('#')) {
        w3cFields = /^#fields:\s*(.+)/i.exec(line)?.[1]?.toLowerCase().split(/\s+/) ?? w3cFields;
        continue;
      }
      const read = (text: string) =>
        w3cFields ? parseW3cLine(text, w3cFields) : parseLogLine(text);
      const request = line === undefined ? undefined : read(line);
      yield { where: `${file}:${number}`, request };
    }
  } catch (error) {
    signal.throwIfAborted();
    throw new SourceError(`${file} cannot be read (${messageOf(error)}).`);
  }
}

/** `GET /path HTTP/1.1`; without a version that of HTTP/0.9, or the default line of uWSGI. */
const requestLine = /(?:^|["\s])([A-Z]{3,20}) (\S+)(?= HTTP\/[\d.]+|"| => generated |$)/;
/** The router of Heroku. */
const routerLine = / method=([A-Z]{3,20}) path="([^"]+)"/;

/** A line in common or combined format, also with further fields, or a JSON object. */
function parseLogLine(line: string): LoggedRequest | undefined {
  const json = line.indexOf('{');
  // Container runtimes put a prefix before the line of a program; in an array, a comma follows.
  const found =
    json !== -1 && /\},?$/.test(line)
      ? parseJsonLine(line.slice(json).replace(/,$/, ''))
      : undefined;
  if (found) return found;
  const [, method, target] = requestLine.exec(line) ?? routerLine.exec(line) ?? [];
  return method && target ? toRequest(method, decodeEscapes(target)) : undefined;
}

/** The fields that a line `#Fields:` names, of IIS and CloudFront. @see https://www.w3.org/TR/WD-logfile */
function parseW3cLine(line: string, names: readonly string[]): LoggedRequest | undefined {
  const values = line.split(line.includes('\t') ? '\t' : ' ');
  const find = (name: string) => {
    const value = values[names.indexOf(name)];
    return value === '-' ? undefined : value;
  };
  const [method, path] = [find('cs-method'), find('cs-uri-stem') ?? find('cs-uri')];
  if (method === undefined || path === undefined) return undefined;
  const query = find('cs-uri-query');
  return toRequest(method, query === undefined ? path : `${path}?${query}`);
}

/** nginx and Apache escape quotes and non-ASCII bytes as `\x22`, Apache also as `\"`. */
function decodeEscapes(text: string): string {
  return text.replace(/\\(?:x([0-9a-fA-F]{2})|(["\\]))/g, (_all, code?: string, letter?: string) =>
    code ? String.fromCharCode(Number.parseInt(code, 16)) : (letter ?? ''),
  );
}

/** Names of fields in lower case, without separators, the most specific first. */
const names = (text: string) => text.split(' ');
// Of nginx, Caddy, Traefik, Fastify and pino, Apache, AWS and others.
const methods = names(
  'method requestmethod httpmethod clientrequestmethod httprequestmethod verb csmethod',
);
const targets = names(
  'requesturi clientrequesturi urloriginal requestpath requesturl uri url originalurl original target path urlpath',
);
const queries = names('query querystring args requestquery urlquery');

function parseJsonLine(line: string): LoggedRequest | undefined {
  const fields = new Map<string, string>();
  try {
    // nginx with escape=default writes `\\x22`, which JSON does not have.
    const escaped = line.replace(/\\x([0-9A-Fa-f]{2})/g, '\\u00$1');
    JSON.parse(Buffer.from(escaped, 'latin1').toString(), (key, value) => {
      // What stands further out comes later.
      if (typeof value === 'string') fields.set(normalize(key), toBytes(value));
    });
  } catch {
    return undefined;
  }

  // A request line is preferred: a server may have rewritten the other fields. Docker and log collectors wrap whole lines.
  for (const value of fields.values()) {
    const request = parseLogLine(value.trim());
    if (request) return request;
  }
  const find = (names: readonly string[]) =>
    names.map((name) => fields.get(name)).find((value) => value !== undefined);
  const [method, target, query] = [find(methods), find(targets), find(queries)];
  if (method === undefined || target === undefined) return undefined;
  const asked = query && !target.includes('?') ? `${target}?${query.replace(/^\?/, '')}` : target;
  return toRequest(method.toUpperCase(), asked);
}

const normalize = (name: string) => name.toLowerCase().replace(/[._-]/g, '');
const toBytes = (text: string) => Buffer.from(text).toString('latin1');

/** The absolute form of a target, as proxies get it, becomes the origin form. @see RFC 9112 §3.2 */
function toRequest(method: string, target: string): LoggedRequest | undefined {
  const path = target.replace(/^https?:\/\/[^/?#]+/i, '').replace(/#.*$/, '');
  if (path.startsWith('/')) return { method, target: path };
  return path === '' || path.startsWith('?') ? { method, target: `/${path}` } : undefined;
}
