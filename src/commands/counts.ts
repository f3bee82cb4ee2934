// npm run counts: checks the bucket counts against the outfits, or counts anew. See counting.md.
import '../node-version.ts';
import { ConfigError, readConfig } from '../config.ts';
import { describeError, openPreparedDatabase } from './cli.ts';

const help = `Usage: npm run counts -- check|rebuild

check    compares the counts that pages are found by with the outfits themselves; writes nothing
rebuild  counts all outfits anew; writers wait meanwhile, readers do not

The database is that of DATABASE_URL, or the embedded one in DATA_DIR.

Exit code: 0 all counts are right (check) or have been rebuilt, 1 some are wrong, 2 it failed.
`;

/** Milliseconds between two signs of life. */
const signInterval = 5_000;

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${describeError(error)}\n`);
  process.exitCode = 2;
}

async function main(words: readonly string[]): Promise<number> {
  const [command, ...others] = words;
  if (command === '--help' || command === '-h') {
    process.stdout.write(help);
    return 0;
  }
  if ((command !== 'check' && command !== 'rebuild') || others.length > 0) {
    throw new ConfigError('Give either "check" or "rebuild": see --help.');
  }
  const database = await openPreparedDatabase(readConfig(process.env));
  const client = await database.pool.connect();
  // A lost connection fails the statement; without a listener it would end the process as well.
  client.on('error', () => {});
  try {
    // Ten million outfits take longer than any request may.
    await client.query('SET statement_timeout = 0');
    if (command === 'rebuild') {
      const seconds = await withSigns('counting all outfits', () =>
        client.query('SELECT rebuild_outfit_counts()'),
      );
      process.stdout.write(`${database.description}: counted anew in ${seconds} s.\n`);
      return 0;
    }
    let wrong = 0;
    const seconds = await withSigns('comparing', async () => {
      const { rows } = await client.query<{ wrong: number }>(
        'SELECT count(*)::int AS wrong FROM check_outfit_counts()',
      );
      wrong = rows[0]?.wrong ?? 0;
    });
    process.stdout.write(
      wrong === 0
        ? `${database.description}: all counts are right (${seconds} s).\n`
        : `${database.description}: ${wrong} bucket(s) differ (${seconds} s): run "npm run counts -- rebuild".\n`,
    );
    return wrong === 0 ? 0 : 1;
  } finally {
    // Not back into the pool: it has no time-out any more.
    client.release(true);
    await database.close();
  }
}

/** Shows that long work goes on; gives the seconds that it took. */
async function withSigns(name: string, work: () => Promise<unknown>): Promise<string> {
  const start = Date.now();
  const seconds = () => ((Date.now() - start) / 1000).toFixed(1);
  process.stdout.write(`${name} ...\n`);
  const timer = setInterval(() => {
    process.stdout.write(`${name}: ${seconds()} s so far ...\n`);
  }, signInterval);
  try {
    await work();
    return seconds();
  } finally {
    clearInterval(timer);
  }
}
