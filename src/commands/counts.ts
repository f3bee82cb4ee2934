// outfit-gateway counts: checks or rebuilds the data that is derived from outfits. See docs/counting.md and filters.md.
// In SQL: functions of the database.
import { Argument } from 'commander';
import type pg from 'pg';
import { readConfig } from '../config/config.ts';
import { commandText } from '../config/package.ts';
import { inTransaction } from '../database/transaction.ts';
import { checkTriggers } from '../outfits/counts.ts';
import { type Io, requireSession, untilAborted, withDatabase } from './command.ts';
import { createLine } from './options/command-line.ts';

export const line = () =>
  createLine('counts')
    .description(
      `check compares the rows of likes, the counts that pages are found by, and the texts that are searched with the outfits themselves, and looks at the triggers that keep them; it writes nothing.

rebuild gives each outfit its row of likes where rows are missing or wrong, counts all outfits and writes all texts again, and enables the triggers that keep them; writers wait for the texts, readers do not.

The database is that of DATABASE_URL, or the embedded one in DATA_DIR.`,
    )
    .addArgument(new Argument('<TASK>', 'what to do').choices(['check', 'rebuild']))
    .addHelpText(
      'after',
      `
Exit code: 0 all is right (check) or has been rebuilt, 1 something is wrong, 2 it failed,
130 it was interrupted.`,
    );

const progressInterval = 5_000;

export const failureCode = 2;

export async function run(io: Io, _values: object, [task]: readonly string[]): Promise<number> {
  const config = readConfig(io.env);
  requireSession(config);
  return withDatabase(config, ({ pool, description }) =>
    (task === 'check' ? check : rebuild)(pool, description, io),
  );
}

/** Names the table, so that it is locked before the snapshot: TRUNCATE is not MVCC-safe. */
const lockFirst = '(SELECT count(*) FROM (SELECT FROM outfits LIMIT 1) o) >= 0';

const kept = [
  {
    // Rebuilt by the rebuild of counts.
    name: 'likes',
    unit: 'row(s) of likes',
    findWrong: `SELECT count(*)::int AS wrong FROM check_outfit_likes() WHERE ${lockFirst}`,
    rebuild: undefined,
  },
  {
    name: 'counts',
    unit: 'bucket(s)',
    findWrong: `SELECT count(*)::int AS wrong FROM check_outfit_counts() WHERE ${lockFirst}`,
    rebuild: 'SELECT rebuild_outfit_counts()',
  },
  {
    name: 'texts',
    unit: 'text(s)',
    findWrong: `SELECT count(*)::int AS wrong FROM outfits o FULL JOIN outfit_texts t ON t.outfit_id = o.id
      WHERE (t.folded, t.hashtags) IS DISTINCT FROM
        (outfit_text(o.title, o.description), outfit_hashtags(o.title || E'\\n' || o.description))`,
    rebuild: 'SELECT rebuild_outfit_texts()',
  },
];

async function check(pool: pg.Pool, description: string, io: Io): Promise<number> {
  const say = (sentence: string) => void io.stdout.write(`${description}: ${sentence}.\n`);
  const advice = `run ${commandText('counts rebuild')}`;
  const problems = await checkTriggers(pool);
  for (const problem of problems) say(`${problem}: ${advice}`);
  let allWrong = problems.length;
  for (const { name, unit, findWrong } of kept) {
    const { rows, seconds } = await query<{ wrong: number }>(
      pool,
      findWrong,
      `comparing ${name}`,
      io,
    );
    const wrong = rows[0]?.wrong ?? 0;
    allWrong += wrong;
    if (wrong === 0) say(`all ${name} are right (${seconds} s)`);
    else say(`${wrong} ${unit} differ (${seconds} s): ${advice}`);
  }
  return allWrong === 0 ? 0 : 1;
}

async function rebuild(pool: pg.Pool, description: string, io: Io): Promise<number> {
  for (const { name, rebuild } of kept) {
    if (!rebuild) continue;
    const { seconds } = await query(pool, rebuild, `rebuilding ${name}`, io);
    io.stdout.write(`${description}: ${name} rebuilt in ${seconds} s.\n`);
  }
  return 0;
}

/** Runs a statement that may take long, and says so meanwhile. Closing the database cuts one that was interrupted. */
async function query<Row extends pg.QueryResultRow>(
  pool: pg.Pool,
  statement: string,
  name: string,
  { stdout, signal }: Io,
) {
  const start = performance.now();
  const seconds = () => ((performance.now() - start) / 1000).toFixed(1);
  stdout.write(`${name} ...\n`);
  const print = () => void stdout.write(`${name}: ${seconds()} s so far ...\n`);
  const timer = setInterval(print, progressInterval);
  const working = inTransaction(pool, (client) => client.query<Row>(statement));
  const { rows } = await untilAborted(working, signal).finally(() => clearInterval(timer));
  return { rows, seconds: seconds() };
}
