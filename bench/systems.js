// What is compared: starts all systems and proves that they give the same answers.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fetchAnswer } from './load.js';
import { graphqlList, restList } from './requests.js';
import { startServer } from './servers.js';
import { secret } from './tokens.js';

/** @typedef {import('./servers.js').RunningServer} RunningServer */

/**
 * @param {string} databaseUrl
 * @param {string} cacheMaxBytes empty: the default
 * @param {Record<string, string>} [settings]
 */
export function startGateway(databaseUrl, cacheMaxBytes, settings = {}) {
  // The peers log nothing; with the default level every request would be written to the log.
  return startServer('../dist/server.js', {
    DATABASE_URL: databaseUrl,
    CACHE_MAX_BYTES: cacheMaxBytes,
    LOG_LEVEL: 'warn',
    AUTH_JWT_SECRET: secret,
    // As the peers have it, for which the demonstration's pictures are nowhere.
    MEDIA_URL: 'https://media.example.com',
    ...settings,
  });
}

/**
 * Starts every system on a database.
 * @param {string} databaseUrl
 * @param {number} outfits in it
 */
export async function startSystems(databaseUrl, outfits) {
  const folder = mkdtempSync(join(tmpdir(), 'outfit-gateway-bench-'));
  /** @type {RunningServer[]} */
  const running = [];
  /** @param {Promise<RunningServer>} server */
  const start = async (server) => {
    running.push(await server);
    return /** @type {RunningServer} */ (running.at(-1));
  };
  const close = async () => {
    await Promise.all(running.map((server) => server.close()));
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const environment = { DATABASE_URL: databaseUrl };
    const gateway = await start(startGateway(databaseUrl, ''));
    const uncached = await start(startGateway(databaseUrl, '0'));
    const workers = await start(startGateway(databaseUrl, '', { WORKERS: '2' }));
    const compressing = await start(startGateway(databaseUrl, '', { COMPRESSION: 'all' }));
    const handWritten = await start(startServer('peers/hand-written.js', environment));
    const lean = await start(
      startServer('peers/hand-written.js', { ...environment, CONSTANT_COUNT: String(outfits) }),
    );
    const records = await start(
      startServer('peers/hand-written-records.js', { ...environment, AUTH_JWT_SECRET: secret }),
    );
    const mercurius = await start(startServer('peers/mercurius.js', environment));
    const stored = join(folder, 'answers.json');
    writeFileSync(stored, JSON.stringify(await storeAnswers(gateway)));
    const memory = await start(startServer('peers/memory.js', {}, [stored]));
    // As an old service it answers at once, so that nothing hides what is between.
    const LEGACY_URL = `http://127.0.0.1:${memory.port}`;
    /** @param {string} LEGACY_MODE @param {string} LEGACY_SAMPLE */
    const startBeside = (LEGACY_MODE, LEGACY_SAMPLE) =>
      start(startGateway(databaseUrl, '', { LEGACY_URL, LEGACY_MODE, LEGACY_SAMPLE }));
    const shadow = await startBeside('shadow', '0');
    const sampled = await startBeside('shadow', '10');
    const mirror = await startBeside('mirror', '10');
    const legacy = { shadow, sampled, mirror };
    return {
      gateway,
      uncached,
      workers,
      compressing,
      handWritten,
      lean,
      records,
      mercurius,
      memory,
      legacy,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** @typedef {Awaited<ReturnType<typeof startSystems>>} Systems */

/**
 * The answers that the memory server repeats.
 * @param {RunningServer} gateway
 * @returns {Promise<import('./peers/memory.js').StoredAnswer[]>}
 */
async function storeAnswers(gateway) {
  const rest = await fetchAnswer(gateway.port, restList());
  const graphql = await fetchAnswer(gateway.port, graphqlList());
  return [
    { method: 'GET', url: '/api/outfits/', ...withoutConnection(rest) },
    { method: 'POST', url: '/graphql', ...withoutConnection(graphql) },
  ];
}

/** @param {import('./load.js').Answer} answer */
function withoutConnection({ headers, body }) {
  const { date, connection, 'keep-alive': keepAlive, 'content-length': length, ...kept } = headers;
  return { headers: kept, body: body.toString('base64') };
}

/**
 * Compares the answers of all systems.
 * @param {Systems} systems
 * @param {number} deepPage
 * @throws AssertionError when two differ
 */
export async function validate(systems, deepPage) {
  const { gateway, uncached, workers, handWritten, lean, mercurius, memory } = systems;
  const pages = ['', '?ordering=like_count', '?page=2'].concat(
    ['', 'ordering=like_count&'].map((ordering) => `?${ordering}page=${deepPage}`),
  );
  for (const query of pages) {
    await assertSame('REST', restList(query), gateway, [uncached, handWritten]);
  }
  await assertSame('REST', restList(), gateway, [memory, lean, workers]);
  const variables = [{}, { page: deepPage }, { ordering: 'LIKE_COUNT_ASC', page: deepPage }];
  // Twice more than it takes until the compiled query answers, on every side.
  for (let time = 0; time < 6; time += 1) {
    for (const values of variables) {
      await assertSame('GraphQL', graphqlList(values), gateway, [uncached, mercurius]);
    }
  }
  await assertSame('GraphQL', graphqlList(), gateway, [memory, workers]);
}

/**
 * @param {string} kind
 * @param {Buffer} request
 * @param {RunningServer} expected
 * @param {RunningServer[]} others
 */
async function assertSame(kind, request, expected, others) {
  const answer = await fetchAnswer(expected.port, request);
  assert.equal(answer.status, 200);
  for (const { port } of others) {
    const other = await fetchAnswer(port, request);
    assert.equal(other.status, 200, other.body.toString().slice(0, 300));
    const message = `${kind}: the answers to ${request.toString().split('\r\n', 1)} differ`;
    assert.equal(other.body.toString(), answer.body.toString(), message);
  }
}
