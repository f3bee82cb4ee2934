// npm run counts: checks the bucket counts against the outfits, or counts anew. See counting.md.
import type pg from 'pg';
import { ConfigError, readConfig } from '../config.ts';
import { type Io, readArguments, untilAborted } from './command.ts';
import { withDatabase } from './database.ts';

export const help = `Usage: npm run counts -- check|rebuild

check    compares the counts that pages are found by with the outfits themselves; writes nothing
rebuild  counts all outfits anew; writers wait meanwhile, readers do not

The database is that of DATABASE_URL, or the embedded one in DATA_DIR.

Exit code: 0 all counts are right (check) or have been rebuilt, 1 some are wrong, 2 it failed,
130 it was interrupted.
`;

/** Milliseconds between two signs of life. */
const signInterval = 5_000;

export const failureCode = 2;

export async function run(io: Io): Promise<number> {
  const { words } = readArguments(io, {}, true);
  const [task, ...others] = words;
  if ((task !== 'check' && task !== 'rebuild') || others.length > 0) {
    throw new ConfigError('Give either "check" or "rebuild": see --help.');
  }
  return withDatabase(readConfig(io.env), async ({ pool, description }) => {
    const client = await pool.connect();
    // A lost connection fails the statement; without a listener it would end the process as well.
    client.on('error', () => {});
    try {
      // Ten million outfits take longer than any request may.
      await client.query('SET statement_timeout = 0');
      return await (task === 'check' ? check : rebuild)(client, description, io);
    } finally {
      // Not back into the pool: it has no time-out any more, and may still be at work.
      client.release(true);
    }
  });
}

async function check(client: pg.PoolClient, description: string, io: Io): Promise<number> {
  const { result, seconds } = await withSigns('comparing', io, () =>
    client.query<{ wrong: number }>('SELECT count(*)::int AS wrong FROM check_outfit_counts()'),
  );
  const wrong = result.rows[0]?.wrong ?? 0;
  io.stdout.write(
    wrong === 0
      ? `${description}: all counts are right (${seconds} s).\n`
      : `${description}: ${wrong} bucket(s) differ (${seconds} s): run "npm run counts -- rebuild".\n`,
  );
  return wrong === 0 ? 0 : 1;
}

async function rebuild(client: pg.PoolClient, description: string, io: Io): Promise<number> {
  const { seconds } = await withSigns('counting all outfits', io, () =>
    client.query('SELECT rebuild_outfit_counts()'),
  );
  io.stdout.write(`${description}: counted anew in ${seconds} s.\n`);
  return 0;
}

/** Shows that long work goes on; gives its result and the seconds that it took. */
async function withSigns<Result>(
  name: string,
  { stdout, signal }: Io,
  work: () => Promise<Result>,
): Promise<{ readonly result: Result; readonly seconds: string }> {
  const start = Date.now();
  const seconds = () => ((Date.now() - start) / 1000).toFixed(1);
  stdout.write(`${name} ...\n`);
  const timer = setInterval(() => {
    stdout.write(`${name}: ${seconds()} s so far ...\n`);
  }, signInterval);
  try {
    const result = await untilAborted(work(), signal);
    return { result, seconds: seconds() };
  } finally {
    clearInterval(timer);
  }
}
