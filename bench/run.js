// One run: opens the server, fills the databases, validates the systems, compares, reports.
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { drawChart } from './chart.js';
import { compare } from './compare.js';
import { deepPageOf, listComparisons } from './comparisons.js';
import { openFilledDatabase, openServer, setPeerIndexes } from './database.js';
import { readOptions, usage } from './options.js';
import { formatNumber, formatTable, isNoisy } from './report.js';
import { startGateway, startSystems, validate } from './systems.js';

/** @typedef {import('./options.js').Options} Options */
/** @typedef {import('./compare.js').Result} Result */

/** @type {(() => Promise<unknown>)[]} what has been opened, to be closed in reverse */
const opened = [];
const closeAll = async () => {
  for (const close of opened.splice(0).reverse()) await close();
};

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    console.log(`\n${signal}: cleaning up`);
    closeAll().finally(() => process.exit(1));
  });
}

try {
  await run(readOptions(process.argv.slice(2)));
} catch (error) {
  console.error(error);
  if (error instanceof Error && error.message.startsWith('--')) console.error(usage);
  process.exitCode = 1;
} finally {
  await closeAll();
}

/** @param {Options} options */
async function run(options) {
  const start = performance.now();
  const server = await openServer();
  opened.push(server.close);
  const { rows } = options;
  const machine = `${availableParallelism()} cores, ${cpus()[0]?.model ?? 'unknown processor'}, Node ${process.version}, PostgreSQL ${server.version}`;
  console.log(machine);

  const largeUrl = await fill(rows);
  await setPeerIndexes(largeUrl, true);
  const systems = await startSystems(largeUrl, rows);
  opened.push(systems.close);
  const large = { rows, url: largeUrl, uncached: systems.uncached };
  const small = await openTable(rows >= 100_000 ? 10_000 : Math.floor(rows / 10));
  const huge = options.tenMillion ? await openTable(10_000_000) : undefined;

  await validate(systems, deepPageOf(rows));
  console.log('all systems answer with the same bytes');

  const all = await listComparisons(systems, large, small, huge);
  const chosen = all.filter(
    ({ name }) => options.only.length === 0 || options.only.some((part) => name.includes(part)),
  );
  /** @type {Result[]} */
  const results = [];
  for (const [index, comparison] of chosen.entries()) {
    process.stdout.write(
      `[${index + 1}/${chosen.length}] ${comparison.name} / ${comparison.against}:`,
    );
    const showPair = (/** @type {number} */ ratio) => {
      process.stdout.write(` ${formatNumber(ratio)}`);
    };
    results.push(await compare(comparison, options, showPair));
    process.stdout.write('\n');
  }
  report(options, machine, results);
  console.log(`${Math.round((performance.now() - start) / 1000)} s`);

  /** @param {number} outfits */
  async function fill(outfits) {
    const name = `${outfits.toLocaleString('en')} outfits`;
    process.stdout.write(`${name}:`);
    const database = await openFilledDatabase(server, outfits, options.keep, (done) => {
      process.stdout.write(` ${done} ...`);
    });
    opened.push(database.close);
    process.stdout.write('\n');
    return database.url;
  }

  /** @param {number} outfits */
  async function openTable(outfits) {
    const url = await fill(outfits);
    const uncached = await startGateway(url, '0');
    opened.push(uncached.close);
    return { rows: outfits, url, uncached };
  }
}

/**
 * @param {Options} options
 * @param {string} machine
 * @param {readonly Result[]} results
 */
function report({ rows, seconds, pairs, publish }, machine, results) {
  console.log(`\n${formatTable(results)}\n`);
  const noisy = results.filter(isNoisy).length;
  if (noisy > 0) {
    console.log(
      `(!) ${noisy} of ${results.length} ratios were taken while other work was running.`,
    );
  }
  if (rows !== 1_000_000) console.log('The targets are meant for 1,000,000 outfits.');
  // README shows the published result, which a smoke test or a part must not replace.
  const folder = new URL(publish ? '.' : 'partial/', import.meta.url);
  mkdirSync(folder, { recursive: true });
  const write = (/** @type {string} */ name, /** @type {string} */ content) =>
    writeFileSync(new URL(name, folder), content);
  const title = `${rows.toLocaleString('en')} outfits, median of ${pairs} rounds of ${seconds} s`;
  write('result.svg', drawChart(title, results));
  const content = { date: new Date().toISOString(), machine, rows, seconds, pairs, results };
  write('result.json', `${JSON.stringify(content, null, 2)}\n`);
  console.log(`result.json and result.svg written to ${fileURLToPath(folder)}`);
}
