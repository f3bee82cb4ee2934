// The engine against plain graphql, on random documents.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { generateOutfits } from '../../bench/outfits/generate.ts';
import { openGateway, outfitId, type TestGateway } from '../support/gateway.ts';
import { compareWithGraphql } from '../support/graphql/differential.ts';
import { amount } from '../support/lane.ts';

const rows = [...generateOutfits({ outfits: 45, users: 9 })];
const ids = rows.slice(0, 4).flatMap(({ id, userId }) => [id, userId]);
const names = rows.slice(0, 3).map(({ user }) => user.username);
const conditions = [
  ...rows.slice(0, 2).map(({ id }) => outfitId(id)),
  ...rows.slice(0, 2).map(({ userId }) => Buffer.from(`User:${userId}`).toString('base64')),
  '2022-01-01T00:00:00Z',
  'the',
];
const values = { Int: [-1, 0, 1, 1, 2, 3, ...ids], String: ['', 'x', ...names, ...conditions] };

// Thousands of errors are expected, and no message has their location.
const { stackTraceLimit } = Error;

const documents = amount(60, 1_000);
/** Each waits for its database most of the time. */
let gateways: readonly TestGateway[];
beforeAll(async () => {
  Error.stackTraceLimit = 0;
  const opening = Array.from({ length: amount(1, 3) }, () =>
    openGateway('PostgreSQL', rows, {
      CACHE_MAX_SIZE: '0',
      // One statement at a time: which errors come before the one that ends an answer depends on it.
      DATABASE_POOL_MAX: '1',
      GRAPHQL_MAX_COST: '20000',
    }),
  );
  gateways = await Promise.all(opening);
});
afterAll(async () => {
  Error.stackTraceLimit = stackTraceLimit;
  for (const gateway of gateways) await gateway.close();
});

test(`${documents} random documents are answered as graphql answers them, compiled or not`, async () => {
  const comparing = gateways.map((gateway) => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const share = { documents: Math.ceil(documents / gateways.length), seed };
    return compareWithGraphql(gateway, values, share);
  });
  for (const { documents: sent, answers, whole } of await Promise.all(comparing)) {
    expect(answers).toBeGreaterThan(2 * sent);
    // Enough of them are answers, and enough are not.
    expect(whole).toBeGreaterThan(answers / 10);
    expect(whole).toBeLessThan(answers);
  }
});
