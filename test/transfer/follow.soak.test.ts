// Keeping up with a live listing: `npm run import` with --follow, --pause and --prune, and FIRST_ID.
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, inject, onTestFinished, test, vi } from 'vitest';
import * as importCommand from '../../src/commands/import.ts';
import { readConfig } from '../../src/config.ts';
import { openDatabase } from '../../src/database/database.ts';
import { startCommand } from '../support/cli/commands.ts';
import {
  baseOf,
  dist,
  migratedEnvironmentOf,
  run,
  runServer,
  stop,
} from '../support/cli/process.ts';
import { openNetwork } from '../support/faults/network.ts';
import { databaseKinds } from '../support/gateway.ts';
import { secret, signIn } from '../support/http/tokens.ts';
import {
  type ListedRecord,
  type Listing,
  makeRecord,
  makeRecords,
  serveListing,
  toLines,
} from '../support/legacy/listing.ts';

type Environment = Record<string, string>;

const refuse = (_asked: unknown, response: ServerResponse) => {
  response.writeHead(403).end('{"detail":"No."}');
  return true;
};
const refuseThird: Listing['intercept'] = (asked, response) =>
  asked.page === 3 && refuse(asked, response);

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'outfit-follow-test-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function query(environment: Environment, sql: string) {
  const database = await openDatabase(readConfig(environment));
  try {
    return (await database.pool.query(sql)).rows;
  } finally {
    await database.close();
  }
}

async function idsIn(environment: Environment): Promise<number[]> {
  const rows = await query(environment, 'SELECT id FROM outfits ORDER BY id');
  return rows.map(({ id }) => id);
}

function start(environment: Environment, ...args: string[]) {
  const env = { DATA_DIR: join(folder, 'data'), ...environment };
  const started = startCommand(importCommand, args, env);
  onTestFinished(async () => {
    started.stop();
    await started.ended;
  });
  return started;
}

async function call(environment: Environment, ...args: string[]) {
  const { stdout, stderr, ended } = start(environment, ...args);
  return { code: await ended, stdout: stdout.text, stderr: stderr.text };
}

const onPostgres = () => migratedEnvironmentOf('PostgreSQL');
const round = /records read in/;

describe('following', () => {
  test('reports after each round what changed, until it is ended', async () => {
    const environment = await onPostgres();
    const listing = await serveListing(makeRecords(25));
    const following = start(environment, listing.url, '--follow', '1s');
    await following.stdout.until(round);
    listing.records = [makeRecord(26), makeRecord(25, { likes: 9 }), ...listing.records.slice(1)];
    await following.stdout.until(/1 created, 1 updated, 24 unchanged, 0 broken/);
    await following.stdout.until(/0 created, 0 updated, 26 unchanged, 0 broken/);
    following.stop();
    expect(await following.ended).toBe(130);
    const [first] = following.stdout.text.split('\n');
    expect(first).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z 25 records read in .* 25 created, 0 updated/);
    expect(following.stdout.text).toMatch(/\nInterrupted; what was read is saved\.\n$/);
    expect(following.stderr.text).toBe('');
  });

  test('says once that the source is away, tries again each round, and says once that it is back', async () => {
    const environment = await onPostgres();
    const listing = await serveListing(makeRecords(5));
    listing.intercept = refuse;
    const following = start(environment, listing.url, '--follow', '1s');
    while (listing.asked.length < 3) await new Promise((settle) => setTimeout(settle, 20));
    listing.intercept = () => false;
    await following.stdout.until(/5 created/);
    await following.stdout.until(/5 unchanged/);
    following.stop();
    await following.ended;
    const [failed, back, ...more] = following.stderr.text.trim().split('\n');
    expect(failed).toMatch(
      /Z http:\S+ answered 403: {"detail":"No."}\. It is tried again every 1 s\.$/,
    );
    expect(back).toMatch(/Z It goes on\.$/);
    expect(more).toEqual([]);
  });

  test('reports only the first failed attempt of a round', async () => {
    const environment = await onPostgres();
    const listing = await serveListing(makeRecords(5));
    let failures = 3;
    listing.intercept = (_asked, response) => {
      if (failures-- <= 0) return false;
      response.socket?.destroy();
      return true;
    };
    const following = start(environment, listing.url, '--follow', '1s');
    await following.stdout.until(/5 created/);
    expect(following.stderr.text.match(/trying again in/g)).toHaveLength(1);
  });

  test('is not kept from the first pages by a page that never comes', async () => {
    const environment = await onPostgres();
    const listing = await serveListing(makeRecords(25));
    listing.intercept = refuseThird;
    start(environment, listing.url, '--follow', '1s');
    while (listing.asked.length < 7) await new Promise((settle) => setTimeout(settle, 20));
    expect(listing.asked.slice(0, 7)).toEqual([1, 2, 3, 3, 1, 2, 3]);
  });

  test('goes on at its checkpoint after it was killed, and ends on SIGTERM', async () => {
    const environment = { DATA_DIR: join(folder, 'data'), ...(await onPostgres()) };
    const listing = await serveListing(makeRecords(2_500));
    listing.pageSize = 600;
    listing.intercept = ({ page }) => page === 4;
    const command = [`${dist}commands/cli.js`, 'import', listing.url, '--follow', '600s'];
    const killed = run(command, environment);
    const isSaved = () => {
      try {
        return readdirSync(join(folder, 'data/.import')).some((name) => name.endsWith('.json'));
      } catch {
        return false;
      }
    };
    while (!isSaved()) await new Promise((settle) => setTimeout(settle, 20));
    killed.child.kill('SIGKILL');
    await killed.ended;
    const asked = listing.asked.length;
    listing.intercept = () => false;

    const following = run(command, environment);
    await following.until(/2,500 records read in/);
    expect(following.errors()).toContain('Going on behind the 1,200 records');
    expect(listing.asked.slice(asked)).toEqual([3, 4, 5]);
    following.child.kill('SIGTERM');
    expect(await following.ended).toBe(130);
    expect(await idsIn(environment)).toHaveLength(2_500);
  });

  test('outlives a database that is away for some rounds', async () => {
    const environment = await onPostgres();
    const listing = await serveListing(makeRecords(5));
    const name = new URL(environment['DATABASE_URL'] ?? '').pathname.slice(1);
    const server = new pg.Client(inject('postgresUrl'));
    await server.connect();
    onTestFinished(() => server.end());
    const following = start(environment, listing.url, '--follow', '1s');
    await following.stdout.until(round);
    await server.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`);
    await server.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1`,
      [name],
    );
    await following.stderr.until(
      /(?:The database failed: |cannot be reached ).* It is tried again every 1 s\./,
    );
    await server.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS true`);
    await following.stderr.until(/It goes on\./);
    expect(following.stderr.text.match(/It is tried again/g)).toHaveLength(1);
  });

  test('outlives a database that freezes in the middle of a round', async () => {
    const environment = await onPostgres();
    const url = new URL(environment['DATABASE_URL'] ?? '');
    const network = await openNetwork(Number(url.port || 5432));
    onTestFinished(() => network.close());
    url.host = `127.0.0.1:${network.port}`;
    const listing = await serveListing(makeRecords(5));
    const through = { ...environment, DATABASE_URL: url.href };
    const following = start(through, listing.url, '--follow', '1s');
    await following.stdout.until(round);
    listing.intercept = () => {
      network.swallow();
      return false;
    };
    await following.stderr.until(/cannot be reached .* It is tried again every 1 s\./);
    listing.intercept = () => false;
    listing.records = [makeRecord(6), ...listing.records];
    network.restore();
    await following.stderr.until(/It goes on\./);
    expect(await idsIn(environment)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  test('locks writers out once, and then only where outfits were created', async () => {
    const environment = await onPostgres();
    const listing = await serveListing(makeRecords(2_500));
    listing.pageSize = 500;
    const sent = vi.spyOn(pg.Client.prototype, 'query');
    onTestFinished(() => sent.mockRestore());
    const locks = () => sent.mock.calls.filter(([text]) => String(text).startsWith('LOCK TABLE'));
    await call(environment, listing.url);
    expect(locks()).toHaveLength(3);
    sent.mockClear();
    await call(environment, listing.url);
    expect(locks()).toHaveLength(1);
  });

  test('goes on where a page is gone by then, because the listing became shorter', async () => {
    const environment = await onPostgres();
    const listing = await serveListing(makeRecords(25));
    listing.intercept = refuseThird;
    expect(await call(environment, listing.url)).toMatchObject({ code: 2 });
    listing.intercept = () => false;
    listing.records = listing.records.slice(0, 15);
    const resumed = await call(environment, listing.url);
    expect(resumed).toMatchObject({ code: 0 });
    expect(resumed.stderr).toContain('is gone: the listing became shorter');
  });
});

describe('--pause', () => {
  test('waits before the next page, and ends at once when it is told to', async () => {
    const environment = await onPostgres();
    const listing = await serveListing(makeRecords(25));
    const pausing = start(environment, listing.url, '--pause', '600000ms');
    while (listing.asked.length === 0) await new Promise((settle) => setTimeout(settle, 20));
    // By then, a second page would have been asked for.
    for (let request = 0; request < 20; request++) await fetch(`${listing.url}?page=3`);
    pausing.stop();
    expect(await pausing.ended).toBe(130);
    expect(listing.asked).not.toContain(2);
    expect(pausing.stdout.text).toContain('10 created');
  });
});

describe.each(databaseKinds)('pruning on %s', (kind) => {
  test('removes what two whole crawls did not have, once it is told to, and leaves users', async () => {
    const environment = await migratedEnvironmentOf(kind);
    const listing = await serveListing(makeRecords(25));
    const whole = await call(environment, listing.url, '--prune', '--yes');
    expect(whole).toMatchObject({ code: 0, stderr: '' });
    expect(whole.stdout).toContain('25 created, 0 updated, 0 unchanged, 0 removed, 0 broken');
    expect(listing.asked).toEqual([1, 2, 3]);

    listing.records = listing.records.filter(({ id }) => id > 12);
    const named = await call(environment, listing.url, '--prune');
    expect(named).toMatchObject({ code: 0, stderr: '' });
    const ids = '(1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more)';
    expect(named.stdout).toContain(`12 outfits ${ids} did not come: what the next whole crawl`);
    expect(named.stdout).toContain(
      `12 outfits ${ids} did not come in two whole crawls. Nothing is removed without --yes.`,
    );
    expect(await idsIn(environment)).toHaveLength(25);

    const removed = await call(environment, listing.url, '--prune', '--yes');
    expect(removed.stdout).toContain(
      `12 outfits ${ids} did not come in two whole crawls, and will`,
    );
    expect(removed.stdout).toContain('0 created, 0 updated, 13 unchanged, 12 removed, 0 broken');
    expect(await idsIn(environment)).toEqual(listing.records.map(({ id }) => id).reverse());
    expect(await query(environment, 'SELECT count(*)::int FROM users')).toEqual([{ count: 5 }]);
    expect(await query(environment, 'SELECT * FROM check_outfit_counts()')).toEqual([]);
  });
});

describe('pruning', () => {
  test('keeps an outfit that moved between pages, and takes the one that was deleted meanwhile', async () => {
    const environment = await onPostgres();
    const listing = await serveListing(makeRecords(25));
    await call(environment, listing.url);
    let crawls = 0;
    listing.afterPage = (page) => {
      if (page === 1) crawls++;
      // 15, the first of page 2, moves to page 1, which has been read.
      if (page === 1 && crawls === 1)
        listing.records = listing.records.filter(({ id }) => id !== 20);
    };
    const moved = await call(environment, listing.url, '--prune', '--yes');
    expect(moved.stdout).toContain('1 outfit (15) did not come: what the next whole crawl');
    expect(moved.stdout).toContain('1 outfit (20) did not come: what the next whole crawl');
    expect(moved.stdout).not.toContain('will be removed');
    expect(await idsIn(environment)).toHaveLength(25);
    const after = await call(environment, listing.url, '--prune', '--yes');
    expect(after.stdout).toContain('1 outfit (20) did not come in two whole crawls, and will');
    expect(await idsIn(environment)).toHaveLength(24);
  });

  test('names in one round what it removes in the next', async () => {
    const environment = await onPostgres();
    const listing = await serveListing(makeRecords(5));
    const following = start(environment, listing.url, '--follow', '1s', '--prune', '--yes');
    await following.stdout.until(round);
    listing.records = listing.records.filter(({ id }) => id !== 3);
    await following.stdout.until(/4 unchanged, 1 removed, 0 broken/);
    expect(following.stdout.text).toMatch(
      /\n1 outfit \(3\) did not come: .*\n.* 4 unchanged, 0 removed, 0 broken\.\n1 outfit \(3\) did not come in two whole crawls, and will be removed now\.\n/,
    );
    expect(await idsIn(environment)).toEqual([1, 2, 4, 5]);
  });

  test('removes no more than half of what is there, unless it is told how many', async () => {
    const environment = await onPostgres();
    const listing = await serveListing(makeRecords(25));
    await call(environment, listing.url);
    listing.records = listing.records.slice(0, 12);
    const prune = [listing.url, '--prune', '--yes'];
    const refused = await call(environment, ...prune);
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.stdout).toContain(
      'That is more than 12, so nothing is removed: if it is right, add --max-removed 13.',
    );
    expect(await idsIn(environment)).toHaveLength(25);
    expect(await call(environment, ...prune, '--max-removed', '13')).toMatchObject({ code: 0 });
    expect(await idsIn(environment)).toHaveLength(12);
  });

  test.each<[string, (listing: Listing) => void]>([
    ['some records were broken', (listing) => listing.records.push(makeRecord(90, { likes: -1 }))],
    ['the listing counts more than came', (listing) => Object.assign(listing, { uncounted: 1 })],
    [
      'a page was gone when it was asked for',
      (listing) => {
        listing.intercept = ({ page }, response) => {
          if (page === 2) response.writeHead(404).end('{"detail":"Invalid page."}');
          return page === 2;
        };
      },
    ],
    ['the source is empty', (listing) => Object.assign(listing, { records: [] })],
  ])('removes nothing when %s', async (reason, disturb) => {
    const environment = await onPostgres();
    const listing = await serveListing(makeRecords(25));
    await call(environment, listing.url);
    listing.records = listing.records.filter(({ id }) => id !== 20);
    disturb(listing);
    for (const _again of [1, 2]) {
      const result = await call(environment, listing.url, '--prune', '--yes');
      expect(result).toMatchObject({ code: 1 });
      expect(result.stdout).toContain(`Nothing is removed, because ${reason}.`);
    }
    expect(await idsIn(environment)).toHaveLength(25);
  });

  test('reads all once more when the crawl went on where another one had ended', async () => {
    const environment = await onPostgres();
    const listing = await serveListing(makeRecords(25));
    await call(environment, listing.url);
    listing.intercept = refuseThird;
    expect(await call(environment, listing.url)).toMatchObject({ code: 2 });
    listing.intercept = () => false;
    listing.records = [makeRecord(26), makeRecord(25, { likes: 3 }), ...listing.records.slice(2)];
    listing.asked.length = 0;
    const resumed = await call(environment, listing.url, '--prune', '--yes');
    expect(resumed).toMatchObject({ code: 0 });
    expect(resumed.stdout).toContain(
      'Nothing is removed, because the import went on where another one had ended.',
    );
    expect(resumed.stdout).toContain('did not come, so all is read once more.');
    expect(resumed.stdout).toContain('1 outfit (24) did not come in two whole crawls, and will');
    expect(listing.asked).toEqual([3, 1, 2, 3, 1, 2, 3]);
    expect(await idsIn(environment)).toEqual(listing.records.map(({ id }) => id).reverse());
    expect(await query(environment, 'SELECT likes FROM outfit_like_counts WHERE id = 25')).toEqual([
      { likes: 3 },
    ]);
  });

  test('says without --prune what may be missing when the crawl went on', async () => {
    const environment = await onPostgres();
    const listing = await serveListing(makeRecords(25));
    listing.intercept = refuseThird;
    expect(await call(environment, listing.url)).toMatchObject({ code: 2 });
    listing.intercept = () => false;
    const resumed = await call(environment, listing.url);
    expect(resumed).toMatchObject({ code: 0 });
    expect(resumed.stdout).toMatch(/What changed since .* did not come: import once more\.\n$/);
  });

  test('does not go on where a follower was ended', async () => {
    const environment = await onPostgres();
    const listing = await serveListing(makeRecords(2_500));
    listing.pageSize = 600;
    listing.intercept = ({ page }) => page === 4;
    const following = start(environment, listing.url, '--follow', '600s', '--prune', '--yes');
    while (!listing.asked.includes(4)) await new Promise((settle) => setTimeout(settle, 20));
    following.stop();
    expect(await following.ended).toBe(130);
    expect(following.stdout.text).toContain('The same command goes on from there');
    listing.intercept = () => false;
    listing.records = [makeRecord(2_501), ...listing.records];
    listing.asked.length = 0;
    const last = await call(environment, listing.url, '--prune', '--yes');
    expect(last).toMatchObject({ code: 0 });
    expect(listing.asked).toEqual([1, 2, 3, 4, 5]);
    expect(await idsIn(environment)).toHaveLength(2_501);
  });

  test('goes on while outfits are created at the top of the listing in every crawl', async () => {
    const environment = await onPostgres();
    const listing = await serveListing(makeRecords(25));
    await call(environment, listing.url);
    listing.records = listing.records.filter(({ id }) => id !== 20);
    let highest = 25;
    listing.afterPage = (page) => {
      if (page === 1) listing.records = [makeRecord(++highest), ...listing.records];
    };
    const following = start(environment, listing.url, '--follow', '1s', '--prune', '--yes');
    await following.stdout.until(/1 removed, 0 broken/);
    expect(following.stdout.text).toContain('1 outfit (20) did not come in two whole crawls');
    expect(following.stdout.text).not.toContain('Nothing is removed');
  });

  test('names a broken record once, though it moves to another page in every round', async () => {
    const environment = await onPostgres();
    const broken = makeRecord(10, { likes: -1 });
    const listing = await serveListing([...makeRecords(9), broken]);
    const following = start(environment, listing.url, '--follow', '1s');
    for (const rounds of [1, 2, 3]) {
      await following.stdout.until(/1 broken/, rounds);
      const others = listing.records.filter(({ id }) => id !== 10);
      listing.records = [makeRecord(20 + rounds), ...others, broken];
    }
    expect(following.stderr.text.match(/Outfit 10 /g)).toHaveLength(1);
  });

  test.each([
    [['pages/', '--prune'], '--prune needs a live listing as SOURCE.'],
    [['-', '--follow', '5s'], '--follow needs a live listing as SOURCE.'],
    [['-', '--pause', '5ms'], '--pause needs a live listing as SOURCE.'],
    [['http://127.0.0.1:1/', '--prune', '--max-removed', '5'], '--max-removed needs --yes.'],
    [['http://127.0.0.1:1/', '--yes'], '--yes is about what --prune removes: add --prune.'],
    [
      ['http://127.0.0.1:1/', '--follow', '0'],
      '--follow is "0", but it may be a duration with its unit, such as "500ms", "10s" or "5m", from 1s to 7d.',
    ],
    [
      ['http://127.0.0.1:1/', '--follow', '5s', '--replace'],
      "Option '--replace' cannot be used with option '--follow",
    ],
  ])('and following with the words %j are refused in a sentence', async (words, sentence) => {
    const result = await call({ DATA_DIR: join(folder, 'data') }, ...words);
    expect(result).toMatchObject({ code: 2 });
    expect(result.stderr).toContain(sentence);
  });
});

/** As if it had been created here. */
const makeOwn = (environment: Environment, id: number) =>
  query(
    environment,
    `INSERT INTO outfits (id, image_key, image_original_key, user_id, created, modified)
     VALUES (${id}, 'outfits/a.png', 'outfits/a.png', 1, 0, 0)`,
  );

test.each([{}, { FIRST_ID: '10' }, { FIRST_ID: '9000' }])(
  'outfits that were made here stay, and are not overwritten, with %j instead of FIRST_ID=1000',
  async (settings) => {
    const environment: Environment = await onPostgres();
    const listing = await serveListing([makeRecord(6), makeRecord(5)]);
    await call({ ...environment, FIRST_ID: '1000' }, listing.url);
    await makeOwn(environment, 1_000);
    const other = { ...environment, ...settings };
    expect(await call(other, listing.url, '--prune', '--yes')).toMatchObject({ code: 0 });
    expect(await idsIn(environment)).toEqual([5, 6, 1_000]);
    listing.records = [makeRecord(1_000), makeRecord(6), makeRecord(5)];
    const refused = await call(other, listing.url);
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.stderr).toContain('id is 1000, but must be below 1000');
  },
);

test('an export with outfits that were made here is restored without FIRST_ID, and they stay such', async () => {
  const environment: Environment = await onPostgres();
  const listing = await serveListing([makeRecord(6), makeRecord(5)]);
  const first = { ...environment, FIRST_ID: '1000' };
  await call(first, listing.url);
  await makeOwn(environment, 1_000);
  const backup = join(folder, 'backup.ndjson');
  const records = [makeRecord(1_000), makeRecord(6), makeRecord(5)];
  writeFileSync(backup, toLines(records));
  expect(await call(environment, backup, '--replace')).toMatchObject({ code: 0 });
  expect(await idsIn(environment)).toEqual([5, 6, 1_000]);
  listing.records = [makeRecord(6)];
  const pruned = await call(environment, listing.url, '--prune', '--yes');
  expect(pruned.stdout).toContain('1 outfit (5) did not come in two whole crawls, and will');
  expect(await idsIn(environment)).toEqual([6, 1_000]);
});

describe.each(databaseKinds)('FIRST_ID on %s', (kind) => {
  test('begins the ids of outfits made here, and keeps those of a source away from them', async () => {
    const environment: Environment = {
      ...(await migratedEnvironmentOf(kind)),
      AUTH_JWT_SECRET: secret,
      SEED: 'none',
    };
    const source = (...records: ListedRecord[]) => {
      const file = join(folder, 'records.ndjson');
      writeFileSync(file, toLines(records));
      return file;
    };
    const create = async (settings: Environment) => {
      const server = runServer({ ...environment, ...settings });
      const base = await baseOf(server);
      const response = await fetch(`${base}/api/outfits/`, {
        method: 'POST',
        headers: { ...(await signIn(1)), 'content-type': 'application/json' },
        body: JSON.stringify({
          image_key: 'outfits/2b1d3c4e-0000-4000-8000-000000000001.png',
          title: 'Ours',
        }),
      });
      expect(response.status).toBe(201);
      const { id } = (await response.json()) as { id: number };
      await stop(server);
      return id;
    };
    const firstId = { FIRST_ID: '1000' };
    await call({ ...environment, ...firstId }, source(makeRecord(5), makeRecord(6)));
    expect(await create(firstId)).toBe(1_000);
    expect(await create({ FIRST_ID: '10' })).toBe(1_001);

    await call(environment, source(makeRecord(5)), '--replace');
    expect(await create({})).toBe(1_000);
  });

  test('is kept by the migration, and moves up while nothing was made from there on', async () => {
    const environment = await migratedEnvironmentOf(kind);
    const firstIdIs = async (value: number) => {
      expect(await query(environment, 'SELECT value FROM first_id')).toEqual([{ value }]);
      const [next] = await query(environment, `SELECT nextval('outfits_id_seq')::int AS id`);
      expect(next).toEqual({ id: value });
    };
    const migrate = async (firstId: string) => {
      const migrating = run([`${dist}commands/cli.js`, 'migrate'], {
        ...environment,
        FIRST_ID: firstId,
      });
      expect(await migrating.ended, migrating.errors()).toBe(0);
    };
    await migrate('1000');
    await firstIdIs(1_000);
    await migrate('5000');
    await firstIdIs(5_000);
  });

  test('lets who went back to the old service go forward again, with a higher one', async () => {
    const environment: Environment = await migratedEnvironmentOf(kind);
    const listing = await serveListing([makeRecord(6), makeRecord(5)]);
    const before = { ...environment, FIRST_ID: '1000' };
    await call(before, listing.url);
    // What was made here and liked here is in the old service by then.
    await makeOwn(environment, 1_000);
    await query(environment, 'SELECT like_outfit(6, 1, true, false)');
    listing.records = [makeRecord(1_000), makeRecord(6, { likes: 1 }), makeRecord(5)];
    const refused = await call(before, listing.url);
    expect(refused).toMatchObject({ code: 1 });

    const again = { ...environment, FIRST_ID: '5000' };
    const replaced = await call(again, listing.url, '--replace');
    expect(replaced).toMatchObject({ code: 0 });
    expect(replaced.stdout).toContain('3 created, 0 updated, 0 unchanged, 0 broken');
    listing.records = listing.records.slice(1);
    const pruned = await call(again, listing.url, '--prune', '--yes');
    expect(pruned).toMatchObject({ code: 0 });
    expect(pruned.stdout).toContain('1 outfit (1000) did not come in two whole crawls, and will');
    expect(
      await query(environment, 'SELECT id, likes FROM outfit_like_counts ORDER BY id'),
    ).toEqual([
      { id: 5, likes: 5 },
      { id: 6, likes: 1 },
    ]);
    expect(await query(environment, 'SELECT value FROM first_id')).toEqual([{ value: 5_000 }]);
  });
});
