// Single records and writes, against the same SQL written by hand: what is compared is all that lies
// between the socket and the statement.
import assert from 'node:assert/strict';
import { setPeerIndexes, withClient } from './database.js';
import { fetchAnswer } from './load.js';
import { records } from './requests.js';
import { throughput } from './sides.js';
import { signToken } from './tokens.js';

/**
 * @typedef {import('./compare.js').Comparison} Comparison
 * @typedef {import('./servers.js').RunningServer} RunningServer
 * @typedef {{ graphql: Buffer, path: Buffer }} Request the same request, to the gateway and by hand
 */

const image = 'https://media.example.com/outfits/2b1d3c4e-0000-4000-8000-000000000001.png';

/**
 * @param {import('./systems.js').Systems} systems
 * @param {{ readonly url: string, readonly uncached: RunningServer }} table
 * @returns {Comparison[]}
 */
export function compareRecords({ records: handWritten }, { url, uncached }) {
  /** @type {number[]} */
  let outfits = [];
  /** @type {Writer[]} */
  const writers = [];
  /** @type {Request[]} */
  const someOutfits = [];
  /** @type {Request[]} */
  const someUsers = [];
  const nextLike = iterate(distinctLikes(() => outfits, writers));
  const nextOutfit = iterate(newOutfits(writers));
  const prepare = async () => {
    if (outfits.length > 0) return;
    const ids = await readIds(url);
    for (const id of ids.users.slice(0, 200)) writers.push({ id, token: await signToken(id) });
    someOutfits.push(...ids.outfits.slice(0, 5000).map(records.outfit));
    someUsers.push(...ids.users.slice(0, 5000).map(records.user));
    outfits = ids.outfits;
    const some = [...someOutfits.slice(0, 20), ...someUsers.slice(0, 20)];
    await assertSame(uncached, handWritten, some);
  };

  /** @param {string} name @param {number} least @param {() => Request} next @returns {Comparison} */
  const compare = (name, least, next) => ({
    name: `${name}, cache off`,
    against: 'hand-written with the same SQL',
    unit: 'requests/s',
    target: { least },
    subject: throughput(name, uncached, () => next().graphql),
    reference: throughput(`${name}, hand-written`, handWritten, () => next().path),
    prepare,
  });
  /** @param {readonly Request[]} requests */
  const inTurn = (requests) => {
    let sent = 0;
    return () => /** @type {Request} */ (requests[sent++ % requests.length]);
  };
  /**
   * The indexes of the hand-written listing would make every write dearer.
   * @param {Comparison} comparison
   * @param {string} what is counted before and after: no request may have written nothing
   * @param {{ readonly taken: number }} requests
   */
  const counted = (comparison, what, requests) => {
    let before = 0;
    return {
      ...comparison,
      prepare: async () => {
        await prepare();
        await setPeerIndexes(url, false);
        before = (await count(url, what)) - requests.taken;
      },
      finish: async () => {
        assert.equal(
          (await count(url, what)) - before,
          requests.taken,
          `not all ${what} are there`,
        );
      },
    };
  };
  return [
    compare('outfit(id)', 0.45, inTurn(someOutfits)),
    compare('user(id) { outfits }', 0.4, inTurn(someUsers)),
    counted(compare('likeOutfit', 0.65, nextLike), 'outfit_likes', nextLike),
    counted(compare('createOutfit', 0.5, nextOutfit), 'outfits', nextOutfit),
  ];
}

/** @param {string} url */
async function readIds(url) {
  return withClient(url, async (client) => {
    /** @param {string} table @returns {Promise<number[]>} */
    const read = async (table) => {
      const { rows } = await client.query(`SELECT id FROM ${table} ORDER BY random() LIMIT 100000`);
      return rows.map(({ id }) => id);
    };
    return { outfits: await read('outfits'), users: await read('users') };
  });
}

/** @param {string} url @param {string} table */
async function count(url, table) {
  return withClient(url, async (client) => {
    const { rows } = await client.query(`SELECT count(*)::int AS count FROM ${table}`);
    return Number(rows[0].count);
  });
}

/** @typedef {{ readonly id: number, readonly token: string }} Writer */

/**
 * Each of another outfit than the one before and by another user, and none twice.
 * @param {() => readonly number[]} readOutfits
 * @param {readonly Writer[]} writers
 * @returns {Generator<Request, never>}
 */
function* distinctLikes(readOutfits, writers) {
  const outfits = readOutfits();
  for (let round = 0; round < writers.length; round += 1) {
    for (const [index, id] of outfits.entries()) {
      const writer = writers[(index + round) % writers.length];
      if (writer) yield records.like(id, writer.token);
    }
  }
  throw new Error('Every user likes every outfit: take more --rows.');
}

/**
 * @param {readonly Writer[]} writers
 * @returns {Generator<Request, never>}
 */
function* newOutfits(writers) {
  for (let number = 0; ; number += 1) {
    const writer = writers[number % writers.length];
    const input = {
      title: `Outfit ${number}`,
      description: 'Made by the benchmark #bench',
      imageKey: image,
      backgroundColor: '#00aa99',
      device: 'IOS',
    };
    if (writer) yield records.create(input, writer.token);
  }
}

/**
 * Gives one value after the other, and counts how many.
 * @template Value
 * @param {Generator<Value, never>} values
 */
function iterate(values) {
  const next = () => {
    next.taken += 1;
    return values.next().value;
  };
  next.taken = 0;
  return next;
}

/**
 * @param {RunningServer} gateway
 * @param {RunningServer} handWritten
 * @param {readonly Request[]} requests
 */
async function assertSame(gateway, handWritten, requests) {
  for (const { graphql, path } of requests) {
    const ours = await fetchAnswer(gateway.port, graphql);
    const theirs = await fetchAnswer(handWritten.port, path);
    assert.equal(theirs.status, 200);
    assert.equal(ours.body.toString(), theirs.body.toString(), 'the answers to a record differ');
  }
}
