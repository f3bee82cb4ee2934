// One run: opens the server, fills the databases, validates the systems, compares, reports.
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { drawChart } from './chart.js';
import { compare, secondsOf } from './compare.js';
import { deepPageOf, listComparisons } from './comparisons.js';
import {
  canCheckpoint,
  openFilledDatabase,
  openServer,
  setPeerIndexes,
  urlOf,
} from './database.js';
import { UsageError } from './options.js';
import { findServerProcess } from './processor.js';
import { formatNumber, formatTable, isNoisy } from './report.js';
import { planServer } from './servers.js';
import { planSystems, startGateway, startSystems, validate } from './systems.js';

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

/** @param {Options} options */
export async function run(options) {
  try {
    await measure(options);
  } finally {
    await closeAll();
  }
}

/** @param {Options} options */
async function measure(options) {
  const start = performance.now();
  const server = await openServer();
  opened.push(server.close);
  const { rows } = options;
  const machine = `${availableParallelism()} cores, ${cpus()[0]?.model ?? 'unknown processor'}, Node ${process.version}, PostgreSQL ${server.version}`;
  console.log(machine);

  const systems = planSystems();
  /** @param {number} outfits */
  const planTable = (outfits, uncached = planServer()) => ({
    rows: outfits,
    url: urlOf(server, outfits),
    uncached,
  });
  const large = planTable(rows, systems.uncached);
  const small = planTable(rows >= 100_000 ? 10_000 : Math.floor(rows / 10));
  const huge = options.tenMillion ? planTable(10_000_000) : undefined;
  const found = {
    process: await findServerProcess(server.url),
    canCheckpoint: await canCheckpoint(server),
  };
  const chosen = listComparisons(systems, large, small, huge, found).filter(
    ({ name }) => options.only.length === 0 || options.only.some((part) => name.includes(part)),
  );
  if (chosen.length === 0) throw new UsageError('No comparison has in its name what --only says.');
  console.log(announce(options, chosen.length));

  await fill(large);
  await setPeerIndexes(large.url, true);
  opened.push(await startSystems(systems, large.url, rows));
  for (const table of huge ? [small, huge] : [small]) {
    await fill(table);
    Object.assign(table.uncached, await startGateway(table.url, '0'));
    opened.push(table.uncached.close);
  }
  await validate(systems, deepPageOf(rows));
  console.log('all systems answer with the same bytes');

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

  /** @param {typeof large} table */
  async function fill({ rows: outfits }) {
    process.stdout.write(`${outfits.toLocaleString('en')} outfits:`);
    const drop = await openFilledDatabase(server, outfits, options.keep, (done) => {
      process.stdout.write(` ${done} ...`);
    });
    opened.push(drop);
    process.stdout.write('\n');
  }
}

/**
 * What a run will take, as measured on two cores: 30 s to start all systems and to compare their answers, a second
 * for each 13,000 outfits, the rounds, and 15 % of them for requests that a round still waits for.
 * @param {Options} options
 * @param {number} comparisons
 */
function announce(options, comparisons) {
  const { rows, seconds, pairs, tenMillion } = options;
  const outfits = rows + (tenMillion ? 10_000_000 : 0);
  const minutes = (30 + outfits / 13_000 + comparisons * secondsOf(options) * 1.15) / 60;
  return `${comparisons} comparisons, ${pairs} rounds of ${seconds} s of each side, ${outfits.toLocaleString('en')} outfits: about ${Math.ceil(minutes)} minutes`;
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
