// States of a database in which a gateway cannot do all: it stays up, and the log and `check` say what mends each.
import pg from 'pg';
import { expect, onTestFinished, test, vi } from 'vitest';
import * as check from '../../src/commands/check.ts';
import * as forget from '../../src/commands/forget.ts';
import * as migrate from '../../src/commands/migrate.ts';
import { callCommand } from '../support/cli/commands.ts';
import { baseOf, listing, publish, runServer, stop } from '../support/cli/process.ts';
import { execute, withDatabase } from '../support/databases/connections.ts';
import { makeRole, type RoleDatabase } from '../support/databases/role.ts';
import { secret } from '../support/http/tokens.ts';

const all = 'SELECT, INSERT, UPDATE, DELETE';
const settings = { AUTH_JWT_SECRET: secret, SEED: 'none' };

/** What an administrator does, with the names of the test. */
const inTest = (statement: string, { role, database }: RoleDatabase) =>
  statement.replaceAll('$ROLE', role).replaceAll('$DB', database);

const statusOf = async (base: string) => (await fetch(`${base}/health/ready`)).status;

/** What `check` says is wrong, and the statement in it; nothing when all is right. */
async function checked(url: string): Promise<{ said: string; mend: string }> {
  const { code, stdout } = await callCommand(check, [], { DATABASE_URL: url });
  const [, said = ''] = /^wrong: DATABASE_URL: (.*)$/m.exec(stdout) ?? [];
  expect(code).toBe(said ? 1 : 0);
  return { said, mend: /run "([^"]*)"/.exec(said)?.[1] ?? /until "([^"]*)"/.exec(said)?.[1] ?? '' };
}

const inLog = (sentence: string) => JSON.stringify(sentence).slice(1, -1);

test('with a right that is missing, or rows that are hidden, it is not ready, names the statement, and is ready after it', async () => {
  const found = await makeRole(all);
  const { owner, url, role } = found;
  const gateway = runServer({ DATABASE_URL: url, ...settings });
  const base = await baseOf(gateway);
  await expect.poll(() => statusOf(base)).toBe(200);
  const revoked = [
    ['SELECT', 'outfits', role],
    ['INSERT', 'outfits', role],
    ['SELECT', 'outfit_buckets', role],
    ['SELECT', 'outfit_like_counts', role],
    ['UPDATE', 'outfit_like_counts', role],
    ['INSERT, DELETE', 'outfit_likes', role],
    ['SELECT', '_prisma_migrations', role],
    ['USAGE, SELECT, UPDATE', 'SEQUENCE outfits_id_seq', role],
    ['USAGE', 'SCHEMA public', 'PUBLIC'],
    ['EXECUTE', 'FUNCTION count_outfits(boolean)', 'PUBLIC'],
  ].map(([right, object, from]): [string, string] => [
    `REVOKE ${right} ON ${object} FROM ${from}`,
    `the rights that the gateway needs: run "GRANT ${right} ON ${object} TO ${role}".`,
  ]);
  let outfits = 0;
  for (const [statement, sentence] of [
    ...revoked,
    [
      'REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC',
      'does not give this role the rights',
    ],
    ['ALTER TABLE outfits ENABLE ROW LEVEL SECURITY', 'hides rows'],
    [
      // A policy that shows some rows.
      `ALTER TABLE users ENABLE ROW LEVEL SECURITY; CREATE POLICY few ON users USING (id < 5);
       ALTER TABLE outfit_texts ENABLE ROW LEVEL SECURITY`,
      'hides rows',
    ],
    ['ALTER TABLE _prisma_migrations ENABLE ROW LEVEL SECURITY', 'hides rows'],
    [
      `ALTER TABLE outfit_like_counts OWNER TO $ROLE;
       ALTER TABLE outfit_like_counts ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY`,
      'hides rows',
    ],
  ] as const) {
    await owner.query(inTest(statement, found));
    await expect.poll(() => statusOf(base), { message: statement }).toBe(503);
    const answers = [await fetch(`${base}/api/outfits/?page=1`), await publish(base)];
    expect(answers.map(({ status }) => status)).toEqual([503, 503]);
    const { said, mend } = await checked(url);
    expect(said).toContain(sentence);
    expect(gateway.output()).toContain(inLog(said));
    await owner.query(mend);
    await expect.poll(() => statusOf(base), { message: mend }).toBe(200);
    expect((await publish(base)).status).toBe(201);
    outfits += 1;
    expect((await listing(base)).count).toBe(outfits);
  }
  // With these rights, an id that is taken is passed over.
  await owner.query(`REVOKE INSERT, UPDATE, DELETE ON users FROM ${role};
    INSERT INTO outfits (id, user_id, image_key, image_original_key, created, modified) SELECT last_value + 1, 7, 'k', 'k', 0, 0 FROM outfits_id_seq`);
  expect((await publish(base)).status).toBe(201);
  expect(await checked(url)).toMatchObject({ said: '' });
  expect(gateway.output()).not.toMatch(/"unexpected error"|"failed"/);
  expect(await stop(gateway)).toBe(0);
});

test('the right that is missing on a schema names it as it is written', async () => {
  const { owner, url, role } = await makeRole(all);
  await owner.query(
    'ALTER SCHEMA public RENAME TO "My App"; REVOKE USAGE ON SCHEMA "My App" FROM PUBLIC',
  );
  const { said } = await checked(`${url}?schema=My%20App`);
  expect(said).toContain(`: run "GRANT USAGE ON SCHEMA "My App" TO ${role}".`);
});

test('forget names the rights that only it needs, and erases with them', async () => {
  const { owner, url, role } = await makeRole('SELECT');
  await owner.query(`GRANT INSERT ON outfits, outfit_like_counts, outfit_likes, idempotency_keys, rate_limits TO ${role};
    GRANT UPDATE ON outfits, outfit_like_counts, rate_limits TO ${role};
    GRANT DELETE ON outfits, outfit_likes, idempotency_keys, rate_limits TO ${role};
    SELECT save_outfit('{"user_id": 7, "image_key": "k"}')`);
  expect(await checked(url)).toMatchObject({ said: '' });
  const erase = () => callCommand(forget, ['--user', '7', '--yes'], { DATABASE_URL: url });
  const { code, stderr } = await erase();
  expect(code).toBe(2);
  const [, grant = ''] = /run "([^"]*)"/.exec(stderr) ?? [];
  expect(grant).toBe(
    `GRANT EXECUTE ON FUNCTION delete_user TO ${role}; GRANT UPDATE, DELETE ON users, outfit_like_counts TO ${role}`,
  );
  await owner.query(grant);
  expect(await erase()).toMatchObject({ code: 0, stdout: expect.stringContaining('1 outfits') });
  expect((await owner.query('SELECT FROM users')).rowCount).toBe(0);
});

test('a role that may only read serves reads, and refuses writes with 503', async () => {
  const { url } = await makeRole('SELECT');
  const gateway = runServer({ DATABASE_URL: url, ...settings, RATE_LIMIT: '2/hour' });
  const base = await baseOf(gateway);
  await expect.poll(() => statusOf(base)).toBe(200);
  expect((await listing(base)).count).toBe(0);
  expect((await publish(base)).status).toBe(503);
  expect((await listing(base)).count).toBe(0);
  // The process counts by itself.
  expect((await fetch(`${base}/api/outfits/`)).status).toBe(429);
  expect(await stop(gateway)).toBe(0);
});

test('serves reads and refuses writes while it is read-only by default: by itself, its role, or its role there', async () => {
  const found = await makeRole(all);
  const { owner, url } = found;
  // Changes that are not counted yet.
  await owner.query(`INSERT INTO outfits (id, user_id, title, description, image_key, image_original_key, created, modified)
    SELECT id, 7, '', '', 'k', 'k', id, id FROM generate_series(1001, 1030) AS id`);
  const setReadOnly = async (place: string) => {
    await owner.query(inTest(`ALTER ${place} SET default_transaction_read_only = on`, found));
    const told = await checked(url);
    expect(told.said).toContain('is read-only by default: ');
    return told;
  };
  for (const place of ['DATABASE $DB', 'ROLE $ROLE']) {
    await owner.query((await setReadOnly(place)).mend);
    expect(await checked(url)).toMatchObject({ said: '' });
  }
  const { said, mend } = await setReadOnly('ROLE $ROLE IN DATABASE $DB');
  const gateway = runServer({ DATABASE_URL: url, ...settings, RATE_LIMIT: '1000/minute' });
  const base = await baseOf(gateway);
  await expect.poll(() => statusOf(base)).toBe(200);
  expect((await listing(base, '?page=2')).count).toBe(30);
  expect((await publish(base)).status).toBe(503);
  expect(gateway.output()).toContain(inLog(said));
  await owner.query(mend);
  // Open connections are still read-only: a refused write closes its own.
  await expect.poll(async () => (await publish(base)).status).toBe(201);
  expect(await stop(gateway)).toBe(0);
});

test('names the statement that lets FIRST_ID be stored in a read-only database, and stores it then', async () => {
  const { owner, url, role, database } = await makeRole(all);
  await owner.query(`GRANT ALL ON ALL TABLES IN SCHEMA public TO ${role}; GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO ${role};
    ALTER DATABASE ${database} SET default_transaction_read_only = on`);
  const sentence = `FIRST_ID cannot be stored, as the database is read-only: run "ALTER DATABASE ${database} SET default_transaction_read_only = off".`;
  const environment = { DATABASE_URL: url, FIRST_ID: '5000' };
  expect((await callCommand(migrate, [], environment)).stderr).toContain(sentence);
  const gateway = runServer({ ...environment, ...settings });
  const base = await baseOf(gateway);
  expect(gateway.output()).toContain(inLog(sentence));
  expect((await listing(base)).count).toBe(0);
  await owner.query(/run "([^"]*)"/.exec(sentence)?.[1] ?? '');
  await expect.poll(() => statusOf(base), { timeout: 20_000 }).toBe(200);
  expect((await owner.query('SELECT value FROM first_id')).rows).toEqual([{ value: 5000 }]);
  expect(await stop(gateway)).toBe(0);
});

test('waits for a free connection of its database or role', async () => {
  const found = await makeRole(all);
  const { owner, url } = found;
  const limit = (place: string, connections: number) =>
    owner.query(inTest(`ALTER ${place} CONNECTION LIMIT ${connections}`, found));
  await limit('DATABASE $DB', 0);
  expect((await checked(url)).said).toMatch(/has no free connection \(too many connections for d/);
  await limit('DATABASE $DB', -1);
  await limit('ROLE $ROLE', 0);
  const gateway = runServer({ DATABASE_URL: url, ...settings });
  const base = await baseOf(gateway);
  expect(await statusOf(base)).toBe(503);
  expect((await fetch(`${base}/api/outfits/`)).status).toBe(503);
  expect(gateway.output()).toMatch(/has no free connection \(too many connections for role/);
  expect((await checked(url)).said).toContain(' has no free connection ');
  await limit('ROLE $ROLE', -1);
  await expect.poll(() => statusOf(base)).toBe(200);
  // While it runs, its open connections go on.
  await limit('ROLE $ROLE', 0);
  expect(await statusOf(base)).toBe(200);
  expect(await stop(gateway)).toBe(0);
});

test('a password that is changed leaves open connections in use, and says so', async () => {
  const { owner, url, role } = await makeRole('SELECT');
  const warnings: string[] = [];
  await withDatabase({ DATABASE_URL: url }, async (database) => {
    const monitor = await database.monitor(
      () => {},
      (sentence) => warnings.push(sentence),
    );
    const { user, password } = new pg.Client(url);
    await owner.query(`ALTER ROLE ${role} PASSWORD 'another'`);
    // A new connection is tried after ten seconds.
    const now = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => now() + 20_000);
    onTestFinished(() => void vi.restoreAllMocks());
    await expect.poll(() => warnings).toHaveLength(1);
    expect(warnings[0]).toMatch(
      /^Only open connections are used\. The .* cannot be reached \(password authentication failed for user "\w+"\): /,
    );
    expect(warnings[0]).toContain(user);
    expect(warnings[0]).not.toContain(password);
    expect(monitor.problem()).toBeUndefined();
  });
});

test('settings for other programs change nothing', async () => {
  const found = await makeRole(all);
  const { owner, url } = found;
  const others = {
    standard_conforming_strings: 'off',
    array_nulls: 'off',
    transform_null_equals: 'on',
    gin_fuzzy_search_limit: '1',
    default_transaction_isolation: 'serializable',
    row_security: 'on',
    DateStyle: 'German',
    IntervalStyle: 'sql_standard',
    bytea_output: 'escape',
    backslash_quote: 'off',
    client_encoding: 'LATIN1',
    lc_messages: 'C',
    TimeZone: 'Asia/Tokyo',
    extra_float_digits: '-15',
    quote_all_identifiers: 'on',
  };
  for (const [name, value] of Object.entries(others)) {
    await owner.query(`ALTER ROLE ${found.role} SET ${name} = '${value}'`);
  }
  const gateway = runServer({ DATABASE_URL: url, ...settings });
  const base = await baseOf(gateway);
  for (let made = 0; made < 3; made++) expect((await publish(base)).status).toBe(201);
  await execute(url, `UPDATE outfits SET title = 'chelsea ü'`);
  const response = await fetch(`${base}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query: '{ outfits(filter: { search: "chelsea" }) { count } }' }),
  });
  expect(await response.json()).toEqual({ data: { outfits: { count: 3 } } });
  expect((await callCommand(check, [], { DATABASE_URL: url })).code).toBe(0);
  expect(await stop(gateway)).toBe(0);
});
