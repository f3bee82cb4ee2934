// Absolute figures of one machine, for docs/sizing.md: `node bench/sizing.js [outfits]`, after `npm ci --prefix bench`; --write
// puts them into the page. Linux only, two minutes. The load generator and PostgreSQL share the machine.
import { randomInt } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, totalmem } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { openFilledDatabase, openServer, urlOf } from './database.js';
import { sendLoad } from './load.js';
import { measureOtherLoad } from './machine.js';
import { findServerProcess, readFamilyTime } from './processor.js';
import { graphqlList, records, restList } from './requests.js';
import { startServer } from './servers.js';
import { secret, signToken } from './tokens.js';

const args = process.argv.slice(2);
const outfits = Number(args.find((one) => /^\d+$/.test(one)) ?? 100_000);
const seconds = 5;
const connections = 64;
const likes = 200_000;

const server = await openServer();
const drop = await openFilledDatabase(server, outfits, false, (done) => console.log(`  ${done}`));
const url = urlOf(server, outfits);
const pool = new pg.Pool({ connectionString: url, max: 1, application_name: 'sizing' });
const database = await findServerProcess(url);
if (database === undefined) throw new Error('PostgreSQL must be on this machine, and Linux.');

/** @param {string} sql @returns {Promise<number>} the number that it gives */
const read = async (sql) => Number((await pool.query(sql)).rows[0].value);
const sizeOf = (/** @type {string} */ tables) =>
  read(`SELECT sum(pg_total_relation_size(oid)) AS value FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND ${tables}`);

/** @type {[figure: string, value: string][]} */
const figures = [];
const note = (/** @type {string} */ figure, /** @type {string} */ value) => {
  figures.push([figure, value]);
  console.log(`${figure}: ${value}`);
};
const rounded = (/** @type {number} */ value) => Number(value.toPrecision(2)).toLocaleString('en');

const bytes = await sizeOf("relname <> 'outfit_likes'");
note('Database, for each outfit', `${rounded(bytes / outfits)} bytes`);
await pool.query(
  `INSERT INTO outfit_likes (outfit_id, user_id, imported)
   SELECT o.id, u.id, true FROM (SELECT id FROM outfits ORDER BY id LIMIT ${likes / 100}) o
   CROSS JOIN (SELECT id FROM users ORDER BY id LIMIT 100) u`,
);
note(
  'Database, for each like',
  `${rounded((await sizeOf("relname = 'outfit_likes'")) / likes)} bytes`,
);

const settings = { DATABASE_URL: url, AUTH_JWT_SECRET: secret, LOG_LEVEL: 'error' };
const gateway = await startServer('../dist/server.js', settings);
const uncached = await startServer('../dist/server.js', { ...settings, CACHE_MAX_SIZE: '0' });
for (const { port } of [gateway, uncached]) {
  const ready = `http://127.0.0.1:${port}/health/ready`;
  while ((await fetch(ready).catch(() => undefined))?.status !== 200) await sleep(100);
}
note('Memory of a gateway that has just started', `${memoryOf(gateway, 'VmRSS')} MB`);

const pages = Math.floor(outfits / 20);
const token = await signToken(1);
const ids = (await pool.query('SELECT id FROM outfits')).rows.map(({ id }) => id);
const page = () => `?page=${1 + randomInt(pages)}`;
await measure('A REST page from memory', gateway, [restList()]);
await measure('A GraphQL list of 20 from memory', gateway, [graphqlList({ page: 2 })]);
await measure('A REST page from the database, any of all', uncached, () => restList(page()));
await measure('An outfit by GraphQL, from the database', uncached, () => {
  return records.outfit(ids[randomInt(ids.length)]).graphql;
});
const logBefore = await read(`SELECT pg_current_wal_lsn() - '0/0' AS value`);
const given = await measure('A like', gateway, () => {
  return records.like(ids[randomInt(ids.length)], token).graphql;
});
const log = (await read(`SELECT pg_current_wal_lsn() - '0/0' AS value`)) - logBefore;
note(
  'Log of PostgreSQL (WAL) for each like, with the complete pages after a checkpoint',
  `${rounded(log / given)} bytes`,
);
note('Most memory of that gateway', `${memoryOf(gateway, 'VmHWM')} MB`);
const used = await read(
  `SELECT count(*) AS value FROM pg_stat_activity WHERE datname = current_database() AND application_name <> 'sizing'`,
);
note(
  'Connections of a gateway, at most',
  `${rounded(used / 2)}, at `.concat('`DATABASE_POOL_MAX=10`'),
);

const machine = `${availableParallelism()} cores of ${cpus()[0]?.model ?? 'unknown'}, ${Math.round(totalmem() / 2 ** 30)} GB, Node.js ${process.version}, PostgreSQL ${server.version}, ${outfits.toLocaleString('en')} outfits, ${connections} connections`;
const otherLoad = Math.round(100 * (await measureOtherLoad()));
const table = [
  `Measured on ${machine}; other work took ${otherLoad} % of it.`,
  ...['', '| Figure | Value |', '| --- | --- |'],
  ...figures.map(([figure, value]) => `| ${figure} | ${value} |`),
].join('\n');
console.log(table);
if (args.includes('--write')) {
  const path = new URL('../docs/sizing.md', import.meta.url);
  const text = readFileSync(path, 'utf8');
  const marks = /(<!-- figures -->\n)[\s\S]*(<!-- end of figures -->)/;
  writeFileSync(
    path,
    text.replace(marks, (_all, begin, end) => `${begin}${table}\n${end}`),
  );
}
await pool.end();
for (const one of [gateway, uncached]) await one.close();
await drop();
await server.close();

/**
 * @param {string} what
 * @param {import('./servers.js').RunningServer} system
 * @param {import('./load.js').Requests} requests
 * @returns how many were answered
 */
async function measure(what, system, requests) {
  await sendLoad(system.port, requests, { connections, seconds: 1 });
  const time = () => [readFamilyTime(system.processId), readFamilyTime(Number(database))];
  const before = time();
  const { rate, milliseconds } = await sendLoad(system.port, requests, { connections, seconds });
  const [own = 0, ofDatabase = 0] = time().map((after, index) => {
    return ((after - (before[index] ?? 0)) * 1e6) / milliseconds.length;
  });
  const slow = milliseconds[Math.floor(milliseconds.length * 0.99)] ?? 0;
  note(
    what,
    `${rounded(rate)} a second; 1 in 100 takes ${rounded(slow)} ms or more; processor ${rounded(own)} µs, of the database ${rounded(ofDatabase)} µs`,
  );
  return milliseconds.length;
}

/** @param {import('./servers.js').RunningServer} system @param {string} kind */
function memoryOf({ processId }, kind) {
  const status = readFileSync(`/proc/${processId}/status`, 'utf8');
  return Math.round(Number(new RegExp(`${kind}:\\s+(\\d+)`).exec(status)?.[1]) / 1024);
}
