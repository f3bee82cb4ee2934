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

/** A line in common or combined format, also with further fields, or a JSON object. */
function parseLogLine(line: string): LoggedRequest | undefined {
  const json = line.indexOf('{');
  // Container runtimes put a prefix before the line of a program; in an array, a comma follows.
  if (json !== -1 && /\},?$/.test(line)) {
    const request = parseJsonLine(line.slice(json).replace(/,$/, ''));
    if (request) return request;
  }
  const quoted = [...line.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, text = '']) => text);
  // HTTP/0.9 has no version, and a user agent may contain anything: the first match wins.
  const found = quoted.find((text) => / HTTP\/[\d.]+$/.test(text)) ?? quoted[0];
  const request = found === undefined ? undefined : parseRequestLine(decodeEscapes(found));
  return request ?? parseUnquoted(line);
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

/** The default line of uWSGI, `GET /path => generated 5 bytes`, that of the router of Heroku, `method=GET path="/path"`, or a request line alone. */
function parseUnquoted(line: string): LoggedRequest | undefined {
  const [, bare] =
    / ([A-Z]{3,20} \S+) => generated /.exec(line) ??
    /^([A-Z]{3,20} \S+(?: HTTP\/[\d.]+)?)$/.exec(line) ??
    [];
  if (bare) return parseRequestLine(bare);
  const [, method, target] = / method=([A-Z]{3,20}) path="([^"]+)"/.exec(line) ?? [];
  return method && target ? toRequest(method, target) : undefined;
}

/** `GET /path HTTP/1.1`; a target may contain unencoded spaces. */
function parseRequestLine(text: string): LoggedRequest | undefined {
  const [, method, target] = /^([A-Z]{3,20}) (\S.*?)(?: HTTP\/[\d.]+)?$/.exec(text) ?? [];
  return method && target ? toRequest(method, target) : undefined;
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
const requestLines = names('request requestline');
const methods = names(
  'method requestmethod httpmethod clientrequestmethod httprequestmethod verb csmethod',
);
const targets = names(
  'requesturi clientrequesturi urloriginal requestpath requesturl uri url originalurl original target path urlpath',
);
const queries = names('query querystring args requestquery urlquery');
const lines = names('log message msg');
const holders = names('request req http httprequest properties');

function parseJsonLine(text: string): LoggedRequest | undefined {
  let value: unknown;
  try {
    // nginx with escape=default writes `\\x22`, which JSON does not have.
    const escaped = text.replace(/\\x([0-9A-Fa-f]{2})/g, '\\u00$1');
    value = JSON.parse(Buffer.from(escaped, 'latin1').toString());
  } catch {
    return undefined;
  }
  const { own, others } = objectsIn(value);
  const found = own.map(requestOf).find((request) => request !== undefined);
  if (found) return found;
  // What stands further out comes first, and what holds a request before the rest.
  const fields = new Map([...own, ...others].reverse().flatMap((object) => [...object]));
  // Docker and log collectors wrap the line of a program in an object.
  for (const name of lines) {
    const line = fields.get(name);
    const inner = typeof line === 'string' ? parseLogLine(toBytes(line).trim()) : undefined;
    if (inner) return inner;
  }
  return requestOf(fields);
}

/** An object with those in it that hold a request, and all others in it; the outer ones first. */
function objectsIn(value: unknown) {
  const [own, others]: [unknown[], unknown[]] = [[value], []];
  for (const list of [own, others]) {
    // It grows meanwhile; recursion could overflow the stack.
    for (const object of list) {
      for (const [name, field] of toFields(object)) {
        if (typeof field !== 'object' || field === null) continue;
        (list === own && holders.includes(name) ? own : others).push(field);
      }
    }
  }
  return { own: own.map(toFields), others: others.map(toFields) };
}

function requestOf(fields: ReadonlyMap<string, unknown>): LoggedRequest | undefined {
  const find = (names: readonly string[]) =>
    names.map((name) => fields.get(name)).find((value) => typeof value === 'string');
  const line = find(requestLines);
  // The request line is preferred: a server may have rewritten the other fields.
  const whole = line && parseRequestLine(toBytes(decodeEscapes(line)));
  if (whole) return whole;
  const [method, target, query] = [find(methods), find(targets), find(queries)];
  if (method === undefined || target === undefined) return undefined;
  const asked = query && !target.includes('?') ? `${target}?${query.replace(/^\?/, '')}` : target;
  return toRequest(method.toUpperCase(), toBytes(asked));
}

const normalize = (name: string) => name.toLowerCase().replace(/[._-]/g, '');

function toFields(value: unknown): ReadonlyMap<string, unknown> {
  return new Map(Object.entries(Object(value)).map(([name, field]) => [normalize(name), field]));
}

const toBytes = (text: string) => Buffer.from(text).toString('latin1');

/** The absolute form of a target, as proxies get it, becomes the origin form. @see RFC 9112 §3.2 */
function toRequest(method: string, target: string): LoggedRequest | undefined {
  const path = target.replace(/^https?:\/\/[^/?#]+/i, '').replace(/#.*$/, '');
  if (path.startsWith('/')) return { method, target: path };
  return path === '' || path.startsWith('?') ? { method, target: `/${path}` } : undefined;
}
