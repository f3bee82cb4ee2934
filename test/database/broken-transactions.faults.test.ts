// A connection that breaks in the middle of a transaction ends nothing but that transaction.
import { expect, onTestFinished, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { httpErrorFor } from '../../src/database/errors.ts';
import { saveOutfits } from '../../src/outfits/writes/bulk.ts';
import { connectForTest } from '../support/databases/connections.ts';
import { openGateway } from '../support/gateway.ts';

test('a transaction that breaks between two statements fails as a 503, and leaves no broken connection behind', async () => {
  const [first, rest] = [50, 4_000].map((outfits) => [...generateOutfits({ outfits, users: 5 })]);
  const { get, config, database, close } = await openGateway('PostgreSQL', first);
  onTestFinished(close);
  const admin = await connectForTest(config.databaseUrl);
  const others = 'datname = current_database() AND pid <> pg_backend_pid()';
  const saving = saveOutfits(database.pool, rest?.slice(50) ?? []).catch((error: unknown) => error);
  const busy = `SELECT FROM pg_stat_activity WHERE ${others} AND state <> 'idle'`;
  const countBusy = async () => (await admin.query(busy)).rowCount;
  await expect.poll(countBusy, { interval: 5 }).toBeGreaterThan(0);
  await admin.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${others}`);
  expect(httpErrorFor(await saving)?.status).toBe(503);
  // More often than there are connections, so that every one of the pool is met.
  const pages = Array.from({ length: 40 }, () => get('/api/outfits/?page=2'));
  for (const { statusCode } of await Promise.all(pages)) expect(statusCode).toBe(200);
  expect((await get('/api/outfits/')).json().count).toBe(50);
});
