// What the probes of many gateways cost the primary: measured with 2, 20 and 200 of them, beside a model
// that is checked against what was measured, and then says what cannot be measured on one machine.
//
//   node bench/probes.js     after npm run build; about a minute
import pg from 'pg';
import { openServer, withClient } from './database.js';
import { findServerProcess, readFamilyTime } from './processor.js';
import { importMigrations, importSnapshots } from './source.js';

/** Requests per second of one gateway in a round, and how many gateways. */
const rounds = [
  { gateways: 2, rate: 5 },
  { gateways: 2, rate: 50 },
  { gateways: 2, rate: 500 },
  { gateways: 20, rate: 5 },
  { gateways: 20, rate: 50 },
  { gateways: 200, rate: 1 },
  { gateways: 200, rate: 5 },
];
const seconds = 5;

/** Gateways, requests per second of each, and milliseconds between a gateway and the primary. */
const asked = [2, 20, 200].flatMap((gateways) =>
  [10, 100, 1_000].map((rate) => ({ gateways, rate, roundTrip: 0.5 })),
);

const server = await openServer(['-c', 'max_connections=300']);
try {
  const url = new URL(server.url);
  url.pathname = '/probes';
  await withClient(server.url, (client) => client.query('CREATE DATABASE probes'));
  const { migrate } = await importMigrations();
  const pool = new pg.Pool({ connectionString: url.href, max: 1 });
  await migrate(pool, () => {});
  await pool.end();
  await measureAll(url.href);
} finally {
  await server.close();
}

/** @param {string} url */
async function measureAll(url) {
  const database = await findServerProcess(url);
  if (database === undefined) throw new Error('The processes of the database are not to be seen.');
  const first = await measure(url, database, { gateways: 2, rate: 200 });
  const { cost, duration } = first;
  console.log(
    `one probe costs the primary ${cost.toFixed(0)} µs of processor time, and takes ${duration.toFixed(2)} ms\n`,
  );
  console.log(
    'gateways  requests/s each  probes/s  of the model  cores of the primary  of the model',
  );
  for (const round of rounds) {
    const measured = await measure(url, database, round);
    const modelled = model({ ...round, roundTrip: measured.duration, cost });
    console.log(
      [
        String(round.gateways).padStart(8),
        String(round.rate).padStart(16),
        measured.probes.toFixed(0).padStart(9),
        modelled.probes.toFixed(0).padStart(13),
        measured.cores.toFixed(3).padStart(21),
        modelled.cores.toFixed(3).padStart(13),
      ].join(' '),
    );
  }
  console.log('\ngateways  requests/s each  probes/s  cores of the primary   (model)');
  for (const question of asked) {
    const { probes, cores } = model({ ...question, cost });
    console.log(
      `${String(question.gateways).padStart(8)} ${String(question.rate).padStart(16)} ${probes.toFixed(0).padStart(9)} ${cores.toFixed(2).padStart(21)}`,
    );
  }
}

/**
 * A gateway sends one probe at a time, and it serves all who came while the last one was under way. So a
 * gateway with `rate` requests per second sends one each `1 / rate + roundTrip` at most.
 * @param {{ gateways: number, rate: number, roundTrip: number, cost: number }} question milliseconds, microseconds
 */
function model({ gateways, rate, roundTrip, cost }) {
  const probes = gateways / (1 / rate + roundTrip / 1000);
  return { probes, cores: (probes * cost) / 1e6 };
}

/**
 * @param {string} url
 * @param {number} database the process that the others of the database were started by
 * @param {{ gateways: number, rate: number }} round
 */
async function measure(url, database, { gateways, rate }) {
  const { watchServer } = await importSnapshots();
  const all = Array.from({ length: gateways }, () => watchServer(() => new pg.Client(url), 10_000));
  let probes = 0;
  let waited = 0;
  for (const snapshots of all) {
    snapshots.observe((milliseconds) => {
      probes += 1;
      waited += milliseconds;
    });
  }
  await Promise.all(all.map((snapshots) => snapshots.next()));
  probes = 0;
  waited = 0;
  const before = readFamilyTime(database);
  const start = performance.now();
  await Promise.all(all.map((snapshots) => ask(snapshots, rate, start + seconds * 1000)));
  const passed = (performance.now() - start) / 1000;
  const spent = readFamilyTime(database) - before;
  await Promise.all(all.map((snapshots) => snapshots.close()));
  return {
    probes: probes / passed,
    duration: waited / probes,
    cores: spent / passed,
    cost: (spent * 1e6) / probes,
  };
}

/**
 * Requests that come at random, `rate` a second.
 * @param {import('../src/database/changes/snapshots.ts').Snapshots} snapshots
 * @param {number} rate
 * @param {number} end
 */
async function ask(snapshots, rate, end) {
  /** @type {Promise<unknown>[]} */
  const answered = [];
  for (let at = performance.now(); ; ) {
    at += (-Math.log(1 - Math.random()) * 1000) / rate;
    if (at >= end) break;
    const pause = at - performance.now();
    if (pause > 0) await new Promise((settle) => setTimeout(settle, pause));
    answered.push(snapshots.next());
  }
  await Promise.all(answered);
}
