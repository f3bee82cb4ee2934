// A connection that breaks in the middle of a transaction ends nothing but that transaction.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { httpErrorFor } from '../../src/database/errors.ts';
import { saveOutfits } from '../../src/outfits/writes/bulk.ts';
import { openGateway, type TestGateway } from '../support/gateway.ts';

let gateway: TestGateway;
let admin: TestGateway['database'];

beforeEach(async () => {
  gateway = await openGateway('PostgreSQL', [...generateOutfits({ outfits: 50, users: 5 })]);
  admin = gateway.database;
});

afterEach(async () => {
  await gateway.close();
});

/** Ends every other connection of this database. */
async function endOthers(): Promise<void> {
  await admin.pool.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid()`,
  );
}

async function expectHealthy(): Promise<void> {
  // More often than there are connections, so that every one of the pool is met.
  const answers = await Promise.all(
    Array.from({ length: 40 }, () => gateway.get('/api/outfits/?page=2')),
  );
  expect(answers.map(({ statusCode }) => statusCode)).toEqual(answers.map(() => 200));
}

test('a transaction of Prisma fails as a 503, and leaves no broken connection behind', async () => {
  const { prisma } = gateway.database;
  const title = 'never to be seen';
  const failure = await prisma
    .$transaction(async (transaction) => {
      await transaction.outfit.update({ where: { id: 1 }, data: { title } });
      await endOthers();
      await transaction.outfit.update({ where: { id: 2 }, data: { title } });
    })
    .catch((error: unknown) => error);
  expect(httpErrorFor(failure)?.status).toBe(503);
  expect(await prisma.outfit.count({ where: { title } })).toBe(0);
  await expectHealthy();
});

test('so does one of ours that breaks between two statements', async () => {
  const rows = [...generateOutfits({ outfits: 4_000, users: 5 })].slice(50);
  const saving = saveOutfits(gateway.database.pool, rows).catch((error: unknown) => error);
  await expect
    .poll(
      async () => {
        const { rowCount } = await admin.pool.query(
          `SELECT FROM pg_stat_activity WHERE datname = current_database()
         AND pid <> pg_backend_pid() AND state <> 'idle'`,
        );
        return rowCount;
      },
      { interval: 5 },
    )
    .toBeGreaterThan(0);
  await endOthers();
  expect(httpErrorFor(await saving)?.status).toBe(503);
  await expectHealthy();
  expect((await gateway.get('/api/outfits/')).json().count).toBe(50);
});
