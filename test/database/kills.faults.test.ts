// SIGKILL in the middle of writes, again and again: what was acknowledged is there.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  baseOf,
  dist,
  listing,
  migratedEnvironmentOf,
  publish,
  run,
  runServer,
  stop,
} from '../support/cli/process.ts';
import { startEmbeddedPostgres } from '../support/databases/embedded-postgres.js';
import { send } from '../support/faults/load.ts';
import { type DatabaseKind, databaseKinds, outfitId } from '../support/gateway.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const kills = 3;

/** What clients have been told: ids that were created, and those of them that were liked. */
interface Acknowledged {
  readonly created: Set<number>;
  readonly liked: Set<number>;
}

/** Publishes and likes until the gateway is gone. */
async function write(base: string, userId: number, { created, liked }: Acknowledged) {
  const headers = await signIn(userId);
  try {
    for (;;) {
      const published = await publish(base, userId);
      // A server that is killed under the gateway means 503: then nothing was promised.
      if (!published.ok) continue;
      const { id } = (await published.json()) as { id: number };
      created.add(id);
      const document = `mutation { likeOutfit(id: "${outfitId(id)}") { outfit { likes } } }`;
      const { body } = await send(base, document, undefined, undefined, headers);
      if (body.includes('"likes":')) liked.add(id);
    }
  } catch {
    // Killed.
  }
}

/** Walks all pages of the listing: the likes of each id. */
async function walk(base: string): Promise<Map<number, number>> {
  const found: [number, number][] = [];
  for (let page = 1; ; page += 1) {
    const { count, results } = await listing(base, `?ordering=id&page=${page}`);
    found.push(...results.map(({ id, likes }): [number, number] => [id, likes]));
    if (found.length >= count) break;
  }
  expect(new Map(found).size).toBe(found.length);
  return new Map(found);
}

let postgres: Awaited<ReturnType<typeof startEmbeddedPostgres>>;

beforeAll(async () => {
  postgres = await startEmbeddedPostgres();
});

afterAll(async () => {
  await postgres.close();
});

describe.each(databaseKinds)('%s', (kind: DatabaseKind) => {
  test(`loses nothing that was acknowledged in ${kills} kills, and counts right afterwards`, async () => {
    const { DATA_DIR: folder = '' } = await migratedEnvironmentOf('embedded');
    const database: Record<string, string> =
      kind === 'embedded' ? { DATA_DIR: folder } : { DATABASE_URL: postgres.url };
    const environment = { ...database, AUTH_JWT_SECRET: secret, SEED: 'demo', PAGE_SIZE: '1000' };
    if (kind === 'PostgreSQL') {
      await run([`${dist}commands/cli.js`, 'migrate'], environment).ended;
    }
    const acknowledged: Acknowledged = { created: new Set(), liked: new Set() };
    let inFlight = 0;
    for (let kill = 0; kill < kills; kill++) {
      const gateway = runServer(environment);
      const base = await baseOf(gateway);
      const clients = [1, 2, 3, 4];
      const writing = clients.map((userId) => write(base, userId, acknowledged));
      const enough = acknowledged.created.size + 3 + 2 * kill;
      while (acknowledged.created.size < enough) await new Promise((go) => setTimeout(go, 2));
      // The last time, the server is killed as well.
      const isServerKilled = kind === 'PostgreSQL' && kill === kills - 1;
      if (isServerKilled) await postgres.crash();
      gateway.child.kill('SIGKILL');
      await Promise.all([gateway.ended, ...writing]);
      // A database that goes away is no fault of ours.
      expect(gateway.output()).not.toContain('"msg":"unexpected error"');
      inFlight += clients.length;
      if (isServerKilled) await postgres.start();
    }
    const checking = run([`${dist}commands/cli.js`, 'counts', 'check'], environment);
    expect(await checking.ended, checking.output() + checking.errors()).toBe(0);

    const server = runServer(environment);
    const found = await walk(await baseOf(server));
    expect([...acknowledged.created].filter((id) => !found.has(id))).toEqual([]);
    expect([...acknowledged.liked].filter((id) => found.get(id) !== 1)).toEqual([]);
    // What was on its way may be there without having been acknowledged.
    expect(found.size).toBeLessThanOrEqual(2_400 + acknowledged.created.size + inFlight);
    expect(await stop(server)).toBe(0);
  });
});
