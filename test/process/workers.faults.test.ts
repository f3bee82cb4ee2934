// WORKERS: restarts, kills and hangs of the processes of one gateway, under load.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { findFreePort, listing, type Run, stop } from '../support/cli/process.ts';
import { isAlive, readMetric, startTwo } from '../support/cli/workers.ts';
import { execute } from '../support/databases/connections.ts';
import { addressOf, keepBusy } from '../support/faults/clients.ts';
import { send } from '../support/faults/load.ts';

/** Milliseconds for whatever needs new processes: beside a load they take long to start. */
const pollTimeout = 150_000;
const timeout = 4 * pollTimeout;
/** Milliseconds of a busy client between two requests: processes start beside it. */
const breath = 15;

const startDemo = (settings: Record<string, string> = {}) =>
  startTwo({ HOST: '127.0.0.1', ...settings }, true);

/** Those that were started since the first ones. */
const startedBy = (server: Run) =>
  [...server.output().matchAll(/"worker (\d+) serves"/g)].map(([, id]) => Number(id));

test('SIGHUP replaces all workers: no request is refused or lost, whether its connection is kept, new or seldom used', {
  timeout,
}, async () => {
  const { server, base, workers } = await startDemo();
  const everything = new AbortController();
  const { signal } = everything;
  const busy = keepBusy(addressOf(base), 2, '/api/outfits/', signal, breath);
  const statuses: number[] = [];
  const repeat = async (pause: number, path: string, agent = new Agent({ keepAlive: true })) => {
    while (!signal.aborted) {
      statuses.push((await send(base, path, undefined, agent)).status);
      await sleep(pause);
    }
    agent.destroy();
  };
  const others = [
    ...Array.from({ length: 4 }, () => repeat(5, '/api/outfits/', new Agent())),
    // Readiness does not change.
    repeat(20, '/health/ready'),
    ...Array.from({ length: 6 }, (_, client) => repeat(500 * (client + 1), '/api/outfits/')),
  ];
  server.child.kill('SIGHUP');
  await expect.poll(() => startedBy(server).length, { timeout: pollTimeout }).toBe(2);
  // A second one while the first is under way comes to its turn.
  server.child.kill('SIGHUP');
  await expect.poll(() => startedBy(server).length, { timeout: pollTimeout }).toBe(4);
  const [third = 0, fourth = 0] = startedBy(server);
  await expect
    .poll(() => [...workers, third, fourth].filter(isAlive), { timeout: pollTimeout })
    .toEqual([]);
  everything.abort();
  const { answers, broken, unanswered } = await busy;
  await Promise.all(others);
  expect(answers.length).toBeGreaterThan(500);
  expect(statuses.length).toBeGreaterThan(500);
  expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
  expect(statuses.filter((status) => status !== 200)).toEqual([]);
  expect({ broken, unanswered }).toEqual({ broken: 0, unanswered: 0 });
  expect(await stop(server)).toBe(0);
});

test('killed workers come back, the other one answers meanwhile, and nothing that was told is forgotten', {
  timeout,
}, async () => {
  const METRICS_PORT = String(await findFreePort());
  const { server, base, workers } = await startDemo({ METRICS_PORT });
  const everything = new AbortController();
  const load = keepBusy(addressOf(base), 4, '/api/outfits/', everything.signal, breath);
  const served =
    'gateway_http_requests_total{method="GET",route="/api/outfits/",operation="",status="200"}';
  let told = 0;
  let victim = workers[0] ?? 0;
  for (let time = 1; time <= 2; time += 1) {
    await sleep(1_000);
    const now = await readMetric(METRICS_PORT, served);
    expect(now).toBeGreaterThan(told);
    told = now;
    process.kill(victim, 'SIGKILL');
    // One may still be handed to the one that has gone: it is told at once, and asks again.
    const answers = [await send(base, '/api/outfits/'), await send(base, '/api/outfits/')];
    expect(answers.some(({ status }) => status === 200)).toBe(true);
    await server.until(new RegExp(`worker ${victim} has ended \\(SIGKILL\\)`));
    await expect.poll(() => startedBy(server).length, { timeout: pollTimeout }).toBe(time);
    victim = startedBy(server).at(-1) ?? 0;
  }
  everything.abort();
  const { answers, broken, unanswered } = await load;
  expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
  // Of those that the killed one had begun, or was being handed.
  expect(broken + unanswered).toBeLessThanOrEqual(2 * 4);
  expect(await readMetric(METRICS_PORT, served)).toBeGreaterThan(told);
  expect(await readMetric(METRICS_PORT, 'gateway_worker_exits_total')).toBe(2);
  expect(isAlive(workers[1] ?? 0)).toBe(true);
  expect(await stop(server)).toBe(0);
});

test('a connection that was handed to a worker that dies is closed, and its client can ask again', {
  timeout,
}, async () => {
  const { server, base, workers } = await startDemo();
  const [first = 0] = workers;
  process.kill(first, 'SIGSTOP');
  let answered = 0;
  const requests = Array.from({ length: 6 }, async () => {
    const { status } = await send(base, '/api/outfits/');
    answered += 1;
    return status;
  });
  // All but the one that waits for the worker that is stopped.
  await expect.poll(() => answered, { timeout: pollTimeout }).toBe(5);
  process.kill(first, 'SIGKILL');
  const statuses = await Promise.all(requests);
  expect(statuses.toSorted()).toEqual([0, 200, 200, 200, 200, 200]);
  expect((await send(base, '/api/outfits/')).status).toBe(200);
  expect(await stop(server)).toBe(0);
});

test('a worker that hangs is replaced, and does not hold up the end', { timeout }, async () => {
  const { server, base, workers } = await startDemo();
  const [first = 0, second = 0] = workers;
  process.kill(first, 'SIGSTOP');
  await server.until(new RegExp(`worker ${first} hangs: it is killed`));
  await expect.poll(() => startedBy(server).length, { timeout: pollTimeout }).toBe(1);
  for (let time = 0; time < 4; time += 1) await listing(base);
  process.kill(second, 'SIGSTOP');
  expect(await stop(server)).toBe(0);
  await expect
    .poll(() => [...workers, ...startedBy(server)].filter(isAlive), { timeout: pollTimeout })
    .toEqual([]);
});

test('new workers that cannot serve leave the old ones; with fewer than half of its workers it is not ready, until there are others', {
  timeout,
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'outfit-gateway-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const TRUSTED_DOCUMENTS = join(folder, 'documents.json');
  const mend = () => writeFileSync(TRUSTED_DOCUMENTS, '{"first":"{ __typename }"}');
  mend();
  const METRICS_PORT = String(await findFreePort());
  const settings = { WORKERS: '4', TRUSTED_DOCUMENTS, METRICS_PORT };
  const { server, base, workers } = await startDemo(settings);
  const ready = async () => (await fetch(`${base}/health/ready`)).status;
  const measured = () =>
    Promise.all(
      ['gateway_workers', 'gateway_workers_wanted'].map((name) => readMetric(METRICS_PORT, name)),
    );
  expect(await ready()).toBe(200);
  expect(await measured()).toEqual([4, 4]);

  writeFileSync(TRUSTED_DOCUMENTS, 'nonsense');
  server.child.kill('SIGHUP');
  await server.until(/a new worker cannot serve: the old ones stay/);
  expect(server.output()).toContain('TRUSTED_DOCUMENTS is ');
  expect(workers.filter(isAlive)).toEqual(workers);
  await listing(base);

  for (const worker of workers.slice(0, 2)) process.kill(worker, 'SIGKILL');
  await expect.poll(measured, { timeout: pollTimeout }).toEqual([2, 4]);
  expect(await ready()).toBe(200);
  process.kill(workers[2] ?? 0, 'SIGKILL');
  await expect.poll(ready, { timeout: pollTimeout }).toBe(503);
  const answer = await fetch(`${base}/health/ready`);
  expect(await answer.json()).toEqual({
    status: 'unavailable',
    detail: 'Only 1 of 4 workers serve.',
  });
  expect(await measured()).toEqual([1, 4]);
  await listing(base);

  mend();
  await expect.poll(ready, { timeout: pollTimeout }).toBe(200);
  await expect.poll(measured, { timeout: pollTimeout }).toEqual([4, 4]);
  server.child.kill('SIGHUP');
  await expect.poll(() => workers.filter(isAlive), { timeout: pollTimeout }).toEqual([]);
  await listing(base);
  expect(await stop(server)).toBe(0);
});

test('a gateway whose workers cannot live any more ends, with what they said', {
  timeout,
}, async () => {
  const { server, databaseUrl, workers } = await startDemo();
  await execute(databaseUrl, `UPDATE _prisma_migrations SET checksum = 'x'`);
  for (const worker of workers) process.kill(worker, 'SIGKILL');
  expect(await server.ended).toBe(1);
  expect(server.errors()).toMatch(
    /^All workers end as soon as they have started, 6 times in a row: Migration 1000_no_older_database is not the text .*\.\n$/,
  );
});
