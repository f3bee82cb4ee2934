// docs/upgrading.md: its commands for backup and restore, as they stand there, bring back the same bytes; and the drill.
import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { makeFolder } from '../support/cli/folder.ts';
import { baseOf, dist, run, stop } from '../support/cli/process.ts';
import {
  isInstalled,
  programs,
  startDebianPostgres,
} from '../support/databases/debian-postgres.ts';
import { isPrinted } from '../support/documents/page.ts';
import { findFreePort } from '../support/http/free-port.js';
import { secret, signIn } from '../support/http/tokens.ts';

const page = readFileSync(new URL('../../docs/upgrading.md', import.meta.url), 'utf8');

/** The commands of a part of the page, line by line. */
function commandsOf(part: string): string[] {
  const [text = ''] = page.split(`**${part}**`)[1]?.split(/\n(?=\*\*|## )/) ?? [];
  const blocks = [...text.matchAll(/```(sh|console)\n([\s\S]*?)```/g)];
  return blocks.flatMap(([, kind, block = '']) =>
    block
      .split('\n')
      .filter((line) => (kind === 'sh' ? line !== '' : line.startsWith('$ ')))
      .map((line) => line.replace(/^\$ /, '')),
  );
}

/** Runs lines in one shell and gives what they print; `npm run` is done as in a package. */
function runLines(lines: readonly string[], cwd: string, environment: Record<string, string>) {
  const script = lines.map((line) =>
    line.replace(/\bnpm run (\w+)(?: --)?/g, `"$NODE" "${dist}commands/cli.js" $1`),
  );
  const env = { PATH: process.env['PATH'], NODE: process.execPath, ...environment };
  return execFileSync('sh', ['-ec', script.join('\n')], { cwd, encoding: 'utf8', env });
}

type Use<Result> = (base: string) => Promise<Result>;

/** Runs a gateway for as long as something is done with it. */
async function withGateway<Result>(
  folder: string,
  environment: Record<string, string>,
  use: Use<Result>,
): Promise<Result> {
  const settings = { SEED: 'demo', AUTH_JWT_SECRET: secret, ...environment };
  const server = run([`${dist}server.js`], settings, folder);
  const result = await use(await baseOf(server));
  expect(await stop(server)).toBe(0);
  return result;
}

async function mutate(base: string, query: string): Promise<string> {
  const headers = { 'content-type': 'application/json', ...(await signIn(1)) };
  const body = JSON.stringify({ query });
  const response = await fetch(`${base}/graphql`, { method: 'POST', headers, body });
  return response.text();
}

const create = `mutation { createOutfit(input: { title: "Kept", private: true,
  imageKey: "outfits/770fa6b0-4523-43a9-a112-20a2eb647933.jpeg" }) { outfit { databaseId } } }`;

/** Writes that no import would bring back: who likes what, and an id that was given away. */
const write: Use<void> = async (base) => {
  const liked = 'mutation { likeOutfit(id: "T3V0Zml0OjE=") { outfit { viewerHasLiked } } }';
  expect(await mutate(base, liked)).toContain('"viewerHasLiked":true');
  expect(await mutate(base, create)).toContain('"databaseId":2450');
};

const look: Use<readonly string[]> = async (base) => {
  const queries = ['', '?page=last', '?ordering=-like_count&page=60', '?ordering=modified&page=7'];
  const pages = queries.map(async (query) => (await fetch(`${base}/api/outfits/${query}`)).text());
  const search = '{ outfits(filter: { search: "blazer" }) { count } }';
  const viewer = '{ outfit(databaseId: 1) { viewerHasLiked likes } }';
  return Promise.all([...pages, mutate(base, search), mutate(base, viewer)]);
};

const goOn: Use<void> = async (base) => {
  expect(await mutate(base, create)).toContain('"databaseId":2451');
};

test('the embedded database is as it was, after its folder was copied, deleted and restored', async () => {
  const folder = makeFolder(onTestFinished);
  const environment = { PORT: String(await findFreePort()) };
  const [backUp = '', restore = '', ...others] = commandsOf('The embedded database');
  expect(others).toEqual([]);
  const before = await withGateway(folder, environment, async (base) => {
    await write(base);
    return look(base);
  });
  runLines([backUp], folder, environment);
  rmSync(join(folder, '.data'), { recursive: true });
  runLines([restore], folder, environment);
  await withGateway(folder, environment, async (base) => {
    expect(await look(base)).toEqual(before);
    await goOn(base);
  });
});

test.skipIf(!isInstalled)('PostgreSQL is as it was in another database, after a dump', async () => {
  const folder = makeFolder(onTestFinished);
  const { port, close } = await startDebianPostgres();
  onTestFinished(close);
  const environment = {
    PORT: String(await findFreePort()),
    PATH: `${programs}:${process.env['PATH']}`,
    PGHOST: 'localhost',
    PGPORT: String(port),
    PGUSER: 'postgres',
    DATABASE_URL: `postgresql://postgres@localhost:${port}/outfits`,
  };
  runLines(['createdb outfits', 'npm run migrate'], folder, environment);
  const [dump = '', ...restore] = commandsOf('PostgreSQL');
  const before = await withGateway(folder, environment, async (base) => {
    await write(base);
    // While everything runs.
    runLines([dump], folder, environment);
    return look(base);
  });
  const printed = runLines(
    restore.map((line) => line.replace('localhost:5432', `localhost:${port}`)),
    folder,
    environment,
  );
  expect(printed).toContain('all counts are right');

  const drill = (script = '') =>
    runLines([`${script} "$NODE" "${dist}../deploy/drill.js" "$SERVER" 2>&1`], folder, {
      ...environment,
      DATABASE_URL: `postgresql://postgres@localhost:${port}/other?schema=public&pgbouncer=true&dbname=outfits&options=-c%20jit%3Doff`,
      SERVER: `${environment.DATABASE_URL}?password=secret&dbname=outfits&uselibpqcompat=true`,
    });
  // The demonstration set, and what was written above.
  const said = `${/^dump [^`]*/m.exec(page)}`.replace('2400', '2401');
  expect(isPrinted(said, drill())).toBe(true);
  // A restore that does nothing is found out, and nothing is left behind.
  writeFileSync(join(folder, 'pg_restore'), '#!/bin/sh\n', { mode: 0o755 });
  expect(drill('! PATH="$PWD:$PATH"')).toContain('It failed: check likes, ');
  const databases = runLines(['psql --list --tuples-only --no-align'], folder, environment);
  expect(databases).toContain('restored|');
  expect(databases).not.toContain('drill');
  const DATABASE_URL = environment.DATABASE_URL.replace(/outfits$/, 'restored');
  await withGateway(folder, { ...environment, DATABASE_URL }, async (base) => {
    expect(await look(base)).toEqual(before);
    await goOn(base);
  });
});
