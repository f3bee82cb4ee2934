// How fast others answer the same: `node bench/peers/measure.js [outfits]`, after `npm run build` and `npm ci --prefix bench`;
// --write puts the ratios into docs/compare.md. Of Django, Debian's packages: python3-djangorestframework,
// python3-graphene, python3-psycopg2, gunicorn. Five minutes.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { compare } from '../compare.js';
import { openFilledDatabase, openServer, setPeerIndexes, urlOf, withClient } from '../database.js';
import { fetchAnswer } from '../load.js';
import { findServerProcess, processorTime } from '../processor.js';
import { graphqlList, outfitFields, post, restList } from '../requests.js';
import { startProgram, startServer } from '../servers.js';
import { startGateway } from '../systems.js';

const { argv, version, platform, arch } = globalThis.process;
const args = argv.slice(2);
const outfits = Number(args.find((one) => /^\d+$/.test(one)) ?? 100_000);
const deep = Math.floor(outfits / 40);
const connections = 16;
const amount = { pairs: 4, seconds: 1 };
const postgraphileVersion = '5.1.5';
const laterNode = `node-${platform}-${arch}`;

/** @param {string} path */
const pathOf = (path) => fileURLToPath(new URL(path, import.meta.url));
const packages = pathOf('../partial/postgraphile');
if (!existsSync(`${packages}/node_modules/postgraphile`)) {
  // It needs a later Node.js than the gateway.
  const wanted = [`postgraphile@${postgraphileVersion}`, `${laterNode}@24`];
  const options = ['--no-save', '--no-package-lock', '--ignore-scripts', '--no-audit', '--no-fund'];
  spawnSync('npm', ['install', ...options, '--prefix', packages, ...wanted], { stdio: 'inherit' });
}

const server = await openServer();
const drop = await openFilledDatabase(server, outfits, false, (done) => console.log(`  ${done}`));
const url = urlOf(server, outfits);
const process = await findServerProcess(url);
await setPeerIndexes(url, true);
// A relation for PostGraphile: the table has no foreign key, since its rows come and go with those of the other.
await withClient(url, (client) =>
  client.query(
    `COMMENT ON TABLE outfit_like_counts IS E'@foreignKey (id) references outfits (id)'`,
  ),
);

const { hostname, port, username, password, pathname } = new URL(url);
const database = { PGHOST: hostname, PGPORT: port, PGUSER: username, PGPASSWORD: password };
const environment = { DATABASE_URL: url };
const cached = await startGateway(url, '');
const uncached = await startGateway(url, '0');
const mercurius = await startServer('peers/mercurius.js', environment);
const postgraphile = await startProgram(
  `${packages}/node_modules/${laterNode}/bin/node`,
  () => [pathOf('postgraphile.js')],
  { ...environment, POSTGRAPHILE: packages },
);
const workers = String(availableParallelism());
const django = await startProgram(
  '/usr/bin/python3',
  (own) => [
    ...['-m', 'gunicorn', '-b', `127.0.0.1:${own}`, '--workers', workers],
    ...['--threads', String(connections), '--keep-alive', '90', '--chdir', pathOf('django')],
    'app:application',
  ],
  { ...database, PGDATABASE: pathname.slice(1), PYTHONDONTWRITEBYTECODE: '1' },
);

const camel = `{ data: allOutfits(first: 20, offset: OFFSET, orderBy: [CREATED_DESC, ROW_ID_DESC]) {
  totalCount nodes { FIELDS }
} }`;
/** @param {number} page */
const postgraphilePage = (page) =>
  post({
    query: camel.replace('OFFSET', String((page - 1) * 20)).replace('FIELDS', ownFields),
  });
const ownFields = outfitFields
  .replaceAll(/ (?:backgroundImage|likes)\b/g, '')
  .replaceAll('id: databaseId', 'rowId')
  .replace('imageOriginalUrl', 'imageOriginalKey')
  .replace(' video ', ' videoKey ')
  .replace('user {', 'outfitLikeCountByRowId { likes } userByUserId {');

const rest = [restList(), restList(`?page=${deep}`)];
const graphql = [graphqlList(), graphqlList({ page: deep })];
const own = [postgraphilePage(1), postgraphilePage(deep)];
/** @type {[string, import('../servers.js').RunningServer, Buffer[], Buffer[]][]} name, requests to it, and to the gateway */
const peers = [
  ['Django REST Framework', django, rest, rest],
  ['Django with Graphene', django, graphql, graphql],
  ['PostGraphile', postgraphile, own, graphql],
  ['Mercurius, with the resolvers of the gateway', mercurius, graphql, graphql],
];

/** @type {string[]} */
const rows = [];
/** @type {number[]} */
const loads = [];
for (const [name, peer, requests, ours] of peers) {
  for (const [at, where] of ['first page', `page ${deep.toLocaleString('en')}`].entries()) {
    const [theirs, gateways] = [requests[at], ours[at]];
    if (!theirs || !gateways) continue;
    await assertSame(name, peer, theirs, gateways);
    const cells = [];
    for (const gateway of [uncached, cached]) {
      const { ratio, subject, otherLoad } = await compare(
        {
          ...{ name: where, against: 'gateway', unit: 'µs', target: undefined },
          subject: processorTime(name, peer, theirs, process, connections),
          reference: processorTime('gateway', gateway, gateways, process, connections),
        },
        amount,
        () => {},
      );
      const [median = '', least = '', most = ''] = [ratio.median, ratio.min, ratio.max].map(
        rounded,
      );
      if (cells.length === 0) cells.push(`${rounded(subject.median / 1000)} ms`);
      cells.push(`${median} (${least} to ${most})`);
      console.log(
        `${name}, ${where}: ${cells.at(-1)}, other load ${Math.round(100 * otherLoad)} %`,
      );
      loads.push(otherLoad);
    }
    rows.push(`| ${[`${name}, ${where}`, ...cells].join(' | ')} |`);
  }
}

const versions = spawnSync(
  '/usr/bin/python3',
  [
    '-c',
    'import django, rest_framework as r, graphene as g; print(f"Django {django.__version__}, Django REST Framework {r.VERSION}, Graphene {g.__version__}")',
  ],
  { encoding: 'utf8' },
).stdout.trim();
const bench = JSON.parse(readFileSync(pathOf('../package.json'), 'utf8'));
const others = Math.round(100 * Math.max(...loads));
const machine = `${availableParallelism()} cores of ${cpus()[0]?.model ?? 'unknown'}, Node.js ${version}, PostgreSQL ${server.version}, ${outfits.toLocaleString('en')} outfits, ${connections} connections`;
const table = [
  `Measured on ${machine}, ${new Date().toISOString().slice(0, 10)}; other work took up to ${others} % of it. ${versions} (gunicorn, ${workers} processes), PostGraphile ${postgraphileVersion}, Mercurius ${bench.dependencies.mercurius}; a gateway is one process.`,
  '',
  '| 20 outfits with their users, and the total | Processor time of a request, with PostgreSQL | Times that of the gateway without its cache | Times that of the gateway |',
  '| --- | --- | --- | --- |',
  ...rows,
].join('\n');
console.log(table);
if (args.includes('--write')) {
  const path = pathOf('../../docs/compare.md');
  const marks = /(<!-- ratios -->\n)[\s\S]*(<!-- end of ratios -->)/;
  const text = readFileSync(path, 'utf8');
  writeFileSync(
    path,
    text.replace(marks, (_all, begin, end) => `${begin}${table}\n${end}`),
  );
}
for (const one of [cached, uncached, mercurius, postgraphile, django]) await one.close();
await drop();
await server.close();

/** @param {number} value */
function rounded(value) {
  return Number(value.toPrecision(2)).toLocaleString('en');
}

/**
 * @param {string} name
 * @param {import('../servers.js').RunningServer} peer
 * @param {Buffer} theirs
 * @param {Buffer} ours
 * @throws AssertionError when the answers differ: all of them, or ids and total where the peer has names of its own
 */
async function assertSame(name, peer, theirs, ours) {
  const answers = [await fetchAnswer(peer.port, theirs), await fetchAnswer(uncached.port, ours)];
  for (const { status, body } of answers) assert.equal(status, 200, `${name}: ${body}`);
  const [other, own] = answers.map(({ body }) => JSON.parse(body.toString()));
  assert.equal(other.errors, undefined, JSON.stringify(other.errors));
  const page = other.data?.data;
  if (!page) return assert.deepEqual(other, own, name);
  const { count, results } = own.data.outfits;
  const ids = results.map((/** @type {{ id: number }} */ { id }) => id);
  const found = page.nodes.map((/** @type {{ rowId: number }} */ { rowId }) => rowId);
  assert.deepEqual([page.totalCount, found], [count, ids], name);
}
