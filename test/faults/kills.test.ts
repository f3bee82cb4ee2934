// SIGKILL in the middle of writes, again and again: what was acknowledged is there.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startEmbeddedPostgres } from '../embedded-postgres.js';
import { type DatabaseKind, databaseKinds } from '../gateway.ts';
import { baseOf, dist, environmentOf, type Run, run, runServer, stop } from '../process.ts';
import { send } from './load.ts';

const kills = 20;

/** A process that saves outfits one by one, from a given id, and says which ones are saved. */
function startWriter(environment: Record<string, string>, folder: string, from: number): Run {
  const script = join(folder, 'writer.mjs');
  writeFileSync(
    script,
    `
    import { openDatabase } from '${dist}database/database.js';
    import { migrate } from '${dist}database/migrations.js';
    import { generateOutfits } from '${dist}demo/generate.js';
    import { saveOutfits } from '${dist}outfits/bulk.js';
    const database = await openDatabase({
      dataDir: process.env.DATA_DIR, databaseUrl: process.env.DATABASE_URL, databasePoolMax: 1,
    });
    await migrate(database.pool, () => {});
    for (const outfit of generateOutfits({ outfits: 1000, users: 50 })) {
      const id = outfit.id + Number(process.argv[2]);
      await saveOutfits(database.pool, [{ ...outfit, id }]);
      process.stdout.write('saved ' + id + '\\n');
    }`,
  );
  return run([script, String(from)], environment);
}

/** Ids that a writer has said to be saved. */
function acknowledgedBy(writer: Run): number[] {
  return [...writer.output().matchAll(/^saved (\d+)\n/gm)].map(([, id]) => Number(id));
}

/** Walks all pages of the listing. */
async function walk(base: string): Promise<{ count: number; ids: number[] }> {
  const ids: number[] = [];
  let count = 0;
  for (let page: string | null = '/api/outfits/?ordering=id'; page !== null; ) {
    const { status, body } = await send(base, page);
    expect(status).toBe(200);
    const { next, results, ...envelope } = JSON.parse(body);
    count = envelope.count;
    ids.push(...results.map(({ id }: { id: number }) => id));
    page = next === null ? null : next.slice(base.length);
  }
  return { count, ids };
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
    const { DATA_DIR: folder = '' } = await environmentOf('embedded');
    const environment: Record<string, string> =
      kind === 'embedded' ? { DATA_DIR: folder } : { DATABASE_URL: postgres.url };
    const acknowledged: number[] = [];
    for (let kill = 0; kill < kills; kill++) {
      const writer = startWriter(environment, folder, kill * 1000);
      await writer.until(new RegExp(`(saved \\d+\\n){${1 + 2 * kill}}`));
      // Every fifth time, the server is killed as well.
      const isServerKilled = kind === 'PostgreSQL' && kill % 5 === 4;
      if (isServerKilled) await postgres.crash();
      writer.child.kill('SIGKILL');
      await writer.ended;
      if (isServerKilled) await postgres.start();
      acknowledged.push(...acknowledgedBy(writer));
    }
    const checking = run([`${dist}outfits/counts-command.js`, 'check'], environment);
    expect(await checking.ended, checking.output() + checking.errors()).toBe(0);

    const server = runServer({ ...environment, SEED: 'none', PAGE_SIZE: '100' });
    const { count, ids } = await walk(await baseOf(server));
    const found = new Set(ids);
    expect(acknowledged.filter((id) => !found.has(id))).toEqual([]);
    expect(ids.length).toBe(found.size);
    expect(count).toBe(found.size);
    // Of each writer, the one that was being saved may be there without having been acknowledged.
    expect(found.size).toBeLessThanOrEqual(acknowledged.length + kills);
    expect(await stop(server)).toBe(0);
  });
});
