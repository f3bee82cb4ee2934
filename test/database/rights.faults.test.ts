// The role of the gateway loses a right while it runs: the gateway is not ready and says which, until it is granted.
import { expect, test } from 'vitest';
import { baseOf, listing, publish, runServer, stop } from '../support/cli/process.ts';
import { makeRole } from '../support/databases/role.ts';
import { secret } from '../support/http/tokens.ts';

/** A gateway whose role has the given rights on all tables and sequences, and their owner. */
async function startAs(rights: string) {
  const { url, role, owner } = await makeRole(rights);
  const gateway = runServer({ DATABASE_URL: url, AUTH_JWT_SECRET: secret, SEED: 'none' });
  return { gateway, base: await baseOf(gateway), role, owner };
}

test('each right that is revoked is named, and the gateway is ready again when it is granted', async () => {
  const { gateway, base, role, owner } = await startAs('SELECT, INSERT, UPDATE, DELETE');
  const ready = async () => (await fetch(`${base}/health/ready`)).status;
  await expect.poll(ready).toBe(200);
  expect((await publish(base)).status).toBe(201);
  let outfits = 1;
  const revoked: [right: string, object: string, from: string][] = [
    ['SELECT', 'outfits', role],
    ['INSERT', 'outfits', role],
    ['SELECT', 'outfit_buckets', role],
    ['SELECT', 'outfit_like_counts', role],
    ['UPDATE', 'outfit_like_counts', role],
    ['INSERT, DELETE', 'outfit_likes', role],
    ['SELECT', '_prisma_migrations', role],
    ['USAGE', 'SEQUENCE outfits_id_seq', role],
    ['USAGE', 'SCHEMA public', 'PUBLIC'],
    ['EXECUTE', 'FUNCTION count_outfits(boolean)', 'PUBLIC'],
  ];
  for (const [right, object, from] of revoked) {
    await owner.query(`REVOKE ${right} ON ${object} FROM ${from}`);
    await expect.poll(ready, { message: object }).toBe(503);
    const answers = [await fetch(`${base}/api/outfits/?page=1`), await publish(base)];
    expect(answers.map(({ status }) => status)).toEqual([503, 503]);
    const wanted = `GRANT ${right} ON ${object} TO ${role}`;
    expect(gateway.output()).toContain(`the rights that the gateway needs: run \\"${wanted}\\".`);
    await owner.query(wanted);
    await expect.poll(ready, { message: object }).toBe(200);
    expect((await publish(base)).status).toBe(201);
    outfits += 1;
    expect((await listing(base)).count).toBe(outfits);
  }
  expect(gateway.output()).not.toMatch(/"unexpected error"|"failed"/);
  expect(await stop(gateway)).toBe(0);
});

test('a role that may only read serves reads, and refuses writes with 503', async () => {
  const { gateway, base } = await startAs('SELECT');
  await expect.poll(async () => (await fetch(`${base}/health/ready`)).status).toBe(200);
  expect((await listing(base)).count).toBe(0);
  expect((await publish(base)).status).toBe(503);
  expect((await listing(base)).count).toBe(0);
  expect(await stop(gateway)).toBe(0);
});
