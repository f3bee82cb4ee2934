// Keeping up with a live listing: `npm run import` with --follow, --pause and --prune, and FIRST_ID.
import { existsSync, readdirSync } from 'node:fs';
import pg from 'pg';
import { describe, expect, inject, onTestFinished, test, vi } from 'vitest';
import * as importCommand from '../../src/commands/import.ts';
import * as migrateCommand from '../../src/commands/migrate.ts';
import { callCommand, startCommand } from '../support/cli/commands.ts';
import { useFolder } from '../support/cli/folder.ts';
import { dist, migratedEnvironmentOf, run } from '../support/cli/process.ts';
import { connectForTest, withDatabase } from '../support/databases/connections.ts';
import { openNetwork } from '../support/faults/network.ts';
import { findFreePort } from '../support/http/free-port.js';
import {
  type LegacyRecord,
  type LegacyService,
  makeRecord,
} from '../support/legacy/legacy-service.ts';
import { newest, serveListing, toLines } from '../support/legacy/listing.ts';

const refuse = () => [403, {}, { detail: 'No.' }] as const;
const refuseThird: LegacyService['intercept'] = ({ page }) => page === 3 && refuse();
const refuseNone = () => false;

const folder = useFolder();

function start(environment: Record<string, string>, ...args: string[]) {
  const started = startCommand(importCommand, args, environment);
  onTestFinished(async () => {
    started.stop();
    await started.ended;
  });
  return started;
}

/** A listing with so many records, an empty database, and the import of the one into the other. */
async function begin(records: number | LegacyRecord[]) {
  const listing = await serveListing(typeof records === 'number' ? newest(records) : records);
  const database = await migratedEnvironmentOf('PostgreSQL');
  const environment: Record<string, string> = { DATA_DIR: folder.at('data'), ...database };
  const query = (sql: string) =>
    withDatabase(environment, async ({ pool }) => (await pool.query(sql)).rows);
  return {
    listing,
    environment,
    query,
    ids: async (): Promise<number[]> =>
      (await query('SELECT id FROM outfits ORDER BY id')).map(({ id }) => id),
    /** Imports the listing to the end. */
    call: (
      args: readonly string[] = [],
      settings: Record<string, string> = {},
      url = listing.url,
    ) => callCommand(importCommand, [url, ...args], { ...environment, ...settings }),
    follow: (...args: string[]) => start(environment, listing.url, '--follow', '1s', ...args),
    /** An outfit as if it had been created here. */
    create: async (id: number | 'DEFAULT' = 'DEFAULT'): Promise<number> =>
      (
        await query(
          `INSERT INTO outfits (id, image_key, image_original_key, user_id, created, modified)
           VALUES (${id}, 'outfits/a.png', 'outfits/a.png', 1, 0, 0) RETURNING id`,
        )
      )[0].id,
  };
}

const round = /records read in/;

describe('following', () => {
  test('following reports after each round what changed, until it is ended', async () => {
    const { listing, follow } = await begin(25);
    let failures = 2;
    listing.intercept = (_asked, { socket }) => failures-- > 0 && !!socket?.destroy();
    const { stdout, stderr, ended, stop } = follow();
    await stdout.until(round);
    listing.records = [makeRecord(26), makeRecord(25, { likes: 9 }), ...listing.records.slice(1)];
    await stdout.until(/1 created, 1 updated, 24 unchanged, 0 broken/);
    await stdout.until(/0 created, 0 updated, 26 unchanged, 0 broken/);
    stop();
    expect(await ended).toBe(130);
    expect(stdout.text).toMatch(
      /^\d{4}-\d\d-\d\dT[\d:.]+Z 25 records read in .* 25 created, 0 updated[\s\S]*\nInterrupted; what was read is saved\.\n$/,
    );
    // Only the first failed attempt of a round is reported.
    expect(stderr.text).toMatch(/^\S+ did not answer .*; trying again in \S+ s\.\n$/);
  });

  test('following says once that the source is away, tries again each round, and says once that it is back', async () => {
    const { listing, follow } = await begin(5);
    listing.intercept = refuse;
    const { stdout, stderr } = follow();
    await expect.poll(() => listing.asked.length).toBeGreaterThan(2);
    listing.intercept = refuseNone;
    await stdout.until(/5 created/);
    await stdout.until(/5 unchanged/);
    expect(stderr.text).toMatch(
      /^\S+Z http:\S+ answered 403: {"detail":"No."}\. It is tried again every 1 s\.\n\S+Z It goes on\.\n$/,
    );
  });

  test('the metric of following says how old the last whole round is, and falls when another one has come', async () => {
    const { listing, follow } = await begin(5);
    const port = await findFreePort();
    const { stdout } = follow('--metrics-port', String(port));
    await stdout.until(/5 created/);
    const readLag = async () => {
      const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
      return Number(/^gateway_follow_lag_seconds (\S+)$/m.exec(text)?.[1]);
    };
    listing.intercept = refuse;
    await expect.poll(readLag).toBeGreaterThan(6);
    listing.intercept = refuseNone;
    await expect.poll(readLag).toBeLessThan(6);
  });

  test('following is not kept from the first pages by a page that never comes', async () => {
    const { listing, follow } = await begin(25);
    listing.intercept = refuseThird;
    follow();
    await expect.poll(() => listing.asked.slice(0, 7)).toEqual([1, 2, 3, 3, 1, 2, 3]);
  });

  test('following goes on at its checkpoint after it was killed, and ends on SIGTERM', async () => {
    const { listing, environment, ids } = await begin(2_500);
    listing.pageSize = 600;
    listing.intercept = ({ page }) => page === 4;
    const command = [`${dist}commands/cli.js`, 'import', listing.url, '--follow', '600s'];
    const killed = run(command, environment);
    const saved = folder.at('data/.import');
    await expect
      .poll(() => existsSync(saved) && readdirSync(saved).some((name) => name.endsWith('.json')))
      .toBe(true);
    killed.child.kill('SIGKILL');
    await killed.ended;
    const asked = listing.asked.length;
    listing.intercept = refuseNone;

    const following = run(command, environment);
    await following.until(/2,500 records read in/);
    expect(following.errors()).toContain('Continuing after the 1,200 records');
    expect(listing.asked.slice(asked)).toEqual([3, 4, 5]);
    following.child.kill('SIGTERM');
    expect(await following.ended).toBe(130);
    expect(await ids()).toHaveLength(2_500);
  });

  test('outlives a database that is away for some rounds', async () => {
    const { environment, follow } = await begin(5);
    const name = new URL(environment['DATABASE_URL'] ?? '').pathname.slice(1);
    const server = await connectForTest(inject('postgresUrl'));
    const { stdout, stderr } = follow();
    await stdout.until(round);
    await server.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`);
    await server.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`,
    );
    await stderr.until(
      /(?:The database failed: |cannot be reached ).* It is tried again every 1 s\./,
    );
    await server.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS true`);
    await stderr.until(/It goes on\./);
    expect(stderr.text.match(/It is tried again/g)).toHaveLength(1);
  });

  test('outlives a database that freezes in the middle of a round', async () => {
    const { listing, environment, ids } = await begin(5);
    const url = new URL(environment['DATABASE_URL'] ?? '');
    const network = await openNetwork(Number(url.port || 5432));
    onTestFinished(() => network.close());
    url.host = `127.0.0.1:${network.port}`;
    const through = { ...environment, DATABASE_URL: url.href };
    const { stdout, stderr } = start(through, listing.url, '--follow', '1s');
    await stdout.until(round);
    listing.intercept = () => {
      network.swallow();
      return false;
    };
    await stderr.until(/cannot be reached .* It is tried again every 1 s\./);
    listing.intercept = refuseNone;
    listing.records = [makeRecord(6), ...listing.records];
    network.restore();
    await stderr.until(/It goes on\./);
    expect(await ids()).toEqual([1, 2, 3, 4, 5, 6]);
  });

  test('locks writers out once, and then only where outfits were created', async () => {
    const { listing, call } = await begin(2_500);
    listing.pageSize = 500;
    const sent = vi.spyOn(pg.Client.prototype, 'query');
    onTestFinished(() => sent.mockRestore());
    const locks = () => sent.mock.calls.filter(([text]) => String(text).startsWith('LOCK TABLE'));
    await call();
    expect(locks()).toHaveLength(3);
    sent.mockClear();
    await call();
    expect(locks()).toHaveLength(1);
  });

  test('following goes on where a page is gone by then, and says what may be missing', async () => {
    const { listing, call } = await begin(25);
    listing.intercept = refuseThird;
    expect(await call()).toMatchObject({ code: 2 });
    listing.intercept = refuseNone;
    listing.records = listing.records.slice(0, 15);
    const resumed = await call();
    expect(resumed).toMatchObject({ code: 1 });
    expect(resumed.stderr).toContain('is gone: the listing became shorter');
    expect(resumed.stdout).toMatch(/What changed since .* did not come: import again\.\n$/);
  });

  test('following waits for --pause before the next page, and ends at once when it is told to', async () => {
    const { listing, environment } = await begin(25);
    const pausing = start(environment, listing.url, '--pause', '600000ms');
    await expect.poll(() => listing.asked.length).toBe(1);
    // By then, a second page would have been asked for.
    for (let request = 0; request < 20; request++) await fetch(`${listing.url}?page=3`);
    pausing.stop();
    expect(await pausing.ended).toBe(130);
    expect(listing.asked).not.toContain(2);
    expect(pausing.stdout.text).toContain('10 created');
  });
});

describe('pruning', () => {
  const prune = ['--prune', '--yes'];

  test('pruning removes what two whole crawls did not have, once it is told to, and leaves users', async () => {
    const { listing, query, ids, call } = await begin(25);
    const whole = await call(prune);
    expect(whole).toMatchObject({ code: 0, stderr: '' });
    expect(whole.stdout).toContain('25 created, 0 updated, 0 unchanged, 0 removed, 0 broken');
    expect(listing.asked).toEqual([1, 2, 3]);

    listing.records = listing.records.filter(({ id }) => id > 12);
    const named = await call(['--prune']);
    expect(named).toMatchObject({ code: 0, stderr: '' });
    const absent = '12 outfits (1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more) did not come';
    expect(named.stdout).toContain(`${absent}: those that the next complete crawl`);
    expect(named.stdout).toContain(
      `${absent} in two complete crawls. Nothing is removed without --yes.`,
    );
    expect(await ids()).toHaveLength(25);

    const removed = await call(prune);
    expect(removed.stdout).toContain(`${absent} in two complete crawls, and will`);
    expect(removed.stdout).toContain('0 created, 0 updated, 13 unchanged, 12 removed, 0 broken');
    expect(await ids()).toEqual(listing.records.map(({ id }) => id).reverse());
    expect(await query('SELECT count(*)::int FROM users')).toEqual([{ count: 5 }]);
    expect(await query('SELECT * FROM check_outfit_counts()')).toEqual([]);
  });

  test('pruning keeps an outfit that moved between pages, and takes the one that was deleted meanwhile', async () => {
    const { listing, ids, call } = await begin(25);
    await call();
    let crawls = 0;
    listing.afterPage = (page) => {
      if (page !== 1 || ++crawls !== 1) return;
      // 15, the first of page 2, moves to page 1, which has been read.
      listing.records = listing.records.filter(({ id }) => id !== 20);
    };
    const moved = await call(prune);
    expect(moved.stdout).not.toContain('outfit (15) did not come');
    expect(moved.stdout).not.toContain('will be removed');
    expect(await ids()).toHaveLength(25);
    const after = await call(prune);
    expect(after.stdout).toContain('1 outfit (20) did not come in two complete crawls, and will');
    expect(await ids()).toHaveLength(24);
  });

  test('pruning removes no more than half of what is there, unless it is told how many', async () => {
    const { listing, ids, call } = await begin(25);
    await call();
    listing.records = listing.records.slice(0, 12);
    const refused = await call(prune);
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.stdout).toContain(
      'That is more than 12, so nothing is removed: if it is right, add --max-removed 13.',
    );
    expect(await ids()).toHaveLength(25);
    expect(await call([...prune, '--max-removed', '13'])).toMatchObject({ code: 0 });
    expect(await ids()).toHaveLength(12);
  });

  test.each<[string, (listing: LegacyService) => void]>([
    [
      'some records have no valid id',
      (listing) => listing.records.push(makeRecord(90, { id: '90' })),
    ],
    [
      'the listing counts more than were read',
      (listing) => Object.assign(listing, { uncounted: 1 }),
    ],
    [
      'a page was gone when it was asked for',
      (listing) => {
        listing.intercept = ({ page }) => page === 2 && [404, {}, { detail: 'Invalid page.' }];
      },
    ],
    ['the source is empty', (listing) => Object.assign(listing, { records: [] })],
  ])('removes nothing when %s', async (reason, disturb) => {
    const { listing, ids, call } = await begin(25);
    await call();
    listing.records = listing.records.filter(({ id }) => id !== 20);
    disturb(listing);
    for (const _again of [1, 2]) {
      const result = await call(prune);
      expect(result).toMatchObject({ code: 1 });
      expect(result.stdout).toContain(`Nothing is removed, because ${reason}.`);
    }
    expect(await ids()).toHaveLength(25);
  });

  test('pruning asks for what did not come, and removes it at once, while people create and delete', async () => {
    const { listing, ids, call } = await begin(25);
    listing.hasDetails = true;
    await call();
    let highest = 25;
    let next = 3;
    listing.afterPage = (page) => {
      const without = listing.records.filter(({ id }) => id !== next);
      if (page > 1) next += 1;
      listing.records = page === 1 ? [makeRecord(++highest), ...without] : without;
    };
    const found = await call(prune);
    expect(found).toMatchObject({ stderr: '' });
    expect(found.stdout).toContain('did not come, and the source answers 404 for each, and will');
    listing.afterPage = () => {};
    expect(await call(prune)).toMatchObject({ code: 0 });
    expect(await ids()).toEqual(listing.records.map(({ id }) => id).reverse());
  });

  test('pruning takes what is there by itself, though it did not come', async () => {
    const { listing, ids, query, call } = await begin(25);
    listing.hasDetails = true;
    await call();
    const hidden = makeRecord(20, { title: 'Renamed' });
    listing.intercept = ({ page }) => {
      const results = listing.records.slice(0, 10).filter(({ id }) => id !== 20);
      return page === 1 && [200, {}, { count: 25, next: '?page=2', previous: null, results }];
    };
    listing.records = listing.records.map((record) => (record.id === 20 ? hidden : record));
    expect(await call(prune)).toMatchObject({ code: 1 });
    expect(await ids()).toHaveLength(25);
    expect(await query('SELECT title FROM outfits WHERE id = 20')).toEqual([{ title: 'Renamed' }]);
  });

  test.each([true, false])(
    'pruning is not stopped by a broken record whose id can be read (asking for single ones: %s)',
    async (hasDetails) => {
      const { listing, ids, call } = await begin(25);
      listing.hasDetails = hasDetails;
      await call();
      const broken = makeRecord(7, { likes: -1 });
      listing.records = listing.records
        .filter(({ id }) => id !== 20)
        .map((record) => (record.id === 7 ? broken : record));
      const found = await call(prune);
      expect(found).toMatchObject({ code: 1 });
      expect(found.stdout).toContain('1 removed, 1 broken');
      expect(await ids()).toEqual(listing.records.map(({ id }) => id).reverse());
    },
  );

  test('pruning keeps private outfits when no private one comes any more, as without a credential', async () => {
    const { listing, ids, call } = await begin(25);
    listing.hasDetails = true;
    await call();
    listing.records = listing.records.filter(
      ({ id, private: isPrivate }) => !isPrivate && id !== 9,
    );
    const found = await call(prune);
    expect(found).toMatchObject({ code: 1 });
    expect(found.stdout).toContain('Private: 6 outfits (4, 8, 12, 16, 20, 24) did not come');
    expect(found.stdout).toContain('1 outfit (9) did not come, and the source answers 404');
    expect(await ids()).toHaveLength(24);
  });

  test('pruning reads a page again whose records have moved, though the count stays the same', async () => {
    const { listing, ids, call } = await begin(newest(25).reverse());
    listing.afterPage = (page) => {
      // 11 moves onto page 1, which was read, and another one is created at the end.
      if (page === 1) listing.records = [...listing.records.slice(1), makeRecord(26)];
      listing.afterPage = () => {};
    };
    expect(await call()).toMatchObject({ code: 0 });
    expect(await ids()).toContain(11);
  });

  test('pruning does not bring back what was saved or deleted here while its page was read', async () => {
    const { listing, query, call } = await begin(25);
    await call();
    let isFirst = true;
    listing.intercept = ({ page }, response) => {
      if (page !== 1 || !isFirst) return false;
      isFirst = false;
      const results = listing.records.slice(0, 10);
      const body = JSON.stringify({ count: 25, next: '?page=2', previous: null, results });
      query("UPDATE outfits SET title = 'Newer' WHERE id = 25")
        .then(() => query('UPDATE outfit_like_counts SET likes = 99 WHERE id = 24'))
        .then(() => query('DELETE FROM outfits WHERE id = 23'))
        .then(() => response.end(body));
      return true;
    };
    listing.records = listing.records.map((record) => ({ ...record, title: 'Older' }));
    await call();
    const select = 'SELECT id, title, likes FROM outfits JOIN outfit_like_counts USING (id)';
    expect(await query(`${select} WHERE id > 22 ORDER BY id`)).toEqual([
      { id: 24, title: 'Older', likes: 99 },
      { id: 25, title: 'Newer', likes: 10 },
    ]);
    await call();
    expect(await query(`${select} WHERE id > 22 ORDER BY id`)).toEqual([
      { id: 23, title: 'Older', likes: 16 },
      { id: 24, title: 'Older', likes: 13 },
      { id: 25, title: 'Older', likes: 10 },
    ]);
  });

  test('pruning does not go on where a follower was ended', async () => {
    const { listing, environment, ids, call } = await begin(2_500);
    listing.pageSize = 600;
    listing.intercept = ({ page }) => page === 4;
    const following = start(environment, listing.url, '--follow', '600s', ...prune);
    await expect.poll(() => listing.asked).toContain(4);
    following.stop();
    expect(await following.ended).toBe(130);
    expect(following.stdout.text).toContain('The same command continues from there');
    listing.intercept = refuseNone;
    listing.records = [makeRecord(2_501), ...listing.records];
    listing.asked.length = 0;
    expect(await call(prune)).toMatchObject({ code: 0 });
    expect(listing.asked).toEqual([1, 2, 3, 4, 5]);
    expect(await ids()).toHaveLength(2_501);
  });

  test('pruning does not go on where a plain import failed', async () => {
    const { listing, ids, call } = await begin(25);
    listing.intercept = refuseThird;
    expect(await call()).toMatchObject({ code: 2 });
    listing.intercept = refuseNone;
    listing.records = listing.records.slice(1);
    listing.asked.length = 0;
    expect(await call(prune)).toMatchObject({ code: 0 });
    expect(listing.asked.slice(0, 3)).toEqual([1, 2, 3]);
    expect(await ids()).toEqual(listing.records.map(({ id }) => id).reverse());
  });

  test('pruning goes on while outfits are created at the top of the listing in every crawl', async () => {
    const { listing, call, follow } = await begin(25);
    await call();
    listing.records = listing.records.filter(({ id }) => id !== 20);
    let highest = 25;
    listing.afterPage = (page) => {
      if (page === 1) listing.records = [makeRecord(++highest), ...listing.records];
    };
    const { stdout } = follow(...prune);
    await stdout.until(/1 removed, 0 broken/);
    expect(stdout.text).toContain('1 outfit (20) did not come in two complete crawls');
    expect(stdout.text).not.toContain('Nothing is removed');
  });

  test('pruning names a broken record once, though it moves to another page in every round', async () => {
    const broken = makeRecord(10, { likes: -1 });
    const { listing, follow } = await begin([...newest(9), broken]);
    const { stdout, stderr } = follow();
    for (const rounds of [1, 2, 3]) {
      await stdout.until(/1 broken/, rounds);
      const others = listing.records.filter(({ id }) => id !== 10);
      listing.records = [makeRecord(20 + rounds), ...others, broken];
    }
    expect(stderr.text.match(/Outfit 10 /g)).toHaveLength(1);
  });

  test.each([
    [['pages/', '--prune'], '--prune needs a live listing as SOURCE.'],
    [['-', '--follow', '5s'], '--follow needs a live listing as SOURCE.'],
    [['-', '--pause', '5ms'], '--pause needs a live listing as SOURCE.'],
    [['-', '--restart'], '--restart needs a live listing as SOURCE.'],
    [['http://127.0.0.1:1/', '--prune', '--max-removed', '5'], '--max-removed needs --yes.'],
    [['http://127.0.0.1:1/', '--yes'], '--yes is about what --prune removes: add --prune.'],
    [
      ['http://127.0.0.1:1/', '--follow', '0'],
      '--follow is "0", but it must be a duration with its unit, such as "500ms", "10s" or "5m", from 1s to 7d.',
    ],
    [
      ['http://127.0.0.1:1/', '--follow', '5s', '--replace'],
      "Option '--replace' cannot be used with option '--follow",
    ],
  ])('and following with the words %j are refused in a sentence', async (words, sentence) => {
    const result = await callCommand(importCommand, words, { DATA_DIR: folder.at('data') });
    expect(result).toMatchObject({ code: 2, stderr: expect.stringContaining(sentence) });
  });
});

describe('FIRST_ID', () => {
  const [five, six] = [makeRecord(5), makeRecord(6)];
  const at = (firstId: number) => ({ FIRST_ID: String(firstId) });
  const prune = ['--prune', '--yes'];

  test('FIRST_ID keeps outfits that were made here, whatever it is later, and refuses their ids in a source', async () => {
    const { listing, ids, call, create } = await begin([six, five]);
    await call([], at(1_000));
    await create(1_000);
    for (const settings of [{}, at(10), at(9_000)]) {
      listing.records = [six, five];
      expect(await call(prune, settings)).toMatchObject({ code: 0 });
      expect(await ids()).toEqual([5, 6, 1_000]);
      listing.records = [makeRecord(1_000), six, five];
      const refused = await call([], settings);
      expect(refused).toMatchObject({ code: 1 });
      expect(refused.stderr).toContain('id is 1000, but must be below 1000');
    }
  });

  test('FIRST_ID is not needed to restore an export with outfits that were made here, and they stay such', async () => {
    const { listing, ids, call, create } = await begin([six, five]);
    await call([], at(1_000));
    await create(1_000);
    const backup = folder.save('backup.ndjson', toLines([makeRecord(1_000), six, five]));
    expect(await call(['--replace'], {}, backup)).toMatchObject({ code: 0 });
    expect(await ids()).toEqual([5, 6, 1_000]);
    listing.records = [six];
    const pruned = await call(prune);
    expect(pruned.stdout).toContain('1 outfit (5) did not come in two complete crawls, and will');
    expect(await ids()).toEqual([6, 1_000]);
  });

  test('FIRST_ID begins the ids of outfits made here, moves up while none was made, and stays', async () => {
    const { environment, query, call, create } = await begin([six, five]);
    const migrate = async (firstId: number) => {
      const migrated = await callCommand(migrateCommand, [], { ...environment, ...at(firstId) });
      expect(migrated).toMatchObject({ code: 0 });
    };
    for (const value of [1_000, 5_000]) {
      await migrate(value);
      expect(await query('SELECT value FROM first_id')).toEqual([{ value }]);
      const [next] = await query(`SELECT nextval('outfits_id_seq')::int AS id`);
      expect(next).toEqual({ id: value });
    }
    await call([], at(7_000));
    expect(await create()).toBe(7_000);
    await migrate(10);
    expect(await create()).toBe(7_001);
    await call(['--replace']);
    expect(await create()).toBe(7_000);
  });

  test('lets who went back to the old service go forward again, with a higher one', async () => {
    const { listing, query, call, create } = await begin([six, five]);
    await call([], at(1_000));
    // What was made here and liked here is in the old service by then.
    await create(1_000);
    await query('SELECT like_outfit(6, 1, true, false)');
    listing.records = [makeRecord(1_000), makeRecord(6, { likes: 1 }), five];
    expect(await call([], at(1_000))).toMatchObject({ code: 1 });

    const replaced = await call(['--replace'], at(5_000));
    expect(replaced).toMatchObject({ code: 0 });
    expect(replaced.stdout).toContain('0 created, 1 updated, 2 unchanged, 0 broken');
    listing.records = listing.records.slice(1);
    const pruned = await call(prune, at(5_000));
    expect(pruned).toMatchObject({ code: 0 });
    expect(pruned.stdout).toContain(
      '1 outfit (1000) did not come in two complete crawls, and will',
    );
    expect(await query('SELECT id, likes FROM outfit_like_counts ORDER BY id')).toEqual([
      { id: 5, likes: 2 },
      { id: 6, likes: 1 },
    ]);
    expect(await query('SELECT value FROM first_id')).toEqual([{ value: 5_000 }]);
  });
});
