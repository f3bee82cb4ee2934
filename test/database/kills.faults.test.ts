// SIGKILL in the middle of writes, again and again: what was acknowledged is there.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  baseOf,
  dist,
  migratedEnvironmentOf,
  run,
  runServer,
  stop,
} from '../support/cli/process.ts';
import { startEmbeddedPostgres } from '../support/databases/embedded-postgres.js';
import { send } from '../support/faults/load.ts';
import { type DatabaseKind, databaseKinds, outfitId } from '../support/gateway.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const kills = Number(process.env['KILLS'] ?? 5);
const image = 'outfits/2b1d3c4e-0000-4000-8000-000000000001.png';

/** What clients have been told: ids that were created, and those of them that were liked. */
interface Acknowledged {
  readonly created: Set<number>;
  readonly liked: Set<number>;
}

/** Publishes and likes until the gateway is gone. */
async function write(base: string, userId: number, { created, liked }: Acknowledged) {
  const headers = { ...(await signIn(userId)), 'content-type': 'application/json' };
  const post = async (path: string, body: object) => {
    const response = await fetch(base + path, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    });
    // A server that is killed under the gateway means 503: then nothing was promised.
    return response.ok ? response.json() : undefined;
  };
  try {
    for (;;) {
      const outfit = await post('/api/outfits/', { image_key: image });
      if (!outfit) continue;
      created.add(outfit.id);
      const query = `mutation { likeOutfit(id: "${outfitId(outfit.id)}") { outfit { likes } } }`;
      if ((await post('/graphql', { query }))?.data.likeOutfit) liked.add(outfit.id);
    }
  } catch {
    // Killed.
  }
}

interface Found {
  readonly id: number;
  readonly likes: number;
}

/** Walks all pages of the listing. */
async function walk(base: string): Promise<{ count: number; outfits: Found[] }> {
  const outfits: Found[] = [];
  let count = 0;
  for (let page: string | null = '/api/outfits/?ordering=id'; page !== null; ) {
    const { status, body } = await send(base, page);
    expect(status).toBe(200);
    const { next, results, ...envelope } = JSON.parse(body);
    count = envelope.count;
    outfits.push(...results);
    page = next === null ? null : next.slice(base.length);
  }
  return { count, outfits };
}

let postgres: Awaited<ReturnType<typeof startEmbeddedPostgres>>;

beforeAll(async () => {
  postgres = await startEmbeddedPostgres();
});

afterAll(async () => {
  await postgres.close();
});

describe.each(databaseKinds)('%s', (kind: DatabaseKind) => {
  const title = `loses nothing that was acknowledged in ${kills} kills, and counts right afterwards`;
  // Most of it is opening the embedded database so many times.
  test(title, { timeout: 300_000 }, async () => {
    const { DATA_DIR: folder = '' } = await migratedEnvironmentOf('embedded');
    const database: Record<string, string> =
      kind === 'embedded' ? { DATA_DIR: folder } : { DATABASE_URL: postgres.url };
    const environment = { ...database, AUTH_JWT_SECRET: secret, SEED: 'demo', PAGE_SIZE: '200' };
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
      // Every fifth time, the server is killed as well.
      const isServerKilled = kind === 'PostgreSQL' && kill % 5 === 4;
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
    const { count, outfits } = await walk(await baseOf(server));
    const found = new Map(outfits.map(({ id, likes }) => [id, likes]));
    expect([...acknowledged.created].filter((id) => !found.has(id))).toEqual([]);
    expect([...acknowledged.liked].filter((id) => found.get(id) !== 1)).toEqual([]);
    expect(outfits.length).toBe(found.size);
    expect(count).toBe(found.size);
    // What was on its way may be there without having been acknowledged.
    expect(found.size).toBeLessThanOrEqual(2_400 + acknowledged.created.size + inFlight);
    expect(await stop(server)).toBe(0);
  });
});
