// The process as an operator meets it: starting, stopping, being killed, and saying what is wrong.
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { openDatabase } from '../../src/database/database.ts';
import {
  baseOf,
  dist,
  environmentOf,
  failure,
  findFreePort,
  listing,
  migratedEnvironmentOf,
  run,
  runServer,
  stop,
} from '../support/cli/process.ts';
import { migrationList } from '../support/databases/schema-engine.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const migrations = migrationList().migrationDirectories.map(({ path }) => path);

/** What readiness and a request answer. */
async function statuses(base: string): Promise<number[]> {
  const paths = ['/health/live', '/health/ready', '/api/outfits/'];
  return Promise.all(paths.map(async (path) => (await fetch(base + path)).status));
}

/** Waits until a server answers as expected. */
async function untilStatuses(base: string, expected: readonly number[]): Promise<void> {
  await expect.poll(() => statuses(base)).toEqual(expected);
}

describe('PostgreSQL', () => {
  test('that is not migrated is waited for, until npm run migrate has been run', async () => {
    const environment = await environmentOf('PostgreSQL');
    const { host, pathname } = new URL(environment['DATABASE_URL'] ?? '');
    const name = `PostgreSQL database ${pathname.slice(1)} on ${host}`;
    const server = runServer(environment);
    const base = await baseOf(server);
    const sentence = `The ${name} lacks ${migrations.length} migration(s) (${migrations.join(', ')}): run \\"outfit-gateway migrate\\" (in a checkout \\"npm run migrate\\") first.`;
    expect(server.output().split(sentence)).toHaveLength(2);
    expect(await statuses(base)).toEqual([200, 503, 503]);

    const command = [`${dist}commands/cli.js`, 'migrate'];
    const migrating = run(command, environment);
    expect(await migrating.ended).toBe(0);
    expect(migrating.output()).toContain(
      `${name}: ${migrations.length} migration(s) applied, up to date.`,
    );
    const again = run(command, environment);
    expect(await again.ended).toBe(0);
    expect(again.output()).toContain('0 migration(s) applied');

    await untilStatuses(base, [200, 200, 200]);
    expect((await listing(base)).count).toBe(0);
    await server.until(new RegExp(`${name}, 0 outfits`));
    expect(server.output()).not.toContain('postgres:postgres');
    expect(await stop(server)).toBe(0);
  });

  test('that is away is named in one sentence, without its password', async () => {
    const DATABASE_URL = `postgresql://shop:s3cret@127.0.0.1:${await findFreePort()}/shop`;
    const sentence =
      /The PostgreSQL database shop on 127\.0\.0\.1:\d+ cannot be reached \(.+\): start it, or correct DATABASE_URL\./;
    const message = await failure(run([`${dist}commands/cli.js`, 'migrate'], { DATABASE_URL }));
    expect(message).toMatch(sentence);

    const server = runServer({ DATABASE_URL });
    const base = await baseOf(server);
    expect(server.output()).toMatch(sentence);
    expect(await statuses(base)).toEqual([200, 503, 503]);
    expect(await stop(server)).toBe(0);
    expect(message + server.output() + server.errors()).not.toContain('s3cret');
  });

  test('with an edited migration stops the process with one sentence', async () => {
    const environment = await migratedEnvironmentOf('PostgreSQL');
    const client = new pg.Client(environment['DATABASE_URL']);
    await client.connect();
    await client.query(`UPDATE _prisma_migrations SET checksum = 'x'`);
    await client.end();
    expect(await failure(runServer(environment))).toMatch(
      /^Migration 1000_no_older_database is not the text that this database was migrated with: /,
    );
  });
});

describe('a wrong setting', () => {
  const noFolder =
    /^DATA_DIR is ".*", but that folder cannot be made \(.*\): set it to one that can be written\.$/;
  const file = fileURLToPath(import.meta.url);
  test.each([file, '/proc/x', '/dev/null/x'])('of DATA_DIR that is %s is told', async (folder) => {
    await expect(openDatabase(readConfig({ DATA_DIR: folder }))).rejects.toThrow(noFolder);
  });

  test('an address that is not here is named in one sentence', async () => {
    const environment = await migratedEnvironmentOf('PostgreSQL');
    const unknown = runServer({ ...environment, HOST: 'gateway.invalid' });
    expect(await failure(unknown)).toMatch(
      /^The gateway cannot listen there \(.*(ENOTFOUND|EAI_AGAIN).*\): set HOST and PORT \(and METRICS_PORT\) to addresses that are free\.$/,
    );
  });
});

describe('before a first database is made', () => {
  const isInUse = /EADDRINUSE.*set HOST and PORT \(and METRICS_PORT\)/;
  test.each<[string, (port: string) => Record<string, string>, RegExp]>([
    ['a port that is in use', (PORT) => ({ PORT }), isInUse],
    ['a port of metrics that is in use', (METRICS_PORT) => ({ METRICS_PORT }), isInUse],
    [
      'a file of documents that cannot be read',
      () => ({ TRUSTED_DOCUMENTS: '/nonexistent/documents.json' }),
      /^TRUSTED_DOCUMENTS is "\/nonexistent\/documents.json", but it cannot be read/,
    ],
    [
      'a document that cannot be run',
      () => ({
        TRUSTED_DOCUMENTS: fileURLToPath(
          new URL('../support/graphql/wrong-document.json', import.meta.url),
        ),
      }),
      /^TRUSTED_DOCUMENTS is .*, but the document "wrong" cannot be run: Cannot query field "nothing"/,
    ],
  ])('%s is named', async (_what, settings, sentence) => {
    const environment = await environmentOf('embedded');
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    try {
      const address = other.address();
      const port = String(typeof address === 'object' && address ? address.port : 0);
      const server = runServer({ ...environment, HOST: '127.0.0.1', ...settings(port) });
      expect(await failure(server, sentence === isInUse ? 1 : 2)).toMatch(sentence);
      expect(readdirSync(environment['DATA_DIR'] ?? '')).toEqual([]);
    } finally {
      other.close();
    }
  });
});

describe('the log at start', () => {
  test.each<[string, Record<string, string>, string]>([
    ['a secret', { AUTH_JWT_SECRET: secret }, 'writing is possible with a bearer token'],
    [
      'a key set',
      { AUTH_JWKS_URL: 'http://127.0.0.1:9/' },
      'writing is possible with a bearer token',
    ],
    [
      'neither',
      {},
      'writing is not possible: set AUTH_JWKS_URL, AUTH_JWT_SECRET or AUTH_WEBHOOK_URL',
    ],
  ])(
    'says with %s whether writing is possible, and no token or secret',
    async (_name, auth, line) => {
      const environment = {
        ...(await migratedEnvironmentOf('PostgreSQL')),
        SEED: 'none',
        LOG_LEVEL: 'debug',
      };
      const server = runServer({ ...environment, ...auth });
      const base = await baseOf(server);
      expect(server.output()).toContain(line);
      const { authorization = '' } = await signIn(7);
      const forged = `${authorization}x`;
      for (const given of [forged, `Bearer ${'x'.repeat(10_000)}`]) {
        const { status } = await fetch(`${base}/api/outfits/`, {
          headers: { authorization: given },
        });
        expect([401, 503]).toContain(status);
      }
      expect(await stop(server)).toBe(0);
      expect(server.output() + server.errors()).not.toContain(
        authorization.slice('Bearer '.length),
      );
      expect(server.output() + server.errors()).not.toContain(secret);
    },
  );
});
