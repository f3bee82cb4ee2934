// What DATABASE_URL may say of TLS, and how it is refused when it cannot be done.
import { describe, expect, test } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { openDatabase } from '../../src/database/database.ts';
import { failure, runServer } from '../support/cli/process.ts';

const url = 'postgresql://gateway@localhost/outfits';

describe('one sentence says what is wrong with', () => {
  test.each([
    [
      'sslmode=prefer',
      'has sslmode=prefer, which anyone on the way can turn into no TLS: use one of',
    ],
    ['sslmode=allow', 'has sslmode=allow, which'],
    [
      'sslmode=no-verify',
      'has sslmode=no-verify: use one of disable, require, verify-ca, verify-full',
    ],
    ['sslmode=verify-ca', 'has sslmode=verify-ca without sslrootcert: name the file'],
    ['sslrootcert=ca.crt', 'says something of TLS, but not sslmode: add one of'],
    ['sslnegotiation=direct', 'says something of TLS, but not sslmode: add one of'],
    ['sslmode=disable&sslnegotiation=direct', 'has sslnegotiation=direct with sslmode=disable'],
    ['sslmode=require&sslnegotiation=soon', 'has sslnegotiation=soon, which the gateway cannot do'],
    ['sslmode=require&sslrootcert=system', 'has sslrootcert=system with sslmode=require: use'],
    [
      'sslmode=verify-full&sslrootcert=/no/ca.crt',
      'names a file that cannot be read (ENOENT: no such file or directory, open',
    ],
    ['sslmode=require&sslcert=client.crt', 'has one of sslcert and sslkey: they go together'],
    ['sslmode=require&sslcrl=crl.pem', 'has sslcrl, which the gateway does not know: leave it out'],
  ])('%s', async (query, sentence) => {
    const opening = openDatabase(readConfig({ DATABASE_URL: `${url}?${query}` }));
    await expect(opening).rejects.toThrow(`DATABASE_URL ${sentence}`);
    await expect(opening).rejects.toThrow(/^[^\n]+\.$/);
  });
});

test('the gateway does not start with it', async () => {
  const said = await failure(runServer({ DATABASE_URL: `${url}?sslmode=prefer` }), 2);
  expect(said).toMatch(/^DATABASE_URL has sslmode=prefer, /);
});
