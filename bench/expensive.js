// Twenty clients that ask for expensive lists without pause, whatever they are answered.
import { Worker } from 'node:worker_threads';

const lists = (/** @type {number} */ count, /** @type {string} */ filter) =>
  `{ ${Array.from({ length: count }, (_, index) => `a${index}: outfits(filter: ${filter}, ordering: MODIFIED_ASC, page: ${index + 1}) { count results { id } }`).join(' ')} }`;

/** As many lists as a document may have; the first one has too many, and is refused each time. */
export const expensiveDocuments = {
  '45 lists without an index': lists(45, '{ hasVideo: false }'),
  'lists without an index': lists(3, '{ hasVideo: false }'),
  'searches of a frequent word': lists(6, '{ search: "and" }'),
  'several hashtags': lists(6, '{ hashtags: ["ootd", "denim", "vintage", "style"] }'),
};

/**
 * In a thread of their own, so that the client whose latency is measured does not wait for them.
 * @param {number} port
 * @param {string} query
 */
export function startAsking(port, query) {
  const thread = new Worker(new URL('./expensive-clients.js', import.meta.url), {
    workerData: { port, query },
  });
  return { stop: () => thread.terminate() };
}
