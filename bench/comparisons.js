// What is measured, and what it should come to.

import { medianOf } from './compare.js';
import { setCounting, setPeerIndexes, withClient } from './database.js';
import { importCursor } from './dist.js';
import { openLikers, startWriting } from './likes.js';
import { sendLoad } from './load.js';
import { graphqlConnection, graphqlList, restList } from './requests.js';

/**
 * @typedef {import('./compare.js').Comparison} Comparison
 * @typedef {import('./compare.js').Side} Side
 * @typedef {import('./servers.js').RunningServer} RunningServer
 * @typedef {{ readonly rows: number, readonly url: string, readonly uncached: RunningServer }} Table
 */

const pageSize = 20;

/** @param {number} rows */
export const deepPageOf = (rows) => Math.floor((rows * 0.8) / pageSize);

/**
 * @param {import('./systems.js').Systems} systems
 * @param {Table} large where all of them are
 * @param {Table} small a small table of the same kind
 * @param {Table | undefined} huge
 * @returns {Promise<Comparison[]>}
 */
export async function listComparisons(systems, large, small, huge) {
  return [
    ...listThroughput(systems, large),
    ...listWriting(systems, large),
    ...listPages(large),
    ...[large, ...(huge ? [huge] : [])].map((table) => compareSizes(table, small)),
    ...(await listConnection(large)),
    compareLikes(large),
  ];
}

/**
 * @param {import('./systems.js').Systems} systems
 * @param {Table} large
 * @returns {Comparison[]}
 */
function listThroughput(systems, { rows }) {
  const { gateway, uncached, handWritten, lean, mercurius, memory } = systems;
  const deep = deepPageOf(rows);
  const deepName = `REST page ${show(deep)} by like_count`;
  // With 32, one round of the hand-written listing would take half a minute.
  const few = 8;
  const page = [restList()];
  const deepPage = [restList(`?ordering=like_count&page=${deep}`)];
  const list = [graphqlList()];
  const cached = throughput('REST page 1, from cache', gateway, page);
  const bare = throughput('REST page 1, cache off', uncached, page);
  const byHand = throughput('REST page 1, hand-written', handWritten, page);
  const unit = 'requests/s';
  return [
    {
      name: 'REST page from cache',
      against: 'the same bytes from memory',
      unit,
      target: { least: 0.75 },
      subject: cached,
      reference: throughput('REST page 1, the same bytes from memory', memory, page),
    },
    {
      name: 'GraphQL list from cache',
      against: 'the same bytes from memory',
      unit,
      target: { least: 0.6 },
      subject: throughput('GraphQL list, from cache', gateway, list),
      reference: throughput('GraphQL list, the same bytes from memory', memory, list),
    },
    {
      name: 'REST page 1, cache off',
      against: 'hand-written with count and offset',
      unit,
      target: { least: 30 },
      subject: bare,
      reference: byHand,
    },
    {
      name: `${deepName}, cache off, ${few} connections`,
      against: 'hand-written with count and offset',
      unit,
      target: { least: 100 },
      subject: throughput(`${deepName}, ${few} connections, cache off`, uncached, deepPage, few),
      reference: throughput(
        `${deepName}, ${few} connections, hand-written`,
        handWritten,
        deepPage,
        few,
      ),
    },
    {
      name: 'REST page 1, cache off',
      against: 'hand-written, count and offset removed',
      unit,
      target: { least: 0.5 },
      subject: bare,
      reference: throughput('REST page 1, hand-written without count and offset', lean, page),
    },
    {
      name: 'GraphQL list, cache off',
      against: 'Mercurius with JIT, same resolvers',
      unit,
      target: { least: 0.9 },
      subject: throughput('GraphQL list, cache off', uncached, list),
      reference: throughput('GraphQL list, Mercurius with JIT', mercurius, list),
    },
    {
      name: 'REST page from cache',
      against: 'hand-written with count and offset',
      unit,
      target: undefined,
      subject: cached,
      reference: byHand,
    },
  ];
}

/**
 * @param {import('./systems.js').Systems} systems
 * @param {Table} large
 * @returns {Comparison[]}
 */
function listWriting({ gateway }, { url }) {
  const page = [restList()];
  return [10, 100].map((perSecond) => {
    const name = `REST page 1, from cache, ${perSecond} writes per second`;
    const side = throughput(name, gateway, page);
    return {
      name: `REST page from cache, ${perSecond} writes per second`,
      against: 'without writes',
      unit: 'requests/s',
      target: undefined,
      subject: {
        name,
        async measure(seconds) {
          const writing = await startWriting(url, perSecond);
          try {
            return await side.measure(seconds);
          } finally {
            await writing.stop();
          }
        },
      },
      reference: throughput('REST page 1, from cache', gateway, page),
    };
  });
}

/**
 * @param {Table} large
 * @returns {Comparison[]}
 */
function listPages({ rows, uncached }) {
  const deep = deepPageOf(rows);
  return ['', 'ordering=like_count&'].map((ordering) => {
    const suffix = ordering && ' by like_count';
    return {
      name: `page ${show(deep)}${suffix}, median latency, cache off`,
      against: 'page 1',
      unit: 'ms',
      target: { most: 1.5 },
      subject: latency(`page ${show(deep)}${suffix}`, uncached, [
        restList(`?${ordering}page=${deep}`),
      ]),
      reference: latency(`page 1${suffix}`, uncached, [restList(`?${ordering}page=1`)]),
    };
  });
}

/**
 * @param {Table} table
 * @param {Table} small
 * @returns {Comparison}
 */
function compareSizes(table, small) {
  /** @param {Table} one */
  const side = ({ rows, uncached }) =>
    latency(`random page of ${show(rows)} outfits`, uncached, listRandomPages(rows));
  return {
    name: `${show(table.rows)} outfits, random page, median latency, cache off`,
    against: `${show(small.rows)} outfits`,
    unit: 'ms',
    target: { most: 1.5 },
    subject: side(table),
    reference: side(small),
  };
}

/** @param {number} rows */
function listRandomPages(rows) {
  return Array.from({ length: 5000 }, (_, index) => {
    const page = 1 + Math.floor(Math.random() * Math.floor(rows / pageSize));
    return restList(`?${index % 2 ? 'ordering=like_count&' : ''}page=${page}`);
  });
}

/**
 * @param {Table} large
 * @returns {Promise<Comparison[]>}
 */
async function listConnection({ rows, url, uncached }) {
  const place = Math.floor(rows * 0.9);
  const cursor = await readCursor(url, place);
  const first = latency('connection, first page', uncached, [
    graphqlConnection({ first: pageSize }),
  ]);
  /** @type {[string, Record<string, unknown>][]} */
  const directions = [
    ['forward', { first: pageSize, after: cursor }],
    ['backward', { last: pageSize, before: cursor }],
  ];
  return directions.map(([direction, variables]) => ({
    name: `connection at row ${show(place)}, ${direction}, median latency, cache off`,
    against: 'its first page',
    unit: 'ms',
    target: { most: 1.5 },
    subject: latency(`connection at row ${show(place)}, ${direction}`, uncached, [
      graphqlConnection(variables),
    ]),
    reference: first,
  }));
}

/** @param {string} url @param {number} place of a row, newest first */
async function readCursor(url, place) {
  const { formatCursor } = await importCursor();
  return withClient(url, async (client) => {
    const { rows } = await client.query(
      'SELECT created, id FROM outfits ORDER BY created DESC, id DESC LIMIT 1 OFFSET $1',
      [place - 1],
    );
    return formatCursor('created', { value: BigInt(rows[0].created), id: rows[0].id });
  });
}

/**
 * @param {Table} large
 * @returns {Comparison}
 */
function compareLikes({ url }) {
  const clients = 8;
  /** @type {Awaited<ReturnType<typeof openLikers>>} */
  let likers;
  /** @param {string} name @param {boolean} counting @returns {Side} */
  const side = (name, counting) => ({
    name,
    async measure(seconds) {
      await withClient(url, (client) => setCounting(client, counting));
      return likers.measure(seconds);
    },
  });
  return {
    name: `likes per second, ${clients} clients, counted`,
    against: 'triggers off',
    unit: 'likes/s',
    target: { least: 0.6 },
    // The indexes of the hand-written listing would make every like dearer.
    prepare: async () => {
      await setPeerIndexes(url, false);
      likers = await openLikers(url, clients);
    },
    subject: side('likes, counted', true),
    reference: side('likes, triggers off', false),
    finish: async () => {
      await likers.close();
      await withClient(url, async (client) => {
        await setCounting(client, true);
        await client.query('SELECT rebuild_outfit_counts()');
      });
    },
  };
}

/**
 * @param {string} name
 * @param {RunningServer} server
 * @param {Buffer[]} requests
 * @param {number} [connections]
 * @returns {Side}
 */
function throughput(name, { port }, requests, connections = 32) {
  return {
    name,
    async measure(seconds) {
      return (await sendLoad(port, requests, { connections, seconds })).rate;
    },
  };
}

/**
 * @param {string} name
 * @param {RunningServer} server
 * @param {Buffer[]} requests
 * @returns {Side}
 */
function latency(name, { port }, requests) {
  return {
    name,
    async measure(seconds) {
      return medianOf((await sendLoad(port, requests, { connections: 1, seconds })).milliseconds);
    },
  };
}

/** @param {number} number */
function show(number) {
  return number.toLocaleString('en');
}
