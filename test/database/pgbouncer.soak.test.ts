// Behind PgBouncer, in both of its modes: requests of every kind, time limits, and wrong settings.
import { readFileSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { openDatabase } from '../../src/database/database.ts';
import { baseOf, demoEnvironment, dist, type Run, run, runServer } from '../support/cli/process.ts';
import { connectTo, execute } from '../support/databases/connections.ts';
import { hasPgBouncer, startPgBouncer } from '../support/databases/pgbouncer.ts';
import { anyRequest, send } from '../support/faults/load.ts';
import { outfitId } from '../support/gateway.ts';
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
  const ours = statements
    .replaceAll(
      'ROLE gateway IN DATABASE outfits',
      `ROLE ${username} IN DATABASE ${pathname.slice(1)}`,
    )
    .replace(`statement_timeout = '30s'`, `statement_timeout = '${limit}'`);
  await execute(direct, ours);
}

const likes = 60;

/** Requests of every kind by 16 clients, ten to a like, and all that was not answered as it must be. */
async function sendAll(base: string, most = likes): Promise<string[]> {
  const wrong: string[] = [];
  let turn = 0;
  const sendOne = async (number: number) => {
    if (number % 10 === 0) return like(base, 1 + number / 10);
    if (number % 10 === 5) return createTwice(base, number);
    const { status, body } = await send(base, anyRequest(number));
    return status === 200 && !body.includes('"errors"') ? undefined : `${status} ${body}`;
  };
  const work = async () => {
    while (turn < most * 10) {
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
  const answers = [
    await send(base, what, undefined, undefined, headers),
    await send(base, what, undefined, undefined, headers),
  ];
  const [first, second] = answers.map(({ body }) => body);
  return first?.includes(`"Made ${number}"`) && first === second ? undefined : `${first} ${second}`;
}

/** Reads live answers until the listing's count has grown. */
async function followCount(base: string): Promise<{ readonly grown: Promise<boolean> }> {
  const response = await fetch(`${base}/graphql`, {
    method: 'POST',
    headers: { accept: 'text/event-stream', 'content-type': 'application/json' },
    body: JSON.stringify({ query: 'subscription { outfits { count } }' }),
  });
  const counts = new Set<string>();
  const grown = (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      for (const [count] of decoder.decode(chunk).matchAll(/"count":\d+/g)) counts.add(count);
      if (counts.size > 2) return true;
    }
    return false;
  })();
  return { grown };
}

function start(environment: Record<string, string>): Run {
  return runServer({
    ...environment,
    AUTH_JWT_SECRET: secret,
    RATE_LIMIT: '100000/minute',
  });
}

describe.skipIf(!hasPgBouncer).each(modes)('PgBouncer with pool_mode = %s', (mode) => {
  test(`answers ${likes * 10} requests of every kind as PostgreSQL does`, async () => {
    const { direct, environment } = await open(mode);
    if (mode === 'transaction') await prepareRole(direct);
    const server = start(environment);
    const base = await baseOf(server);
    const { count: before } = await (await fetch(`${base}/api/outfits/`)).json();
    const liked = `SELECT likes FROM outfit_like_counts WHERE id = 1`;
    const { rows: had } = await execute(direct, liked);
    const live = await followCount(base);
    expect(await sendAll(base)).toEqual([]);
    expect(await live.grown).toBe(true);
    const { count } = await (await fetch(`${base}/api/outfits/`)).json();
    expect(count).toBe(before + likes);
    const { rows } = await execute(direct, liked);
    expect(rows[0].likes - had[0].likes).toBe(likes);
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
      expect(await sendAll(await baseOf(server), 30)).toEqual([]);
      expect(server.output()).toContain('set DATABASE_POOLER=transaction');
    },
  );

  test.each(['migrate', 'counts check'])('%s says that it needs a session', async (command) => {
    const { environment } = await open('transaction');
    const started = run([`${dist}commands/cli.js`, ...command.split(' ')], environment);
    expect(await started.ended).not.toBe(0);
    expect(started.errors()).toMatch(/^DATABASE_POOLER is "transaction", but [^\n]*pooler\.\n$/);
  });
});
