// The old service freezes, breaks off, dies and comes back, under load: what the gateway answers itself
// does not notice, and where the old service is to answer, clients are told.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { baseOf, demoEnvironment, runServer, slowness, stop } from '../support/cli/process.ts';
import { type Answered, send, startLoad } from '../support/faults/load.ts';
import { type Network, openNetwork } from '../support/faults/network.ts';
import { type LegacyService, startLegacyService } from '../support/legacy/legacy-service.ts';
import { records } from '../support/legacy/two-services.ts';

let legacy: LegacyService;
let network: Network;

beforeEach(async () => {
  legacy = await startLegacyService(records());
  network = await openNetwork(Number(new URL(legacy.base).port));
});
afterEach(async () => {
  network.close();
  await legacy.close();
});

async function startServer(mode: string, timeout = '1s') {
  const server = runServer({
    ...(await demoEnvironment()),
    HOST: '127.0.0.1',
    LEGACY_URL: `http://127.0.0.1:${network.port}`,
    LEGACY_MODE: mode,
    LEGACY_SAMPLE: '100',
    LEGACY_TIMEOUT: timeout,
  });
  return { server, base: await baseOf(server) };
}

/** The statuses of some answers, each once, in order. */
const statusesOf = (answers: readonly Answered[]) =>
  [...new Set(answers.map(({ status }) => status))].toSorted();

const isLegacyPath = ({ what }: Answered) => what.startsWith('/api/');

test.each([
  ['mirror', [200]],
  // The old one has fewer pages: 404 is its own answer.
  ['shadow', [200, 404, 502, 504]],
])('in %s', async (mode, allowed) => {
  const { server, base } = await startServer(mode);
  const load = startLoad(base, 6);
  const began = performance.now();
  /** Until the old service, where it is the one that answers, has answered so. */
  const until = (status: number) =>
    mode === 'shadow' ? load.until(status, 10) : load.until(200, 100);
  await until(404);
  network.swallow();
  await until(504);
  network.restore();
  await until(404);
  legacy.fault = 'closing early';
  await until(502);
  legacy.fault = 'cut short';
  await until(0);
  const { port } = new URL(legacy.base);
  await legacy.close();
  await until(502);
  legacy = await startLegacyService(records(), { port: Number(port) });
  await until(404);
  await load.stop();

  // A database that a starved machine does not reach in time is a 503 of the gateway.
  const isMet = ({ status }: Answered) => status !== 503 || slowness === 1;
  const ours = load.answers.filter((answer) => !isLegacyPath(answer)).filter(isMet);
  const theirs = load.answers.filter(isLegacyPath).filter(isMet);
  expect(ours.length).toBeGreaterThan(100);
  expect(statusesOf(ours)).toEqual([200]);
  // 0 is an answer that broke off: where the old one answers, that can be.
  const whole = mode === 'shadow' ? theirs.filter(({ status }) => status !== 0) : theirs;
  expect(statusesOf(whole)).toEqual(allowed);
  for (const { status, body } of whole.filter(({ status }) => status > 500)) {
    const reason = status === 504 ? 'did not answer in time' : 'cannot be reached';
    expect(JSON.parse(body)).toEqual({ detail: `The old service ${reason}.` });
  }
  // It is as it was before.
  await expect.poll(async () => (await send(base, '/api/outfits/')).status).toBe(200);
  expect(await stop(server)).toBe(0);
  // At most one line a second reports each kind of failure.
  const seconds = (performance.now() - began) / 1000;
  expect(server.output().split('\n').length).toBeLessThan(30 + 4 * seconds);
});

test.each(['shadow', 'mirror'])('in %s, a frozen one does not keep the process', async (mode) => {
  const { server, base } = await startServer(mode, '60s');
  network.swallow();
  const waiting = Array.from({ length: 20 }, () => send(base, '/api/outfits/'));
  await expect.poll(() => network.connections()).toBeGreaterThan(0);
  await expect.poll(async () => (await send(base, '/health/ready')).status).toBe(200);
  const start = performance.now();
  expect(await stop(server)).toBe(0);
  // Five seconds are promised of every stop; a busy machine gets twice as long.
  expect(performance.now() - start).toBeLessThan(10_000 * slowness);
  // 0 is an answer that never came.
  const allowed = mode === 'mirror' ? [200] : [0];
  expect(statusesOf(await Promise.all(waiting))).toEqual(allowed);
});
