// WORKERS: several processes that are one gateway to its operator and its clients.
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { countWorkers, splitLimits } from '../../src/process/cluster/parent.ts';
import {
  baseOf,
  environmentOf,
  failure,
  findFreePort,
  migratedEnvironmentOf,
  type Run,
  runServer,
  stop,
} from '../support/cli/process.ts';
import { isAlive, readMetric, startTwo } from '../support/cli/workers.ts';
import { connectForTest } from '../support/databases/connections.ts';

/** On a connection of its own, so that the next worker takes it. */
async function ask(base: string, path = '/api/outfits/') {
  const response = await fetch(base + path, {
    headers: { connection: 'close', 'x-client-name': 'kiosk' },
  });
  await response.arrayBuffer();
  return response.status;
}

/** What of the output are lines with these words. */
const linesWith = (server: Run, words: string) =>
  server
    .output()
    .split('\n')
    .filter((line) => line.includes(words));

// Each start is that of three processes.
const timeout = 120_000;

describe('WORKERS=2', { timeout }, () => {
  test('is one gateway: both answer, the start and the end are said once, and all is counted together', async () => {
    const METRICS_PORT = String(await findFreePort());
    const { server, base, workers } = await startTwo({
      METRICS_PORT,
      SEED: 'demo',
      LOG_LEVEL: 'debug',
    });
    expect(new Set(workers).size).toBe(2);
    for (let time = 0; time < 10; time += 1) expect(await ask(base)).toBe(200);
    expect(await ask(base, '/health/ready')).toBe(200);

    const answering = linesWith(server, '"answered"').map((line) => JSON.parse(line).pid);
    expect(new Set(answering)).toEqual(new Set(workers));
    for (const words of ['Outfit gateway', ' outfits"', 'REST: ', 'Metrics: ', 'filling it']) {
      expect(linesWith(server, words), words).toHaveLength(1);
    }

    const metric = (series: string) => readMetric(METRICS_PORT, series);
    const rest = 'method="GET",route="/api/outfits/",operation="",status="200"';
    expect(await metric(`gateway_http_requests_total{${rest}}`)).toBe(10);
    const client = 'client="kiosk",interface="rest",path="/api/outfits/"';
    expect(await metric(`gateway_client_requests_total{${client}}`)).toBe(10);
    expect(await metric('gateway_workers')).toBe(2);
    expect(await metric('gateway_build_info{version="1.0.0"}')).toBe(1);
    expect(await metric('process_start_time_seconds')).toBeCloseTo(Date.now() / 1000, -3);

    // A terminal sends it to all of them.
    for (const worker of workers) process.kill(worker, 'SIGINT');
    server.child.kill('SIGINT');
    expect(await server.ended).toBe(0);
    expect(linesWith(server, 'good-bye')).toHaveLength(1);
    expect(server.errors()).toBe('');
    expect(workers.filter(isAlive)).toEqual([]);
  });

  test('takes no more connections than DATABASE_POOL_MAX, and those that watch', async () => {
    const settings = { DATABASE_POOL_MAX: '3', CACHE_MAX_SIZE: '0' };
    const { server, base, databaseUrl } = await startTwo(settings);
    const client = await connectForTest(databaseUrl);
    const asking = Array.from({ length: 200 }, () => ask(base));
    const open: number[] = [];
    for (let time = 0; time < 20; time += 1) {
      const { rowCount } = await client.query(
        `SELECT FROM pg_stat_activity
         WHERE application_name = 'outfit-gateway' AND datname = current_database()`,
      );
      open.push(rowCount ?? 0);
      await sleep(10);
    }
    expect(new Set(await Promise.all(asking))).toEqual(new Set([200]));
    // The pools, a probe and a monitor for each worker, the monitor of the parent and what it began with.
    expect(Math.max(...open)).toBeLessThanOrEqual(3 + 2 * 2 + 2);
    expect(Math.max(...open)).toBeGreaterThan(4);
    expect(await stop(server)).toBe(0);
  });

  test('replaces a worker that somebody asks to end, without an error', async () => {
    const METRICS_PORT = String(await findFreePort());
    const { server, base, workers } = await startTwo({ METRICS_PORT });
    const [first = 0] = workers;
    process.kill(first, 'SIGTERM');
    const [, other] = await server.until(/worker (\d+) serves/);
    await expect.poll(() => isAlive(first)).toBe(false);
    expect(linesWith(server, 'has ended')).toEqual([]);
    expect(await ask(base)).toBe(200);
    expect(await readMetric(METRICS_PORT, 'gateway_worker_exits_total')).toBe(0);
    // No worker is left behind when its parent is killed.
    server.child.kill('SIGKILL');
    await expect.poll(() => [...workers, Number(other)].filter(isAlive)).toEqual([]);
  });

  test('waits for a database that is not migrated, and says so once', async () => {
    const server = runServer({ ...(await environmentOf('PostgreSQL')), WORKERS: '2' });
    const base = await baseOf(server);
    const paths = ['/health/live', '/health/ready', '/api/outfits/'];
    expect(await Promise.all(paths.map((path) => ask(base, path)))).toEqual([200, 503, 503]);
    expect(linesWith(server, 'npm run migrate')).toHaveLength(1);
    expect(await stop(server)).toBe(0);
  });
});

test.each(['1', '2'])(
  'WORKERS=%s: SIGUSR2 switches the log to debug, and back',
  {
    timeout,
  },
  async (WORKERS) => {
    const server = runServer({ ...(await migratedEnvironmentOf('PostgreSQL')), WORKERS });
    const base = await baseOf(server);
    /** The lines that two answers have added, each by another worker. */
    const added = async () => {
      const answered = () => linesWith(server, '"answered"').length;
      const before = answered();
      expect([await ask(base), await ask(base)]).toEqual([200, 200]);
      await sleep(100);
      return answered() - before;
    };
    expect(await added()).toBe(0);
    server.child.kill('SIGUSR2');
    await server.until(/SIGUSR2: the log level is debug/);
    await expect.poll(added).toBe(2);
    if (WORKERS === '2') {
      // A later worker has the level of its parent.
      server.child.kill('SIGHUP');
      await server.until(/worker \d+ serves.*worker \d+ serves/s);
      await expect.poll(added).toBe(2);
    }
    server.child.kill('SIGUSR2');
    await server.until(/SIGUSR2: the log level is info/);
    await expect.poll(added).toBe(0);
    expect(await stop(server)).toBe(0);
  },
);

test('what cannot start ends with the sentence of the worker that found it', {
  timeout,
}, async () => {
  const environment = { ...(await migratedEnvironmentOf('PostgreSQL')), WORKERS: '2' };
  const documents = { ...environment, TRUSTED_DOCUMENTS: '/nonexistent/documents.json' };
  expect(await failure(runServer(documents), 2)).toMatch(/^TRUSTED_DOCUMENTS is /);
  expect(await failure(runServer({ ...environment, HOST: '192.0.2.1', PORT: '4000' }))).toMatch(
    /EADDRNOTAVAIL.*set HOST and PORT/,
  );
});

describe('the limits of the gateway', () => {
  test('are shared out: together the workers keep them, and each can work', () => {
    const config = readConfig({ MAX_STREAMS: '0', MAX_CONCURRENT_REQUESTS: '2' });
    const shares = splitLimits(config, 4);
    expect(shares.map(({ databasePoolMax }) => databasePoolMax)).toEqual([3, 3, 2, 2]);
    expect(shares.map(({ cacheMaxSize }) => cacheMaxSize)).toEqual(Array(4).fill(2 ** 24));
    expect(shares.map(({ maxConcurrentRequests }) => maxConcurrentRequests)).toEqual([1, 1, 1, 1]);
    expect(shares.map(({ maxStreams }) => maxStreams)).toEqual([0, 0, 0, 0]);
  });

  test.each([
    ['auto', 8, undefined, 8],
    ['auto', 8, 'max 100000\n', 8],
    ['auto', 8, '250000 100000\n', 2],
    ['auto', 8, '50000 100000\n', 1],
    ['auto', 2, '800000 100000\n', 2],
    [5, 2, '100000 100000\n', 5],
  ] as const)('%s workers on %s processors with a quota of %j are %s', (...given) => {
    const [wanted, processors, quota, workers] = given;
    expect(countWorkers(wanted, processors, quota)).toBe(workers);
  });
});
