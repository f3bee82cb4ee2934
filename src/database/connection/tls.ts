// TLS options of DATABASE_URL with their meaning in libpq: `pg` reads some of them differently.
// @see https://www.postgresql.org/docs/current/libpq-ssl.html
import { readFileSync } from 'node:fs';
import type tls from 'node:tls';
import type pg from 'pg';
import { ConfigError } from '../../config.ts';
import { messageOf } from '../../errors.ts';

const modes = 'disable, require, verify-ca, verify-full';

/** `ssl=true` is JDBC's, which libpq accepts as well. `uselibpqcompat` asks `pg` for what is always done here. */
const names = [
  ...['sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'sslpassword', 'sslnegotiation'],
  ...['ssl', 'uselibpqcompat'],
];

/** Reads the TLS options, and removes them from the URL; an empty object when there are none. @throws ConfigError */
export function readTls(url: URL): Pick<pg.ClientConfig, 'ssl' | 'sslnegotiation'> {
  const { ssl, uselibpqcompat: _, ...others } = takeOptions(url);
  const { sslmode: mode = ssl === 'true' ? 'require' : undefined, sslrootcert: root } = others;
  const { sslcert: cert, sslkey: key, sslpassword: passphrase } = others;
  const { sslnegotiation: negotiation = 'postgres' } = others;
  if (mode === undefined) {
    if (ssl === undefined && Object.keys(others).length === 0) return {};
    throw wrong(`says something of TLS, but not sslmode: add one of ${modes}`);
  }
  if (mode === 'prefer' || mode === 'allow') {
    throw wrong(
      `has sslmode=${mode}, which anyone on the way can turn into no TLS: use one of ${modes}`,
    );
  }
  if (!modes.split(', ').includes(mode)) throw wrong(`has sslmode=${mode}: use one of ${modes}`);
  if (negotiation !== 'postgres' && negotiation !== 'direct') {
    throw wrong(`has sslnegotiation=${negotiation}: use postgres or direct`);
  }
  if (mode === 'disable') {
    if (negotiation === 'postgres') return { ssl: false };
    throw wrong('has sslnegotiation=direct with sslmode=disable: keep one of them');
  }
  if ((cert === undefined) !== (key === undefined)) {
    throw wrong('has one of sslcert and sslkey: they go together');
  }
  if (root === 'system' && mode !== 'verify-full') {
    throw wrong(`has sslrootcert=system with sslmode=${mode}: use sslmode=verify-full`);
  }
  if (root === undefined && mode === 'verify-ca') {
    throw wrong('has sslmode=verify-ca without sslrootcert: name the file of the certificate');
  }
  const own = cert !== undefined &&
    key !== undefined && {
      cert: readText('sslcert', cert),
      key: readText('sslkey', key),
      ...(passphrase === undefined ? {} : { passphrase }),
    };
  return {
    ssl: { ...own, ...verification(mode, root) },
    ...(negotiation === 'direct' ? { sslnegotiation: negotiation } : {}),
  };
}

function takeOptions(url: URL): Record<string, string | undefined> {
  const options: Record<string, string | undefined> = {};
  for (const [name, value] of [...url.searchParams]) {
    const isSupported = names.includes(name);
    if (!isSupported && !name.startsWith('ssl')) continue;
    if (!isSupported) throw wrong(`has ${name}, which the gateway does not know: leave it out`);
    options[name] = value;
    url.searchParams.delete(name);
  }
  return options;
}

/** How the certificate of the server is verified. */
function verification(mode: string, root: string | undefined): tls.ConnectionOptions {
  // Without a root certificate, those that Node.js trusts.
  if (root === undefined || root === 'system')
    return { rejectUnauthorized: mode === 'verify-full' };
  const ca = readText('sslrootcert', root);
  // With one, `require` means `verify-ca`: any host name is accepted.
  return mode === 'verify-full' ? { ca } : { ca, checkServerIdentity: () => undefined };
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
