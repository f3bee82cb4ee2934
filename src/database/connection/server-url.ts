// URL of a PostgreSQL server. pg-connection-string reads it as libpq does; what it drops silently, or takes for something
// else, is refused here in a sentence. No sentence repeats the password.
// @see https://www.postgresql.org/docs/current/libpq-connect.html
import { isIPv6 } from 'node:net';
import type pg from 'pg';
import { parse } from 'pg-connection-string';
import { ConfigError } from '../../config/config.ts';
import { parseUrl } from '../../config/values.ts';
import { messageOf } from '../../errors.ts';

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
const file = anything;
const number = /^-?\d+$/;
const tlsModes = 'disable, require, verify-ca, verify-full';
/** What is followed. */
const followed: Readonly<Record<string, RegExp>> = {
  ...{ user: anything, password: anything, host: /^[^@,]*$/, port: /^\d{1,5}$/, dbname: anything },
  ...{ application_name: anything, options: anything },
  ...{ sslmode: anything, sslrootcert: file, sslcert: file, sslkey: file, sslpassword: anything },
  // `ssl` is JDBC's, and libpq accepts it as well. Prisma's are `pgbouncer`, which is read with the settings, and `schema`.
  ...{ sslnegotiation: /^(?:postgres|direct)$/, ssl: anything, pgbouncer: /^(?:true|false)$/ },
  schema: /^[^\0@]+$/,
};
/** What is taken and changes nothing: the gateway does so anyway, or has time limits and keep-alives of its own. */
const without: Readonly<Record<string, RegExp>> = {
  ...{ connect_timeout: number, tcp_user_timeout: number, keepalives: /^[01]$/ },
  ...{ keepalives_idle: number, keepalives_interval: number, keepalives_count: number },
  ...{ client_encoding: /^(?:utf-?8|auto)$/i, fallback_application_name: anything },
  ...{ channel_binding: /^(?:disable|prefer)$/, gssencmode: /^(?:disable|prefer)$/ },
  ...{
    krbsrvname: anything,
    gsslib: anything,
    gssdelegation: /^0$/,
    replication: /^(?:false|off|no|0)$/,
  },
  ...{ sslcompression: /^[01]$/, sslsni: /^1$/, ssl_min_protocol_version: /^TLSv1(?:\.[12])?$/ },
  ...{ target_session_attrs: /^(?:any|read-write|primary)$/, load_balance_hosts: /^disable$/ },
  // It asks `pg` for what is always done here.
  uselibpqcompat: anything,
};
const parameters = { ...followed, ...without };

const severalHosts = 'names several hosts: name one, which always leads to the primary server';
const unescaped =
  'is cut short by a character of its user or password: write % as %25, / as %2F, ? as %3F, # as %23, @ as %40, : as %3A';

/** An error that begins with the name of the setting. */
type Wrong = (sentence: string) => ConfigError;
type Parameters = Readonly<Record<string, string | undefined>>;

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
  const { username, password, hostname, pathname, hash } = url;
  const database = decode(pathname.slice(1));
  const isEscaped = [username, password, hostname].every((part) => decode(part) !== undefined);
  if (!isEscaped || database === undefined || /[@/]/.test(pathname.slice(1)) || hash !== '') {
    throw wrong(unescaped);
  }
  const given = readParameters(url, wrong);
  const { config, host, port } = parseWithTls(text, given, wrong);
  if (host.includes(',')) throw wrong(severalHosts);
  const named = given['dbname'] || database;
  const name = `${isIPv6(host) ? `[${host}]` : host || 'localhost'}${port && `:${port}`}`;
  return {
    config: { ...config, database: named },
    name,
    description: `PostgreSQL database ${named && `${named} `}on ${name}`,
  };
}

/** Undefined: a percent sign that escapes nothing. */
function decode(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}

function parseWithTls(text: string, given: Parameters, wrong: Wrong) {
  const mode = readTlsMode(given, wrong);
  const query = new URLSearchParams();
  for (const [name, value = ''] of Object.entries({ ...given, sslmode: mode })) {
    const isDropped = name === 'ssl' || (name === 'sslrootcert' && value === 'system');
    if (Object.hasOwn(followed, name) && value !== '' && !isDropped) query.set(name, value);
  }
  try {
    const read = parse(`${text.split('?', 1)}?${query}`, { useLibpqCompat: true });
    const { host, port, user, password, ssl, options } = read;
    const passphrase = given['sslpassword'];
    const config = {
      ...{ host, user, password },
      ...(port && { port: Number(port) }),
      application_name: given['application_name'] || 'outfit-gateway',
      ...(options && { options }),
      ...(given['schema'] && { schema: given['schema'] }),
      // Not undefined: `pg` would read PGSSLMODE.
      ssl: ssl ? { ...Object(ssl), ...(passphrase && { passphrase }) } : false,
      ...(given['sslnegotiation'] === 'direct' && { sslnegotiation: 'direct' }),
    } as ServerConfig;
    return { config, host: host ?? '', port: port ?? '' };
  } catch (error) {
    throw wrong(`names a file that cannot be read (${messageOf(error)}): correct its path`);
  }
}

/** Refuses what would be less than it says. @throws ConfigError */
function readTlsMode(given: Parameters, wrong: Wrong): string | undefined {
  const { ssl, sslrootcert: root, sslcert: cert, sslkey: key, sslnegotiation } = given;
  const mode = given['sslmode'] ?? (ssl === 'true' ? 'require' : undefined);
  if (mode === undefined) {
    if (!Object.keys(given).some((name) => name.startsWith('ssl') && name in followed)) return mode;
    throw wrong(`says something of TLS, but not sslmode: add one of ${tlsModes}`);
  }
  if (mode === 'prefer' || mode === 'allow') {
    throw wrong(
      `has sslmode=${mode}, which anyone on the way can turn into no TLS: use one of ${tlsModes}`,
    );
  }
  if (!tlsModes.split(', ').includes(mode))
    throw wrong(`has sslmode=${mode}: use one of ${tlsModes}`);
  const isPlain = mode === 'disable';
  const refused = (isWrong: boolean, sentence: string) => {
    if (isWrong) throw wrong(sentence);
  };
  const conflict = 'with sslmode=disable: keep one of them';
  refused(isPlain && (ssl ?? 'false') !== 'false', `has ssl=${ssl} ${conflict}`);
  refused(isPlain && sslnegotiation === 'direct', `has sslnegotiation=direct ${conflict}`);
  refused(!cert !== !key, 'has one of sslcert and sslkey: they go together');
  refused(
    root === 'system' && mode !== 'verify-full',
    `has sslrootcert=system with sslmode=${mode}: use sslmode=verify-full`,
  );
  refused(
    mode === 'verify-ca' && !root,
    'has sslmode=verify-ca without sslrootcert: name the file of the certificate',
  );
  return mode;
}

function readParameters({ searchParams }: URL, wrong: Wrong): Parameters {
  const given: Record<string, string> = {};
  for (const [name, value] of searchParams) {
    const lower = name.toLowerCase();
    const isKnown = Object.hasOwn(parameters, lower);
    const isTaken = isKnown && parameters[name]?.test(value) === true;
    // The rest of a password that has a question mark.
    if (name.includes('@') || (!isTaken && value.includes('@'))) throw wrong(unescaped);
    if (isKnown && name !== lower) throw wrong(`has ${name}: write it as ${lower}`);
    if (Object.hasOwn(given, name)) throw wrong(`has ${name} twice: keep one of them`);
    if (name === 'host' && value.includes(',')) throw wrong(severalHosts);
    if (!isTaken) throw wrong(describeRefused(name, value));
    given[name] = value;
  }
  return given;
}

function describeRefused(name: string, value: string): string {
  const instead = name === 'connection_limit' ? 'set DATABASE_POOL_MAX instead' : 'leave it out';
  return Object.hasOwn(parameters, name)
    ? `has ${name}=${value}, which the gateway cannot do: ${instead}`
    : `has ${name}, which the gateway does not know: ${instead}`;
}
