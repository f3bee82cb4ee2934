// TLS options of DATABASE_URL with their meaning in libpq: `pg` reads some of them differently.
// @see https://www.postgresql.org/docs/current/libpq-ssl.html
import { readFileSync } from 'node:fs';
import type tls from 'node:tls';
import type pg from 'pg';
import type { ConfigError } from '../../config.ts';
import { messageOf } from '../../errors.ts';

const modes = 'disable, require, verify-ca, verify-full';

/** An error that begins with the name of the setting. */
export type Wrong = (sentence: string) => ConfigError;

/** @param given parameters of the URL @throws ConfigError */
export function readTls(
  given: Readonly<Record<string, string | undefined>>,
  wrong: Wrong,
): Pick<pg.ClientConfig, 'ssl' | 'sslnegotiation'> {
  const { ssl } = given;
  const { sslmode: mode = ssl === 'true' ? 'require' : undefined, sslrootcert: root } = given;
  const { sslcert: cert, sslkey: key, sslpassword: passphrase } = given;
  const { sslnegotiation: negotiation = 'postgres' } = given;
  if (mode === undefined) {
    if (!Object.keys(given).some((name) => name.startsWith('ssl'))) return {};
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
    if (ssl !== undefined && ssl !== 'false')
      throw wrong(`has ssl=${ssl} with sslmode=disable: keep one of them`);
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
  const ca = root === undefined || root === 'system' ? undefined : readText('sslrootcert', root);
  return {
    ssl: { ...own, ...verification(mode, ca) },
    ...(negotiation === 'direct' ? { sslnegotiation: negotiation } : {}),
  };

  function readText(name: string, path: string): string {
    try {
      return readFileSync(path, 'utf8');
    } catch (error) {
      throw wrong(
        `names a file as ${name} that cannot be read (${messageOf(error)}): correct its path`,
      );
    }
  }
}

/** How the certificate of the server is verified. @param ca undefined: by those that Node.js trusts */
function verification(mode: string, ca: string | undefined): tls.ConnectionOptions {
  if (ca === undefined) return { rejectUnauthorized: mode === 'verify-full' };
  // `require` with a root certificate means `verify-ca`: any host name is accepted.
  return mode === 'verify-full' ? { ca } : { ca, checkServerIdentity: () => undefined };
}
