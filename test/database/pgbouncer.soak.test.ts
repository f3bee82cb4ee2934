// Behind PgBouncer, in both of its modes: requests of every kind, time limits, and wrong settings.
import { readFileSync } from 'node:fs';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import * as check from '../../src/commands/check.ts';
import { readConfig } from '../../src/config/config.ts';
import { openDatabase } from '../../src/database/database.ts';
import { callCommand } from '../support/cli/commands.ts';
import {
  baseOf,
  demoEnvironment,
  dist,
  listing,
  type Run,
  run,
  runServer,
} from '../support/cli/process.ts';
import { connectTo, execute } from '../support/databases/connections.ts';
import { hasPgBouncer, startPgBouncer } from '../support/databases/pgbouncer.ts';
import { anyRequest, send } from '../support/faults/load.ts';
import { outfitId } from '../support/gateway.ts';
import { openStream } from '../support/http/event-stream.ts';
import { secret, signIn } from '../support/http/tokens.ts';

const modes = ['session', 'transaction'] as const;
type Mode = (typeof modes)[number];

/** A migrated database, and what leads to it directly and by way of the pooler. */
async function open(mode: Mode, settings?: string) {
  const { DATABASE_URL: direct = '' } = await demoEnvironment();
  const pooler = await startPgBouncer(direct, mode, settings);
  onTestFinished(pooler.close);
  return { direct, environment: { DATABASE_URL: pooler.url, DATABASE_POOLER: mode } };
}

/** What docs/databases.md says to do for the role, before anyone connects. */
async function prepareRole(direct: string, limit = '30s'): Promise<void> {
  const page = readFileSync(new URL('../../docs/databases.md', import.meta.url), 'utf8');
  const [, statements = ''] = /```sql\n(.*?)```/s.exec(page) ?? [];
  const { username, pathname } = new URL(direct);
  const role = `ROLE ${username} IN DATABASE ${pathname.slice(1)}`;
  const ours = statements
    .replaceAll('ROLE gateway IN DATABASE outfits', role)
    .replace(`statement_timeout = '30s'`, `statement_timeout = '${limit}'`);
  await execute(direct, ours);
}

const likes = 30;

/** Requests of every kind by 16 clients, ten to a like, and all that was not answered as it must be. */
async function sendAll(base: string, count = likes * 10): Promise<string[]> {
  const wrong: string[] = [];
  let turn = 0;
  const sendOne = async (number: number) => {
    if (number % 10 === 0) return like(base, 1 + number / 10);
    if (number % 10 === 5) return createTwice(base, number);
    const { status, body } = await send(base, anyRequest(number));
    return status === 200 && !body.includes('"errors"') ? undefined : `${status} ${body}`;
  };
  const work = async () => {
    while (turn < count) {
      const problem = await sendOne(turn++);
      if (problem !== undefined) wrong.push(problem);
    }
  };
  await Promise.all(Array.from({ length: 16 }, work));
  return wrong;
}

async function like(base: string, userId: number): Promise<string | undefined> {
  const what = `mutation { likeOutfit(id: "${outfitId(1)}") { outfit { viewerHasLiked } } }`;
  const { status, body } = await send(base, what, undefined, undefined, await signIn(userId));
  return body.includes('"viewerHasLiked":true') ? undefined : `${status} ${body}`;
}

/** With one key, the second is answered as the first was. */
async function createTwice(base: string, number: number): Promise<string | undefined> {
  const imageKey = 'outfits/2b1d3c4e-0000-4000-8000-000000000001.png';
  const input = `{ title: "Made ${number}", imageKey: "${imageKey}" }`;
  const what = `mutation { createOutfit(input: ${input}) { outfit { id title } } }`;
  const headers = { ...(await signIn(1 + (number % 50))), 'idempotency-key': `key ${number}` };
  const { body: first } = await send(base, what, undefined, undefined, headers);
  const { body: second } = await send(base, what, undefined, undefined, headers);
  return first.includes(`"Made ${number}"`) && first === second ? undefined : `${first} ${second}`;
}

const start = (environment: Record<string, string>): Run =>
  runServer({ ...environment, AUTH_JWT_SECRET: secret, RATE_LIMIT: '100000/minute' });

describe.skipIf(!hasPgBouncer).each(modes)('PgBouncer with pool_mode = %s', (mode) => {
  test(`answers ${likes * 10} requests of every kind as PostgreSQL does`, async () => {
    const { direct, environment } = await open(mode);
    if (mode === 'transaction') await prepareRole(direct);
    const server = start(environment);
    const base = await baseOf(server);
    const countAll = async () => {
      const { rows } = await execute(direct, `SELECT likes FROM outfit_like_counts WHERE id = 1`);
      return { outfits: (await listing(base)).count, likes: rows[0].likes };
    };
    const before = await countAll();
    const live = await openStream(base, 'subscription { outfits { count } }');
    expect(await sendAll(base)).toEqual([]);
    const after = { outfits: before.outfits + likes, likes: before.likes + likes };
    expect(await countAll()).toEqual(after);
    let { data } = await live.next();
    while (data.data.outfits.count < after.outfits) ({ data } = await live.next());
    const check = run([`${dist}commands/cli.js`, 'counts', 'check'], { DATABASE_URL: direct });
    expect(await check.ended).toBe(0);
    expect(server.output()).not.toMatch(/"level":"(?:warn|error)".*"msg":"(?!slow")/);
  });

  test('holds the time limit of a statement, and UTC', async () => {
    const { direct, environment } = await open(mode);
    if (mode === 'transaction') await prepareRole(direct, '700ms');
    const database = await openDatabase(readConfig(environment), 700);
    onTestFinished(() => database.close());
    const stopped = expect.objectContaining({ code: '57014' });
    await expect(database.pool.query('SELECT pg_sleep(60)')).rejects.toEqual(stopped);
    const { rows } = await database.pool.query(`SELECT current_setting('TimeZone') AS zone`);
    expect(rows).toEqual([{ zone: 'UTC' }]);
  });

  test('drops the statement of a request whose time is over', async () => {
    const { direct, environment } = await open(mode);
    if (mode === 'transaction') await prepareRole(direct);
    const base = await baseOf(start({ ...environment, REQUEST_TIMEOUT: '1s' }));
    const blocker = await connectTo(direct);
    await blocker.query('BEGIN; LOCK TABLE outfits IN ACCESS EXCLUSIVE MODE');
    expect((await send(base, '{ outfit(databaseId: 1) { title } }')).status).toBe(503);
    const waiting = `SELECT count(*)::int AS count FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    const countWaiting = async () => (await execute(direct, waiting)).rows[0].count;
    await expect.poll(countWaiting, { timeout: 20_000 }).toBe(0);
  });
});

describe.skipIf(!hasPgBouncer)('a database that is swapped for a copy behind the pooler', () => {
  test('a database that is swapped for a copy behind the pooler is read at once', async () => {
    const { direct, environment } = await open('transaction', 'admin_users = postgres');
    await prepareRole(direct);
    const server = start(environment);
    const base = await baseOf(server);
    const name = new URL(direct).pathname.slice(1);
    const at = (url: string, path: string) => new URL(path, url).href;
    const administer = (statement: string) => execute(at(direct, '/postgres'), statement);
    const pooler = (statement: string) =>
      execute(at(environment.DATABASE_URL, '/pgbouncer'), `${statement} ${name}`);
    const title = async () => JSON.stringify((await listing(base)).results[0]);
    const before = await title();
    await pooler('PAUSE');
    await administer(`CREATE DATABASE ${name}_copy TEMPLATE ${name}`);
    await pooler('RESUME');
    await execute(direct, `UPDATE outfits SET title = 'NEW' WHERE id = ${JSON.parse(before).id}`);
    expect(await title()).toContain('"NEW"');
    await pooler('PAUSE');
    await administer(`ALTER DATABASE ${name} RENAME TO ${name}_old`);
    await administer(`ALTER DATABASE ${name}_copy RENAME TO ${name}`);
    onTestFinished(async () => void (await administer(`DROP DATABASE ${name}_old WITH (FORCE)`)));
    await pooler('RESUME');
    await expect.poll(title).toBe(before);
  });
});

describe.skipIf(!hasPgBouncer)('wrong settings for PgBouncer', () => {
  test('a role without limits is waited for, with a sentence that mends it', async () => {
    const { direct, environment } = await open('transaction');
    const server = start(environment);
    const [, statements = ''] = await server.until(/run \\"(ALTER ROLE [^"]*)\\"/);
    expect(statements).toMatch(
      /statement_timeout.*idle_in_transaction_session_timeout.*check_inte/,
    );
    await execute(direct, statements);
    await execute(
      direct,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    );
    await server.until(/can be used/);
  });

  test.each([
    ['sessions keep what another connection has set', undefined],
    ['sessions keep nothing', 'server_reset_query_always = 1'],
  ])(
    'transactions that are pooled without a word are noticed, and nothing fails: %s',
    async (_, settings) => {
      const { environment } = await open('transaction', settings);
      const server = start({ ...environment, DATABASE_POOLER: 'session' });
      expect(await sendAll(await baseOf(server), 100)).toEqual([]);
      expect(server.output()).toContain('set DATABASE_POOLER=transaction');
    },
  );

  test('a pooler that keeps no transactions is said to, by the log and by check', async () => {
    const { environment } = await open('session', 'pool_mode = statement');
    const wanted =
      'is behind a pooler that keeps no transactions: set its pool_mode to transaction';
    const server = start(environment);
    await server.until(new RegExp(wanted));
    const { stdout, code } = await callCommand(check, [], environment);
    expect({ stdout, code }).toEqual({ stdout: expect.stringContaining(wanted), code: 1 });
  });

  test('a start waits while the pooler takes no more clients', async () => {
    const { environment } = await open('session', 'max_client_conn = 1');
    // The place is taken by the look whether the pooler runs, for a moment.
    const client = await vi.waitFor(() => connectTo(environment.DATABASE_URL), 20_000);
    const server = start(environment);
    await server.until(/has no free connection \(no more connections allowed/);
    await client.end();
    expect(server.child.exitCode).toBeNull();
  });

  test.each(['migrate', 'counts check'])('%s says that it needs a session', async (line) => {
    const [name, ...args] = line.split(' ');
    const command = await import(`../../src/commands/${name}.ts`);
    const pooled = { DATABASE_URL: 'postgresql://localhost/any', DATABASE_POOLER: 'transaction' };
    const { code, stderr } = await callCommand(command, args, pooled);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^DATABASE_POOLER is "transaction", but [^\n]*pooler\.\n$/);
  });
});
