// outfit-gateway check: a line for each thing that the settings name, and nothing is changed.
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import * as check from '../../src/commands/check.ts';
import { callCommand } from '../support/cli/commands.ts';
import { makeFolder } from '../support/cli/folder.ts';
import {
  baseOf,
  dist,
  environmentOf,
  failure,
  migratedEnvironmentOf,
  run,
  runServer,
  stop,
} from '../support/cli/process.ts';
import { execute } from '../support/databases/connections.ts';
import { listen } from '../support/http/listen.ts';
import { sendJson, startWebhook } from '../support/http/webhook.ts';
import { newest, serveListing } from '../support/legacy/listing.ts';

const call = async (environment: Record<string, string>) => {
  const { code, stdout, stderr } = await callCommand(check, [], environment);
  expect(stderr).toBe('');
  const lines = stdout.trimEnd().split('\n');
  return { code, lines: lines.filter((line) => !line.startsWith('ok: settings: ')) };
};

const place = makeFolder(afterAll);

test('the embedded database is not made, nor opened beside the process that uses it', async () => {
  const DATA_DIR = join(place, 'new', 'data');
  const isMade = `ok: DATA_DIR: the start makes the embedded database in ${DATA_DIR}`;
  expect(await call({ DATA_DIR })).toEqual({ code: 0, lines: [isMade] });
  expect(readdirSync(place)).toEqual([]);

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
  const broken = expect.stringMatching(/^wrong: DATA_DIR: .*is not complete \(base missing\)/);
  expect(await call(environment)).toEqual({ code: 1, lines: [broken] });
});

test('PostgreSQL, the key set, the webhook, the old service and the documents are tried', async () => {
  const { DATABASE_URL = '' } = await migratedEnvironmentOf('PostgreSQL');
  let keys: unknown = { keys: [{ kty: 'oct', k: 'a2V5' }] };
  const keyServer = createServer((_request, response) => sendJson(response, 200, keys));
  const webhook = await startWebhook();
  const listing = await serveListing(newest(3));
  onTestFinished(async () => {
    keyServer.close();
    await webhook.close();
  });
  const TRUSTED_DOCUMENTS = join(place, 'documents.json');
  writeFileSync(TRUSTED_DOCUMENTS, JSON.stringify({ one: '{ outfits { count } }' }));
  const keyUrl = `http://127.0.0.1:${await listen(keyServer)}`;
  const environment = {
    DATABASE_URL,
    DATABASE_READ_URLS: DATABASE_URL,
    AUTH_JWKS_URL: `${keyUrl}/keys`,
    AUTH_WEBHOOK_URL: webhook.url,
    LEGACY_URL: new URL(listing.url).origin,
    TRUSTED_DOCUMENTS,
  };
  const found = await call(environment);
  const database = /^ok: DATABASE_URL: PostgreSQL database .*, version \d.*, has all migrations$/;
  const standby = /^wrong: DATABASE_READ_URLS: the standby .* is not a standby, or not any more$/;
  expect(found.lines).toEqual([
    expect.stringMatching(database),
    expect.stringMatching(standby),
    'ok: AUTH_JWKS_URL: 1 key(s)',
    'ok: AUTH_WEBHOOK_URL: an invented credential is refused, as it must be',
    'ok: LEGACY_URL: 3 outfits',
    'ok: TRUSTED_DOCUMENTS: each document can be run',
  ]);
  expect(found.code).toBe(1);
  const { DATABASE_READ_URLS: _wrong, ...right } = environment;
  expect((await call(right)).code).toBe(0);

  const { stdout } = await callCommand(check, ['--json'], environment);
  const { ok, checks } = JSON.parse(stdout);
  const asLine = (one: (typeof checks)[number]) =>
    `${one.ok ? 'ok' : 'wrong'}: ${one.name}: ${one.text}`;
  expect([ok, checks.slice(1).map(asLine)]).toEqual([false, found.lines]);
  const far = { DATA_DIR: join(place, 'none'), REST_DOCUMENTS: 'x'.repeat(3_000) };
  const whole = await callCommand(check, ['--json'], far);
  expect(JSON.parse(whole.stdout)).toMatchObject({ ok: false });
  keys = { nothing: [] };
  webhook.answer = (response) => sendJson(response, 200, { id: 7 });
  writeFileSync(TRUSTED_DOCUMENTS, JSON.stringify({ one: '{ nothing }' }));
  const { lines, code } = await call({ ...right, LEGACY_URL: keyUrl });
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
  const lacking = /^wrong: DATABASE_URL: .* lacks \d+ migration\(s\) .*migrate/;
  const lines = [expect.stringMatching(lacking)];
  expect(await call(environment)).toEqual({ code: 1, lines });
  const relations = `SELECT FROM pg_class WHERE relnamespace = 'public'::regnamespace`;
  expect(await execute(environment['DATABASE_URL'] ?? '', relations)).toMatchObject({
    rowCount: 0,
  });
});

test.each([
  [{ OTEL_TRACES_EXPORTER: 'otlp,zipkin' }, 'OTEL_TRACES_EXPORTER names "zipkin", which is left'],
  [{ OTEL_TRACES_EXPORTER: 'console', OTEL_PROPAGATORS: 'b3' }, 'OTEL_PROPAGATORS names "b3"'],
  [
    { OTEL_TRACES_EXPORTER: 'otlp', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
    'OTEL_EXPORTER_OTLP_PROTOCOL is "grpc", which is left out',
  ],
])('names of traces that the start warns of are wrong: %j', async (environment, sentence) => {
  const { code, lines } = await call({ DATA_DIR: join(place, 'none'), ...environment });
  expect(code).toBe(1);
  expect(lines.at(-1)).toContain(`wrong: OTEL: ${sentence}`);
});

test('control characters of the environment and of a server do not reach the terminal', async () => {
  const { stdout, code } = await callCommand(check, [], {
    DATABASE_URL: 'postgresql://u:p@%1b%5d0%3bx%07/d',
    OTEL_TRACES_EXPORTER: '\u001b[31mred\u009b2J',
  });
  expect(code).toBe(1);
  expect(stdout).toContain('wrong: DATABASE_URL');
  expect(stdout).not.toMatch(/[^\P{Cc}\n]/u);
});

const long = join(place, 'x'.repeat(120));
test.each([
  ['DATA_DIR', long, /DATA_DIR is ".*", but its path is too long for a lock: set it/],
  ['DATA_DIR', join(process.execPath, 'x'), /ENOTDIR: not a directory/],
  ['TMPDIR', long, /temporary files is ".*", but ENOENT: .*: set TMPDIR to one/],
  ['TMPDIR', '/proc/none', /temporary files is "\/proc\/none", but ENOENT: .*: set TMPDIR to/],
])('%s=%s is refused by check and start, which leave nothing', async (name, value, sentence) => {
  const DATA_DIR = join(mkdtempSync(join(place, 'd-')), 'data');
  const environment = { DATA_DIR, [name]: value };
  const server = runServer(environment);
  expect(await failure(server)).toMatch(sentence);
  expect(existsSync(environment.DATA_DIR)).toBe(false);
  const checking = run([`${dist}commands/cli.js`, 'check'], environment);
  expect(await checking.ended).toBe(1);
  expect(checking.output()).toMatch(sentence);
});
