// What a request costs: the processor time of a system and of the database that it uses.
import { existsSync, readFileSync } from 'node:fs';
import { withClient } from './database.js';
import { sendLoad } from './load.js';
import { graphqlList, restList } from './requests.js';

/**
 * @typedef {import('./compare.js').Comparison} Comparison
 * @typedef {import('./compare.js').Side} Side
 */

const mostConnections = 128;

/**
 * None where the kernel does not tell (other systems than Linux), or where the server of the
 * database is on another machine.
 * @param {import('./systems.js').Systems} systems
 * @param {number | undefined} database the process that `findServerProcess` gives
 * @returns {Comparison[]}
 */
export function compareProcessorTime({ gateway, memory }, database) {
  if (database === undefined) {
    console.log('processor time is not compared: the processes of the database are not to be seen');
    return [];
  }
  return [
    { kind: 'REST page', request: restList() },
    { kind: 'GraphQL list', request: graphqlList() },
  ].map(({ kind, request }) => ({
    name: `processor time, ${kind} from cache, ${mostConnections} connections`,
    against: 'the same bytes from memory',
    unit: 'µs',
    target: { most: 1.25 },
    subject: processorTime(`${kind}, from cache`, gateway, request, database),
    reference: processorTime(`${kind}, the same bytes from memory`, memory, request),
  }));
}

/**
 * @param {string} name
 * @param {import('./servers.js').RunningServer} server
 * @param {Buffer} request
 * @param {number} [database] the process that the others of the database were started by
 * @returns {Side} microseconds of each request
 */
export function processorTime(name, server, request, database, connections = mostConnections) {
  const read = () =>
    readFamilyTime(server.processId) + (database === undefined ? 0 : readFamilyTime(database));
  return {
    name,
    async measure(seconds) {
      const before = read();
      const { milliseconds } = await sendLoad(server.port, [request], { connections, seconds });
      return ((read() - before) * 1e6) / milliseconds.length;
    },
  };
}

/**
 * The process that started the one of a connection; undefined when it is not on this machine.
 * @param {string} url
 */
export async function findServerProcess(url) {
  return withClient(url, async (client) => {
    const { rows } = await client.query('SELECT pg_backend_pid() AS id');
    const { id } = rows[0];
    if (!existsSync(`/proc/${id}/stat`)) return undefined;
    const { name, parent } = readProcess(id);
    return name.startsWith('postgres') ? parent : undefined;
  });
}

/** Seconds that a process has used. @param {number} id */
function readTime(id) {
  return readProcess(id).time;
}

/** Seconds that a process and its children have used, those that have ended included. @param {number} id */
export function readFamilyTime(id) {
  const listed = readFileSync(`/proc/${id}/task/${id}/children`, 'utf8');
  const children = listed.split(' ').filter((child) => child.trim());
  const { time, timeOfEnded } = readProcess(id);
  const ofChildren = children.map((child) => {
    try {
      return readTime(Number(child));
    } catch {
      return 0; // it has just ended
    }
  });
  return ofChildren.reduce((sum, seconds) => sum + seconds, time + timeOfEnded);
}

/** Linux counts in ticks of this many to the second, whatever its clock runs at. */
const ticks = 100;

/** @param {number} id */
function readProcess(id) {
  const text = readFileSync(`/proc/${id}/stat`, 'utf8');
  // The name is in brackets and may hold any character, brackets too.
  const end = text.lastIndexOf(')');
  const fields = text
    .slice(end + 2)
    .split(' ')
    .map(Number);
  const [parent = 0] = fields.slice(1);
  const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(11);
  return {
    name: text.slice(text.indexOf('(') + 1, end),
    parent,
    time: (user + system) / ticks,
    timeOfEnded: (endedUser + endedSystem) / ticks,
  };
}
