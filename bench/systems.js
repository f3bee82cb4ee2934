// What is compared: starts all systems and proves that they give the same answers.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fetchAnswer } from './load.js';
import { graphqlList, restList } from './requests.js';
import { planServer, startServer } from './servers.js';
import { secret } from './tokens.js';

/** @typedef {import('./servers.js').RunningServer} RunningServer */

/**
 * @param {string} databaseUrl
 * @param {string} cacheMaxSize empty: the default
 * @param {Record<string, string>} [settings]
 */
export function startGateway(databaseUrl, cacheMaxSize, settings = {}) {
  // The peers log nothing; with the default level every request would be written to the log.
  return startServer('../dist/server.js', {
    DATABASE_URL: databaseUrl,
    CACHE_MAX_SIZE: cacheMaxSize,
    LOG_LEVEL: 'warn',
    AUTH_JWT_SECRET: secret,
    // As the peers have it, for which the demonstration's pictures are nowhere.
    MEDIA_URL: 'https://media.example.com',
    ...settings,
  });
}

/** All systems, to be started later. */
export function planSystems() {
  return {
    gateway: planServer(),
    uncached: planServer(),
    handWritten: planServer(),
    lean: planServer(),
    records: planServer(),
    mercurius: planServer(),
    memory: planServer(),
    shadow: planServer(),
  };
}

/** @typedef {ReturnType<typeof planSystems>} Systems */

/**
 * Starts every system on a database.
 * @param {Systems} systems
 * @param {string} databaseUrl
 * @param {number} outfits in it
 * @returns what closes those that have started
 */
export async function startSystems(systems, databaseUrl, outfits) {
  const folder = mkdtempSync(join(tmpdir(), 'outfit-gateway-bench-'));
  const close = async () => {
    await Promise.all(Object.values(systems).map((server) => server.close()));
    rmSync(folder, { recursive: true, force: true });
  };
  /** @param {keyof Systems} name @param {Promise<RunningServer>} server */
  const start = async (name, server) => {
    Object.assign(systems[name], await server);
  };
  try {
    const environment = { DATABASE_URL: databaseUrl };
    await start('gateway', startGateway(databaseUrl, ''));
    await start('uncached', startGateway(databaseUrl, '0'));
    await start('handWritten', startServer('peers/hand-written.js', environment));
    const CONSTANT_COUNT = String(outfits);
    await start('lean', startServer('peers/hand-written.js', { ...environment, CONSTANT_COUNT }));
    const signed = { ...environment, AUTH_JWT_SECRET: secret };
    await start('records', startServer('peers/hand-written-records.js', signed));
    await start('mercurius', startServer('peers/mercurius.js', environment));
    const stored = join(folder, 'answers.json');
    writeFileSync(stored, JSON.stringify(await storeAnswers(systems.gateway)));
    await start('memory', startServer('peers/memory.js', {}, [stored]));
    // As an old service it answers at once, so that nothing hides what is between.
    const LEGACY_URL = `http://127.0.0.1:${systems.memory.port}`;
    const shadow = { LEGACY_URL, LEGACY_MODE: 'shadow', LEGACY_SAMPLE: '0' };
    await start('shadow', startGateway(databaseUrl, '', shadow));
    return close;
  } catch (error) {
    await close();
    throw error;
  }
}

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
  const { gateway, uncached, handWritten, lean, mercurius, memory } = systems;
  const pages = ['', '?ordering=like_count', '?page=2'].concat(
    ['', 'ordering=like_count&'].map((ordering) => `?${ordering}page=${deepPage}`),
  );
  for (const query of pages) {
    await assertSame('REST', restList(query), gateway, [uncached, handWritten]);
  }
  await assertSame('REST', restList(), gateway, [memory, lean]);
  const variables = [{}, { page: deepPage }, { ordering: 'LIKE_COUNT_ASC', page: deepPage }];
  // Twice more than it takes until the compiled query answers, on every side.
  for (let time = 0; time < 6; time += 1) {
    for (const values of variables) {
      await assertSame('GraphQL', graphqlList(values), gateway, [uncached, mercurius]);
    }
  }
  await assertSame('GraphQL', graphqlList(), gateway, [memory]);
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
