// What one sender makes others wait for: `node bench/beside.js [server.js]`, after `npm run build`. Linux only.
import { execFileSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { request } from 'node:http';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import pg from 'pg';
import { startEmbeddedPostgres } from '../test/support/databases/embedded-postgres.js';
import { startServer } from './servers.js';
import { secret, signToken } from './tokens.js';

/** Of another version, too. */
const dist = process.argv[2] ?? '../dist';
const seconds = 8;
/** As many objects as the limit allows. */
const outfits = Number(process.env['OUTFITS'] ?? 44);

const database = await startEmbeddedPostgres([]);
const cli = fileURLToPath(new URL(`${dist}/commands/cli.js`, import.meta.url));
execFileSync(process.execPath, [cli, 'migrate'], { env: { DATABASE_URL: database.url } });
const server = await startServer(`${dist}/server.js`, {
  DATABASE_URL: database.url,
  SEED: 'demo',
  LOG_LEVEL: 'error',
  AUTH_JWT_SECRET: secret,
  GRAPHQL_MAX_COST: process.env['GRAPHQL_MAX_COST'] ?? '',
});
const ready = `http://127.0.0.1:${server.port}/health/ready`;
while ((await fetch(ready).catch(() => undefined))?.status !== 200) {
  await new Promise((settle) => setTimeout(settle, 100));
}
const pool = new pg.Pool({ connectionString: database.url, max: 1 });
const { rows } = await pool.query('SELECT id FROM outfits ORDER BY id');
const ids = rows.map(({ id }) => id);

const graphql = (/** @type {string} */ query) => ({
  path: '/graphql',
  body: JSON.stringify({ query }),
});
const words = ['linen', 'denim', 'wool', 'summer', 'black', 'white', 'jacket', 'dress', 'shoes'];
const readers = {
  'page from memory': () => ({ path: '/api/outfits/?page=3', body: undefined }),
  'one record': () =>
    graphql(
      `{ a${randomInt(1e9)}: outfit(databaseId: ${ids[randomInt(ids.length)]}) { title user { username } } }`,
    ),
  search: () =>
    graphql(
      `{ a${randomInt(1e9)}: outfits(filter: { search: "${words[randomInt(words.length)]}" }) { count results { id title } } }`,
    ),
};

await report('nothing', async () => () => {});
await report('three likes a third of a second', async () => startLikes());
for (const connections of [1, 8, 64]) {
  await report(`${connections} connections of a heavy document`, async () =>
    startSender({ kind: 'connections', connections }),
  );
}
await report('a WebSocket of 200 heavy subscriptions, and the likes', async () => {
  const stop = await startSender({ kind: 'socket', connections: 200 });
  const stopLikes = startLikes();
  return () => {
    stopLikes();
    stop();
  };
});
await pool.end();
await server.close();
await database.close();
process.exit();

/** @param {string} name @param {() => Promise<() => void>} start */
async function report(name, start) {
  const stop = await start();
  await new Promise((settle) => setTimeout(settle, 2_000));
  const found = [];
  for (const [reader, next] of Object.entries(readers)) {
    const times = await read(next);
    const at = (/** @type {number} */ part) =>
      times[Math.floor((times.length - 1) * part)]?.toFixed(0);
    found.push(`${reader} ${at(0.5)} / ${at(0.99)} / ${at(1)} (${times.length})`);
  }
  console.log(`${name}: ${found.join(', ')}`);
  stop();
  await new Promise((settle) => setTimeout(settle, 3_000));
}

/** One client, one request at a time, ten milliseconds apart. @param {() => { path: string, body: string | undefined }} next */
async function read(next) {
  const times = [];
  const end = performance.now() + (seconds * 1000) / 3;
  while (performance.now() < end) {
    const { path, body } = next();
    const begun = performance.now();
    const sent = request({
      ...{ host: '127.0.0.1', port: server.port, path, method: body ? 'POST' : 'GET' },
      headers: body ? { 'content-type': 'application/json' } : {},
      agent: false,
    });
    sent.end(body);
    const [response] = await once(sent, 'response');
    let text = '';
    for await (const chunk of response) text += chunk;
    if (response.statusCode !== 200 || text.includes('"errors"')) throw new Error(text);
    times.push(performance.now() - begun);
    await new Promise((settle) => setTimeout(settle, 10));
  }
  return times.sort((a, b) => a - b);
}

/** @param {object} options */
async function startSender(options) {
  const workerData = { ...options, port: server.port, outfits };
  const thread = new Worker(fileURLToPath(new URL('beside-sender.js', import.meta.url)), {
    workerData,
  });
  thread.on('message', (text) => console.log(`  the other sender: ${text}`));
  await once(thread, 'online');
  return () => thread.postMessage('stop');
}

function startLikes() {
  const timer = setInterval(async () => {
    for (let count = 0; count < 3; count++) {
      const id = Buffer.from(`Outfit:${ids[randomInt(ids.length)]}`).toString('base64');
      const name = randomInt(2) ? 'likeOutfit' : 'unlikeOutfit';
      await fetch(`http://127.0.0.1:${server.port}/graphql`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${await signToken(1 + randomInt(9))}`,
          'content-type': 'application/json',
        },
        body: JSON.stringify({ query: `mutation { ${name}(id: "${id}") { outfit { likes } } }` }),
      }).catch(() => {});
    }
  }, 333);
  return () => clearInterval(timer);
}
