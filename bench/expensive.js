// Twenty clients that ask for expensive lists without pause, whatever they are answered.
import { Agent, request } from 'node:http';

const clients = 20;

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
 * @param {number} port
 * @param {string} query
 */
export function startAsking(port, query) {
  const body = JSON.stringify({ query });
  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  const headers = { 'content-type': 'application/json' };
  let isStopped = false;
  const askOnce = () =>
    new Promise((settle) => {
      const options = { agent, headers, port, host: '127.0.0.1', path: '/graphql', method: 'POST' };
      const sent = request(options, (answer) => answer.resume().on('close', settle));
      sent.on('error', settle);
      sent.end(body);
    });
  const asking = Array.from({ length: clients }, async () => {
    while (!isStopped) await askOnce();
  });
  return {
    async stop() {
      isStopped = true;
      await Promise.all(asking);
      agent.destroy();
    },
  };
}
