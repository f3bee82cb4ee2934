// outfit-gateway export: writes the complete listing in the formats that the import reads.
import { existsSync } from 'node:fs';
import { type Config, ConfigError, readConfig } from '../config/config.ts';
import { text } from '../config/values.ts';
import type { Database } from '../database/database.ts';
import { readOneSnapshot } from '../database/transaction.ts';
import { OperatorError } from '../errors.ts';
import { createOutfitList } from '../outfits/lists/list.ts';
import { formatTimestamp, parseTimestamp } from '../outfits/timestamps.ts';
import { streamLines, writeFile } from '../transfer/export/lines.ts';
import { readRecords, readTable } from '../transfer/export/records.ts';
import { formatNumber, Reporter } from '../transfer/reporter.ts';
import { type Io, withDatabase } from './command.ts';
import { createLine, flag, option, type ValuesOf } from './options/command-line.ts';

const timestamp = text
  .transform((value) => parseTimestamp(value))
  .refine((moment) => moment !== undefined)
  .transform((moment) => formatTimestamp(moment))
  .describe('a UTC timestamp such as 2026-11-22T08:00:00Z');

const options = {
  since: option(
    '--since <TIMESTAMP>',
    'only what was created or modified after it, such as 2026-11-22T08:00:00Z',
    timestamp,
  ),
  likes: flag('--likes', 'write who likes what instead, for import --likes').conflicts([
    'users',
    'since',
  ]),
  users: flag('--users', 'write the users instead, for import --users').conflicts('since'),
  overwrite: flag('--overwrite', 'replace the file'),
};
type Values = ValuesOf<typeof options>;

export const line = () =>
  createLine('export', options)
    .description(
      'Writes the complete listing, private outfits too, from the database that DATABASE_URL or DATA_DIR names, in a form that "outfit-gateway import" reads. All of it is one snapshot: writes meanwhile are not in it.',
    )
    .argument(
      '<TARGET>',
      `FILE: one record per line, byte for byte as GET answers with it; its name ends in .ndjson or .jsonl, also with .gz
-: standard output (in a checkout "npm run -s export -- -")`,
    )
    .addHelpText(
      'after',
      `
The file appears when it is complete. Records have likes as their number: --likes says
who gave them, and --users has users without outfits. Keys of repeatable requests are not exported.`,
    );

export async function run(io: Io, values: Values, [target = '']: readonly string[]) {
  const config = readConfig(io.env);
  if (target !== '-' && !/\.(?:ndjson|jsonl)(?:\.gz)?$/i.test(target)) {
    throw new ConfigError(`${target} must end in .ndjson or .jsonl, or .gz of these.`);
  }
  return withDatabase(config, async (database) => {
    const reporter = new Reporter(io.stderr);
    const start = performance.now();
    const written = await writeExport(database, config, target, values, io, reporter).finally(() =>
      reporter.finish(),
    );
    const seconds = (performance.now() - start) / 1000;
    const [place, output] = target === '-' ? ['standard output', io.stderr] : [target, io.stdout];
    const rate = formatNumber(written / seconds);
    output.write(
      `${formatNumber(written)} records written to ${place} in ${seconds.toFixed(1)} s (${rate} per second).\n`,
    );
    return 0;
  });
}

async function writeExport(
  database: Database,
  config: Config,
  target: string,
  { likes, users, since, overwrite = false }: Values,
  { signal, data }: Io,
  reporter: Reporter,
): Promise<number> {
  let written = 0;
  const rows = likes ? 'likes' : users ? 'users' : undefined;
  await readOneSnapshot(database.pool, signal, async (read) => {
    const isCounted = rows === undefined && since === undefined;
    const total = isCounted ? await createOutfitList(read, { private: 'all' }).count() : undefined;
    const source = rows ? readTable(read, rows) : readRecords(database, read, config, since);
    async function* readAll() {
      for await (const records of source) {
        signal.throwIfAborted();
        yield records;
        written += records.length;
        reporter.progress(written, total);
      }
    }
    if (target !== '-') {
      await writeFile(readAll(), target, overwrite, () => {
        if (written > 0 || since !== undefined || !overwrite || !existsSync(target)) return;
        throw new OperatorError(
          `There is no record to export, so ${target} stays as it is: remove it for an empty export.`,
        );
      });
    } else await streamLines(readAll(), data);
  });
  return written;
}
