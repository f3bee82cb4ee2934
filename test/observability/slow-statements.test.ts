// SLOW_STATEMENT: the statements that take long, in the log, without a value of a client.
import { expect, test } from 'vitest';
import {
  baseOf,
  demoEnvironment,
  listing,
  type Run,
  runServer,
  stop,
} from '../support/cli/process.ts';
import { connectForTest, execute } from '../support/databases/connections.ts';
import { secret, signIn } from '../support/http/tokens.ts';

interface Line {
  readonly level: string;
  readonly msg: string;
  readonly statement: string;
  readonly milliseconds: number;
  readonly waited: number;
}

const slowLines = (server: Run): Line[] =>
  server
    .output()
    .split('\n')
    .filter((line) => line.includes('"slow statement"'))
    .map((line) => JSON.parse(line));

const start = (environment: Record<string, string>) =>
  runServer({ ...environment, AUTH_JWT_SECRET: secret, RATE_LIMIT: '1000/hour' });

test('with 0, every statement is logged with its text, and no value of a request is', async () => {
  const environment = await demoEnvironment();
  const user = `INSERT INTO users (id, username) VALUES (9073215, 'zebra')`;
  await execute(environment['DATABASE_URL'] ?? '', user);
  const server = start({ ...environment, SLOW_STATEMENT: '0' });
  const base = await baseOf(server);
  const token = await signIn(9_073_215);
  const headers = { ...token, 'content-type': 'application/json' };
  const key = 'zebra-key';
  const image_key = 'outfits/5eb4a5eb-0000-4000-8000-000000000001.png';
  const created = await fetch(`${base}/api/outfits/`, {
    method: 'POST',
    headers: { ...headers, 'idempotency-key': key },
    body: JSON.stringify({ title: 'zebra title', description: '#zebra', image_key }),
  });
  expect(created.status).toBe(201);
  const { id } = (await created.json()) as { id: number };
  const query = `query($search: String, $id: Int!) {
    outfits(filter: { search: $search, likesFrom: 8675309 }) { count results { id } }
    outfitConnection(first: 3, filter: { hashtags: ["zebra"], createdBefore: "2031-07-09T00:00:00Z" }) { totalCount }
    outfit(databaseId: $id) { title user { outfits { count } } }
  }`;
  const variables = { search: 'zebra "quoted" single', id };
  const answer = await fetch(`${base}/graphql`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ query, variables }),
  });
  const { errors, data } = (await answer.json()) as { errors?: unknown; data: { outfit: unknown } };
  expect(errors).toBeUndefined();
  expect(data.outfit).toMatchObject({ title: 'zebra title' });
  expect(await stop(server)).toBe(0);

  const lines = slowLines(server);
  const texts = lines.map(({ statement }) => statement).join('\n');
  for (const table of ['outfits', 'outfit_texts', 'idempotency_keys', 'rate_limits', 'users']) {
    expect(texts).toMatch(new RegExp(`\\b${table}\\b[^]*\\$1`));
  }
  expect(lines[0]).toMatchObject({ level: 'warn', waited: expect.any(Number) });
  const values = /zebra|8675309|9073215|5eb4a5eb|2031|127\.0\.0\.1|single/i;
  expect(lines.filter((line) => values.test(JSON.stringify(line)))).toEqual([]);
});

test('what waits for a lock is slow, what waited for its connection only is not', async () => {
  const environment = await demoEnvironment();
  const server = start({ ...environment, SLOW_STATEMENT: '300ms', DATABASE_POOL_MAX: '1' });
  const base = await baseOf(server);
  await listing(base);
  const outside = await connectForTest(environment['DATABASE_URL']);
  await outside.query('BEGIN; LOCK TABLE outfits');
  const reads = ['?ordering=like_count', '?ordering=created&page=2'].map((read) =>
    listing(base, read),
  );
  const waiting = `SELECT count(*)::int AS waiting FROM pg_locks WHERE NOT granted AND relation = 'outfits'::regclass`;
  await expect.poll(async () => (await outside.query(waiting)).rows[0].waiting).toBe(1);
  await new Promise((settle) => setTimeout(settle, 600));
  await outside.query('COMMIT');
  await Promise.all(reads);
  expect(await stop(server)).toBe(0);
  const lines = slowLines(server);
  expect(lines).toHaveLength(1);
  expect(lines[0]?.statement).toContain('outfits');
  expect(lines[0]?.milliseconds).toBeGreaterThanOrEqual(300);
});
