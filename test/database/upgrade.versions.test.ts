// An upgrade without downtime: the gateway of the last release and this one on a database, before, while and after it.
// RELEASED_PACKAGE names the archive of that release (of npm pack, or npm run package); without it, this version is
// upgraded to itself.
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { makeFolder } from '../support/cli/folder.ts';
import { dist, environmentOf, listing, publish, run, stop } from '../support/cli/process.ts';
import { findFreePort } from '../support/http/free-port.js';
import { secret, signIn } from '../support/http/tokens.ts';

const place = makeFolder(afterAll);

function unpackReleased(): string {
  const archive = process.env['RELEASED_PACKAGE'];
  if (!archive) return dist;
  execFileSync('tar', ['-xzf', archive, '-C', place]);
  return join(place, readdirSync(place)[0] ?? '', 'dist/');
}

const released = unpackReleased();

async function create(base: string): Promise<number> {
  const response = await publish(base, 1);
  expect(response.status).toBe(201);
  return ((await response.json()) as { id: number }).id;
}

async function like(base: string, id: number): Promise<void> {
  const query = `mutation { likeOutfit(id: "${btoa(`Outfit:${id}`)}") { outfit { viewerHasLiked } } }`;
  const headers = { 'Content-Type': 'application/json', ...(await signIn(2)) };
  const body = JSON.stringify({ query });
  const response = await fetch(`${base}/graphql`, { method: 'POST', headers, body });
  expect(await response.text()).toContain('"viewerHasLiked":true');
}

const read = async (base: string, query: string) =>
  (await fetch(`${base}/api/outfits/${query}`)).text();

test('on PostgreSQL, the released gateway goes on while this one migrates, and both serve the same', async () => {
  const settings = { AUTH_JWT_SECRET: secret, SEED: 'demo', MEDIA_URL: 'https://media.test' };
  const environment = { ...(await environmentOf('PostgreSQL')), ...settings };
  const PUBLIC_URL = 'https://outfits.test';
  const command = async (folder: string, ...words: string[]) => {
    const ended = run([`${folder}commands/cli.js`, ...words], environment);
    expect(await ended.ended, ended.errors()).toBe(0);
    return ended.output();
  };
  const start = async (folder: string) => {
    const PORT = String(await findFreePort());
    const server = run([`${folder}server.js`], { ...environment, PUBLIC_URL, PORT });
    await server.until(/Graphi?QL: /);
    return { server, base: `http://localhost:${PORT}` };
  };

  await command(released, 'migrate');
  const before = await start(released);
  await create(before.base);

  await command(dist, 'migrate');
  // The released one serves and writes on what this one has migrated.
  const between = await create(before.base);
  const after = await start(dist);
  const last = await create(after.base);
  for (const base of [before.base, after.base]) {
    expect((await listing(base)).results.map(({ id }) => id).slice(0, 2)).toEqual([last, between]);
  }
  await Promise.all([like(before.base, last), like(after.base, between)]);
  for (const query of ['', '?page=60', '?ordering=-like_count&page=2', '?ordering=modified']) {
    expect(await read(after.base, query), query).toBe(await read(before.base, query));
  }
  expect(await stop(before.server), before.server.errors()).toBe(0);
  // When the old one has gone.
  await create(after.base);
  expect((await listing(after.base)).count).toBe(2404);
  // The way back, without a restore: a gateway ignores migrations that it does not know.
  const back = await start(released);
  expect(await read(back.base, '?page=2')).toBe(await read(after.base, '?page=2'));
  for (const { server } of [after, back]) expect(await stop(server), server.errors()).toBe(0);
  expect(await command(dist, 'counts', 'check')).toContain('all counts are right');
});
