// TLS of DATABASE_URL, as PostgreSQL's own programs understand it; `pg` takes some of it otherwise.
import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import type pg from 'pg';
import { ConfigError } from '../config.ts';
import { messageOf } from '../errors.ts';

const modes = ['disable', 'require', 'verify-ca', 'verify-full'] as const;
type Mode = (typeof modes)[number];

const known = [
  ...['sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'sslpassword', 'sslnegotiation'],
  // That of JDBC, which PostgreSQL's own programs take too.
  'ssl',
  // What it asks of `pg` holds here anyway.
  'uselibpqcompat',
];

/**
 * Takes all that is about TLS out of the URL.
 * @returns nothing when the URL says nothing of it
 * @throws ConfigError in one sentence, when it cannot be done as it is said
 */
export function readTls(url: URL): Pick<pg.ClientConfig, 'ssl' | 'sslnegotiation'> {
  const given = new Map<string, string>();
  for (const [name, value] of [...url.searchParams]) {
    if (!name.startsWith('ssl') && !known.includes(name)) continue;
    if (!known.includes(name))
      throw wrong(`has ${name}, which the gateway does not know: leave it out`);
    given.set(name, value);
    url.searchParams.delete(name);
  }
  const mode = readMode(given);
  const isDirect = readNegotiation(given, mode);
  if (mode === undefined) return {};
  if (mode === 'disable') return { ssl: false };
  return { ssl: optionsOf(mode, given), ...(isDirect ? { sslnegotiation: 'direct' } : {}) };
}

function readMode(given: ReadonlyMap<string, string>): Mode | undefined {
  const said = given.get('sslmode') ?? (given.get('ssl') === 'true' ? 'require' : undefined);
  const isNamed = [...given.keys()].some((name) => name !== 'uselibpqcompat');
  if (said === undefined) {
    if (isNamed) throw wrong(`says something of TLS, but not sslmode: add one of ${list}`);
    return undefined;
  }
  const mode = modes.find((name) => name === said);
  if (mode) return mode;
  throw said === 'prefer' || said === 'allow'
    ? wrong(`has sslmode=${said}, which anyone on the way can turn into no TLS: use one of ${list}`)
    : wrong(`has sslmode=${said}: use one of ${list}`);
}

const list = modes.join(', ');

function readNegotiation(given: ReadonlyMap<string, string>, mode: Mode | undefined): boolean {
  const said = given.get('sslnegotiation') ?? 'postgres';
  if (said !== 'postgres' && said !== 'direct') {
    throw wrong(`has sslnegotiation=${said}: use postgres or direct`);
  }
  if (said === 'direct' && mode === 'disable') {
    throw wrong('has sslnegotiation=direct with sslmode=disable: keep one of them');
  }
  return said === 'direct';
}

function optionsOf(mode: Mode, given: ReadonlyMap<string, string>): ConnectionOptions {
  const root = given.get('sslrootcert');
  const ownCertificate = readOwnCertificate(given);
  if (root === 'system' && mode !== 'verify-full') {
    throw wrong(`has sslrootcert=system with sslmode=${mode}: use sslmode=verify-full`);
  }
  if (root === undefined || root === 'system') {
    if (mode === 'verify-ca') {
      throw wrong('has sslmode=verify-ca without sslrootcert: name the file of the certificate');
    }
    // Without a file, the certificates that Node.js trusts.
    return { ...ownCertificate, rejectUnauthorized: mode === 'verify-full' };
  }
  return {
    ...ownCertificate,
    ca: readText('sslrootcert', root),
    // With a file, `require` is `verify-ca`: whoever has a certificate of it, under any name.
    ...(mode === 'verify-full' ? {} : { checkServerIdentity: () => undefined }),
  };
}

function readOwnCertificate(given: ReadonlyMap<string, string>): ConnectionOptions {
  const certificate = given.get('sslcert');
  const key = given.get('sslkey');
  if ((certificate === undefined) !== (key === undefined)) {
    throw wrong('has one of sslcert and sslkey: they go together');
  }
  if (certificate === undefined || key === undefined) return {};
  const passphrase = given.get('sslpassword');
  return {
    cert: readText('sslcert', certificate),
    key: readText('sslkey', key),
    ...(passphrase === undefined ? {} : { passphrase }),
  };
}

function readText(name: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw wrong(
      `names a file as ${name} that cannot be read (${messageOf(error)}): correct its path`,
    );
  }
}

function wrong(sentence: string): ConfigError {
  return new ConfigError(`DATABASE_URL ${sentence}.`);
}
