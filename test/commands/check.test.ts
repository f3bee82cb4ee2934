// outfit-gateway check: a line for each thing that the settings name, and nothing is changed.
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import * as check from '../../src/commands/check.ts';
import { callCommand } from '../support/cli/commands.ts';
import {
  baseOf,
  environmentOf,
  migratedEnvironmentOf,
  runServer,
  stop,
} from '../support/cli/process.ts';
import { sendJson, startWebhook } from '../support/http/webhook.ts';
import { makeRecords, serveListing } from '../support/legacy/listing.ts';

const call = async (environment: Record<string, string>) => {
  const { code, stdout, stderr } = await callCommand(check, [], environment);
  expect(stderr).toBe('');
  const lines = stdout.trimEnd().split('\n');
  return { code, lines: lines.filter((line) => !line.startsWith('ok: settings: ')) };
};

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'outfit-gateway-check-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test('the embedded database is not made, nor opened beside the process that uses it', async () => {
  const folder = makeFolder();
  const DATA_DIR = join(folder, 'new', 'data');
  const isMade = `ok: DATA_DIR: the start makes the embedded database in ${DATA_DIR}`;
  expect(await call({ DATA_DIR })).toEqual({ code: 0, lines: [isMade] });
  expect(readdirSync(folder)).toEqual([]);

  const environment = await migratedEnvironmentOf('embedded');
  const database = `the embedded database in ${environment['DATA_DIR']}`;
  const applies = `ok: DATA_DIR: ${database} is there; the start applies migrations that it lacks`;
  expect(await call(environment)).toEqual({ code: 0, lines: [applies] });
  const server = runServer(environment);
  await baseOf(server);
  const used = `ok: DATA_DIR: ${database} is in use by process ${server.child.pid}`;
  expect(await call(environment)).toEqual({ code: 0, lines: [used] });
  expect(await stop(server)).toBe(0);

  rmSync(join(environment['DATA_DIR'] ?? '', 'pgdata', 'base'), { recursive: true });
  const { code, lines } = await call(environment);
  expect({ code, lines }).toEqual({
    code: 1,
    lines: [expect.stringMatching(/^wrong: DATA_DIR: .*is not whole \(base missing\)/)],
  });
});

test('PostgreSQL, the key set, the webhook, the old service and the documents are tried', async () => {
  const { DATABASE_URL = '' } = await migratedEnvironmentOf('PostgreSQL');
  let keys: unknown = { keys: [{ kty: 'oct', k: 'a2V5' }] };
  const keyServer = createServer((_request, response) => sendJson(response, 200, keys));
  keyServer.listen(0, '127.0.0.1');
  const webhook = await startWebhook();
  const listing = await serveListing(makeRecords(3));
  onTestFinished(async () => {
    keyServer.close();
    await webhook.close();
  });
  const TRUSTED_DOCUMENTS = join(makeFolder(), 'documents.json');
  writeFileSync(TRUSTED_DOCUMENTS, JSON.stringify({ one: '{ outfits { count } }' }));
  const environment = {
    DATABASE_URL,
    DATABASE_READ_URLS: DATABASE_URL,
    AUTH_JWKS_URL: `http://127.0.0.1:${(keyServer.address() as AddressInfo).port}/keys`,
    AUTH_WEBHOOK_URL: webhook.url,
    LEGACY_URL: new URL(listing.url).origin,
    TRUSTED_DOCUMENTS,
  };
  const found = await call(environment);
  expect(found.lines).toEqual([
    expect.stringMatching(
      /^ok: DATABASE_URL: PostgreSQL database .*, version \d.*, has all migrations$/,
    ),
    expect.stringMatching(
      /^wrong: DATABASE_READ_URLS: the standby .* is no standby, or not any more$/,
    ),
    'ok: AUTH_JWKS_URL: 1 key(s)',
    'ok: AUTH_WEBHOOK_URL: an invented credential is refused, as it must be',
    'ok: LEGACY_URL: 3 outfits',
    'ok: TRUSTED_DOCUMENTS: each document can be run',
  ]);
  expect(found.code).toBe(1);
  const { DATABASE_READ_URLS: _wrong, ...right } = environment;
  expect((await call(right)).code).toBe(0);

  keys = { nothing: [] };
  webhook.answer = (response) => sendJson(response, 200, { id: 7 });
  writeFileSync(TRUSTED_DOCUMENTS, JSON.stringify({ one: '{ nothing }' }));
  const { lines, code } = await call({ ...right, LEGACY_URL: new URL(right.AUTH_JWKS_URL).origin });
  expect(lines.slice(1)).toEqual([
    expect.stringMatching(/^wrong: AUTH_JWKS_URL: \S/),
    'wrong: AUTH_WEBHOOK_URL: an invented credential is accepted, as user 7',
    'wrong: LEGACY_URL: no page of a list there (status 200)',
    expect.stringMatching(/^wrong: TRUSTED_DOCUMENTS: .*Cannot query field "nothing"/),
  ]);
  expect(code).toBe(1);
});

test('a database that lacks migrations is left as it is', async () => {
  const environment = await environmentOf('PostgreSQL');
  expect(await call(environment)).toEqual({
    code: 1,
    lines: [expect.stringMatching(/^wrong: DATABASE_URL: .* lacks \d+ migration\(s\) .*migrate/)],
  });
  const client = new pg.Client(environment['DATABASE_URL']);
  await client.connect();
  const { rows } = await client.query(
    `SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace`,
  );
  await client.end();
  expect(rows).toEqual([]);
});
