// What can be measured of a system that answers requests.
import { medianOf } from './compare.js';
import { sendLoad } from './load.js';

/**
 * @typedef {import('./compare.js').Side} Side
 * @typedef {import('./load.js').Requests} Requests
 * @typedef {import('./servers.js').RunningServer} RunningServer
 */

/**
 * @param {string} name
 * @param {RunningServer} server
 * @param {Requests} requests
 * @param {number} [connections]
 * @returns {Side}
 */
export function throughput(name, server, requests, connections = 32) {
  return {
    name,
    async measure(seconds) {
      return (await sendLoad(server.port, requests, { connections, seconds })).rate;
    },
  };
}

/**
 * @param {string} name
 * @param {RunningServer} server
 * @param {Requests} requests
 * @returns {Side}
 */
export function latency(name, server, requests) {
  return {
    name,
    async measure(seconds) {
      return medianOf(
        (await sendLoad(server.port, requests, { connections: 1, seconds })).milliseconds,
      );
    },
  };
}
