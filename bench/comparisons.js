// What is measured, and what it should come to.

import { setCounting, setPeerIndexes, withClient } from './database.js';
import { expensiveDocuments, startAsking } from './expensive.js';
import { listLegacy } from './legacy.js';
import { compareLikeCost } from './like-cost.js';
import { openLikers, startLiking, startMaintenance } from './likes.js';
import { compareProcessorTime } from './processor.js';
import { compareRecords } from './records.js';
import { graphqlConnection, graphqlList, restList } from './requests.js';
import { latency, throughput } from './sides.js';
import { importOrdering } from './source.js';

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
 * @param {{ process: number | undefined, canCheckpoint: boolean }} server of the database: its process, where it can
 *   be seen, and whether the role may make a checkpoint
 * @returns {Comparison[]}
 */
export function listComparisons(systems, large, small, huge, server) {
  return [
    ...listThroughput(systems),
    ...listBusy(systems, large),
    ...listManyPages(systems, large),
    ...compareProcessorTime(systems, server.process),
    ...listPages(large),
    ...listExpensive(large),
    ...[large, ...(huge ? [huge] : [])].map((table) => compareSizes(table, small)),
    compareConnection(large),
    ...compareLikeCost(large, server.canCheckpoint),
    ...compareRecords(systems, large),
    ...listLegacy(systems),
    compareLikes(large),
  ];
}

/**
 * @param {import('./systems.js').Systems} systems
 * @returns {Comparison[]}
 */
function listThroughput({ gateway, uncached, handWritten, lean, mercurius }) {
  const page = [restList()];
  const list = [graphqlList()];
  const bare = throughput('REST page 1, cache off', uncached, page);
  const unit = 'requests/s';
  return [
    {
      name: 'GraphQL list from cache, compressed',
      against: 'the same, not compressed',
      unit,
      target: { least: 1 },
      subject: throughput('GraphQL list, compressed, from cache', gateway, [graphqlList({}, 'br')]),
      reference: throughput('GraphQL list, from cache', gateway, list),
    },
    {
      name: 'REST page 1, cache off',
      against: 'hand-written with count and offset',
      unit,
      target: { least: 30 },
      subject: bare,
      reference: throughput('REST page 1, hand-written', handWritten, page),
    },
    {
      name: 'REST page 1, cache off',
      against: 'hand-written, count and offset removed',
      unit,
      target: { least: 0.65 },
      subject: bare,
      reference: throughput('REST page 1, hand-written without count and offset', lean, page),
    },
    {
      name: 'GraphQL list, cache off',
      against: 'Mercurius with JIT, same resolvers',
      unit,
      target: { least: 1 },
      subject: throughput('GraphQL list, cache off', uncached, list),
      reference: throughput('GraphQL list, Mercurius with JIT', mercurius, list),
    },
  ];
}

/**
 * From memory with so many connections that the processor is what they wait for: with 32, the
 * gateway waits for the database to say that nothing has changed.
 * @param {import('./systems.js').Systems} systems
 * @param {Table} large
 * @returns {Comparison[]}
 */
function listBusy({ gateway, memory }, { url }) {
  const connections = 128;
  const perSecond = 100;
  const kinds = [
    { kind: 'REST page', requests: [restList()], least: 0.92 },
    { kind: 'GraphQL list', requests: [graphqlList()], least: 0.9 },
  ];
  return kinds.flatMap(({ kind, requests, least }) => {
    const name = `${kind}, ${connections} connections`;
    const cached = throughput(`${name}, from cache`, gateway, requests, connections);
    return [
      {
        name: `${name}, from cache`,
        against: 'the same bytes from memory',
        unit: 'requests/s',
        target: { least },
        subject: cached,
        reference: throughput(`${name}, from memory`, memory, requests, connections),
      },
      {
        name: `${name}, from cache, ${perSecond} likes per second`,
        against: 'without likes',
        unit: 'requests/s',
        target: { least: 0.9 },
        subject: whileLiking(cached, url, perSecond),
        reference: cached,
      },
    ];
  });
}

/**
 * Many pages at once, as a site has them: each write touches few of them.
 * @param {import('./systems.js').Systems} systems
 * @param {Table} large
 * @returns {Comparison[]}
 */
function listManyPages({ gateway }, { url }) {
  const [pages, connections, perSecond] = [40, 64, 100];
  // In three orders, so that likes move outfits in a third of them.
  const orders = [
    { rest: '', graphql: 'CREATED_DESC' },
    { rest: 'ordering=-like_count&', graphql: 'LIKE_COUNT_DESC' },
    { rest: 'ordering=modified&', graphql: 'MODIFIED_ASC' },
  ];
  const lists = Array.from({ length: pages }, (_, index) => ({
    .../** @type {typeof orders[number]} */ (orders[index % orders.length]),
    page: 1 + Math.floor(index / orders.length),
  }));
  const kinds = {
    'REST pages': lists.map(({ rest, page }) => restList(`?${rest}page=${page}`)),
    'GraphQL lists': lists.map(({ graphql, page }) => graphqlList({ ordering: graphql, page })),
  };
  return Object.entries(kinds).map(([kind, requests]) => {
    const name = `${pages} ${kind} from cache, ${connections} connections`;
    const cached = throughput(name, gateway, requests, connections);
    return {
      name: `${name}, ${perSecond} likes per second`,
      against: 'without likes',
      unit: 'requests/s',
      target: { least: 0.85 },
      subject: whileLiking(cached, url, perSecond),
      reference: cached,
    };
  });
}

/**
 * Clients of expensive lists must not hold up another one.
 * @param {Table} large
 * @returns {Comparison[]}
 */
function listExpensive({ uncached }) {
  const quiet = latency('REST page 1,000, median latency', uncached, [restList('?page=1000')]);
  return Object.entries(expensiveDocuments).map(([name, query]) => ({
    name: `REST page 1,000, cache off, beside twenty clients of ${name}`,
    against: 'without them',
    unit: 'ms',
    target: { most: 5 },
    subject: {
      name: `${quiet.name}, beside ${name}`,
      async measure(seconds) {
        const asking = startAsking(uncached.port, query);
        try {
          return await quiet.measure(seconds);
        } finally {
          await asking.stop();
        }
      },
    },
    reference: quiet,
  }));
}

/**
 * @param {Side} side
 * @param {string} url
 * @param {number} perSecond
 * @returns {Side}
 */
function whileLiking(side, url, perSecond) {
  return {
    name: `${side.name}, ${perSecond} likes per second`,
    async measure(seconds) {
      const liking = await startLiking(url, perSecond);
      try {
        return await side.measure(seconds);
      } finally {
        await liking.stop();
      }
    },
  };
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
      target: { most: 1.4 },
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
    target: { most: 1.4 },
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
 * Backwards, which costs more than forwards.
 * @param {Table} large
 * @returns {Comparison}
 */
function compareConnection({ rows, url, uncached }) {
  const place = Math.floor(rows * 0.9);
  const name = `connection at row ${show(place)}, backward`;
  /** @type {Buffer[]} */
  const requests = [];
  return {
    name: `${name}, median latency, cache off`,
    against: 'its first page',
    unit: 'ms',
    target: { most: 1.5 },
    prepare: async () => {
      const before = await readCursor(url, place);
      requests.push(graphqlConnection({ last: pageSize, before }));
    },
    subject: latency(name, uncached, requests),
    reference: latency('connection, first page', uncached, [
      graphqlConnection({ first: pageSize }),
    ]),
  };
}

/** @param {string} url @param {number} place of a row, newest first */
async function readCursor(url, place) {
  const { formatCursor } = await importOrdering();
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
      // As a gateway does beside it.
      const maintenance = counting ? startMaintenance(url) : undefined;
      const likes = await likers.measure(seconds);
      await maintenance?.stop();
      return likes;
    },
  });
  return {
    name: `likes per second, ${clients} clients, counted`,
    against: 'triggers off',
    unit: 'likes/s',
    target: { least: 0.8 },
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

/** @param {number} number */
function show(number) {
  return number.toLocaleString('en');
}
