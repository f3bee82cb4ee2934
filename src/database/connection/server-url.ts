// URL of a PostgreSQL server: each parameter is followed, or refused in a sentence. No sentence repeats the password.
import type pg from 'pg';
import { ConfigError, parseUrl } from '../../config.ts';
import { readTls, type Wrong } from './tls.ts';

/** The schema is the search path; undefined: that of the role. */
export type ServerConfig = pg.ClientConfig & { readonly schema?: string };

export interface ServerUrl {
  readonly config: ServerConfig;
  /** For the log; without the password. */
  readonly description: string;
  /** Host and port. */
  readonly name: string;
}

const anything = /^/;
/** What a parameter may say: what is followed, and what asks for nothing. */
const parameters: Readonly<Record<string, RegExp>> = {
  ...{ user: anything, password: anything, host: /^[^@,]*$/, port: /^\d{1,5}$/, dbname: anything },
  ...{ application_name: anything, options: anything, client_encoding: /^utf-?8$/i },
  // Prisma's. `pgbouncer` is read with the settings.
  ...{ pgbouncer: /^(?:true|false)$/, schema: /^[^\0@]+$/ },
  ...{ channel_binding: /^(?:disable|prefer)$/, gssencmode: /^(?:disable|prefer)$/ },
  target_session_attrs: /^any$/,
};
const tlsParameters = [
  ...['sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'sslpassword', 'sslnegotiation'],
  // JDBC's, which libpq accepts as well; and the one that asks `pg` for what is always done here.
  ...['ssl', 'uselibpqcompat'],
];

const severalHosts = 'names several hosts: name one, which always leads to the primary server';
const unescaped =
  'is cut short by a character of its user or password: write % as %25, / as %2F, ? as %3F, # as %23, @ as %40, : as %3A';

/** @param setting that has the URL @throws ConfigError */
export function readServerUrl(text: string, setting = 'DATABASE_URL'): ServerUrl {
  const wrong: Wrong = (sentence) => new ConfigError(`${setting} ${sentence}.`);
  const [start = '', authority = ''] = /^\w+:\/\/([^/?#]*)/.exec(text) ?? [];
  // As libpq, for a host among the parameters: user@/database.
  const url = parseUrl(text) ?? parseUrl(text.replace(`${start}/`, `${start}localhost/`));
  if (!url) {
    const isCut = text.slice(start.length).includes('@');
    if (!isCut && authority.includes(',')) throw wrong(severalHosts);
    throw wrong(isCut ? unescaped : 'is not a URL such as postgresql://user@host:5432/database');
  }
  if (/[@/]/.test(url.pathname.slice(1)) || url.hash !== '') throw wrong(unescaped);
  const given = readParameters(url, wrong);
  const decode = (part: string) => {
    try {
      return decodeURIComponent(part);
    } catch {
      throw wrong(unescaped);
    }
  };
  const host = given['host'] || (authority.endsWith('@') ? '' : decode(url.hostname));
  if (host.includes(',')) throw wrong(severalHosts);
  const port = given['port'] || url.port;
  const database = given['dbname'] || decode(url.pathname.slice(1));
  const config = {
    host: host.replace(/^\[(.*)\]$/, '$1'),
    ...(port && { port: Number(port) }),
    user: given['user'] || decode(url.username),
    password: given['password'] || decode(url.password),
    database,
    application_name: given['application_name'] || 'outfit-gateway',
    ...(given['options'] && { options: given['options'] }),
    ...(given['schema'] && { schema: given['schema'] }),
    ...readTls(given, wrong),
  };
  const name = `${host || 'localhost'}${port && `:${port}`}`;
  return { config, name, description: `PostgreSQL database ${database} on ${name}` };
}

type Parameters = Readonly<Record<string, string | undefined>>;

function readParameters({ searchParams }: URL, wrong: Wrong): Parameters {
  const given: Record<string, string> = {};
  for (const [name, value] of searchParams) {
    const lower = name.toLowerCase();
    const isKnown = tlsParameters.includes(lower) || Object.hasOwn(parameters, lower);
    const isFollowed = isKnown && parameters[name]?.test(value) !== false;
    // The rest of a password that has a question mark.
    if (name.includes('@') || (!isFollowed && value.includes('@'))) throw wrong(unescaped);
    if (isKnown && name !== lower) throw wrong(`has ${name}: write it as ${lower}`);
    if (Object.hasOwn(given, name)) throw wrong(`has ${name} twice: keep one of them`);
    if (name === 'host' && value.includes(',')) throw wrong(severalHosts);
    if (!isFollowed) {
      throw wrong(describeUnknown(name, value));
    }
    given[name] = value;
  }
  return given;
}

function describeUnknown(name: string, value: string): string {
  const instead = name === 'connection_limit' ? 'set DATABASE_POOL_MAX instead' : 'leave it out';
  if (Object.hasOwn(parameters, name)) {
    return `has ${name}=${value}, which the gateway cannot do: ${instead}`;
  }
  return `has ${name}, which the gateway does not know: ${instead}`;
}
