// Documents that are as costly as the limits allow, with every one a new one, do not fill the process.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { baseOf, demoEnvironment, runServer, stop } from '../support/cli/process.ts';

const eight = (field: (index: number) => string) =>
  Array.from({ length: 8 }, (_, index) => field(index)).join(' ');

/** 950 characters that have 30,000 fields once their fragments are written out. */
const document = `{ ${eight((index) => `c${index}: outfitConnection(first: 1) { ...C }`)} }
fragment C on OutfitConnection { ${eight((index) => `e${index}: edges { ...E }`)} }
fragment E on OutfitEdge { ${eight((index) => `n${index}: node { ...N }`)} }
fragment N on Outfit {
  id title description imageKey imageOriginalUrl complete likes quality private backgroundImage
  backgroundColor video playVideo created modified creationDevice modificationDevice
  ${eight((index) => `u${index}: user { ...U }`)}
}
fragment U on User { id avatarKey username firstName lastName }`;

const variants = 6;
/** A query is compiled for the fourth time. */
const rounds = 5;

const post = (base: string, body: object) =>
  fetch(`${base}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

const startSmall = async () =>
  runServer({
    ...(await demoEnvironment()),
    NODE_OPTIONS: '--max-old-space-size=256',
    GRAPHQL_MAX_COST: '5000',
  });

test(`${variants} variants of a costly document, ${rounds} times each, in a heap of 256 MB`, async () => {
  const server = await startSmall();
  const base = await baseOf(server);
  let stopped = false;
  const statuses = new Set<number>();
  const others = (async () => {
    for (; !stopped; await sleep(20)) {
      statuses.add((await fetch(`${base}/api/outfits/?page=2`)).status);
    }
  })();

  let early = 0;
  for (let variant = 0; variant < variants; variant++) {
    for (let round = 0; round < rounds; round++) {
      // Another unused variable each time, so that memory does not have the answer.
      const response = await post(base, { query: `${document} #${variant}`, variables: { round } });
      expect(response.status).toBe(200);
      await response.arrayBuffer();
    }
    if (variant === Math.floor(variants / 3)) early = residentBytes(server.child.pid);
  }
  stopped = true;
  await others;
  // No other request was refused, as if the database were away.
  expect([...statuses]).toEqual([200]);
  expect(residentBytes(server.child.pid) - early).toBeLessThan(60 * 2 ** 20);
  expect(await stop(server)).toBe(0);
});

test('many documents of many operations, each asked for by its name, in a heap of 256 MB', async () => {
  const server = await startSmall();
  const base = await baseOf(server);
  const names = Array.from({ length: 190 }, (_, index) => `a${index}`);
  const operations = names.map((name) => `query ${name} { __typename }`).join(' ');
  const early = residentBytes(server.child.pid);
  for (let text = 0; text < 4; text++) {
    for (const operationName of names) {
      const response = await post(base, { query: `${operations} #${text}`, operationName });
      expect(await response.json()).toEqual({ data: { __typename: 'Query' } });
    }
  }
  expect(residentBytes(server.child.pid) - early).toBeLessThan(120 * 2 ** 20);
  expect(await stop(server)).toBe(0);
});

function residentBytes(processId: number | undefined): number {
  const status = readFileSync(`/proc/${processId}/status`, 'utf8');
  return 1024 * Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]);
}
