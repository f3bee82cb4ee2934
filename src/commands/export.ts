// outfit-gateway export: writes the whole listing in the formats that the import reads.
import { existsSync } from 'node:fs';
import { Option } from 'commander';
import { type Config, ConfigError, readConfig } from '../config/config.ts';
import { baseUrl, text } from '../config/values.ts';
import type { Database } from '../database/database.ts';
import { readOneSnapshot } from '../database/transaction.ts';
import { OperatorError } from '../errors.ts';
import { createOutfitList } from '../outfits/lists/list.ts';
import { formatTimestamp, parseTimestamp } from '../outfits/timestamps.ts';
import { streamLines, writeLines, writePages, writeWhole } from '../transfer/export/forms.ts';
import { readTable } from '../transfer/export/likes-and-users.ts';
import { readRecords } from '../transfer/export/records.ts';
import { formatNumber, Reporter } from '../transfer/reporter.ts';
import { type Io, withDatabase } from './command.ts';
import { as, createLine } from './options/command-line.ts';

const timestamp = text
  .transform((value) => parseTimestamp(value))
  .refine((moment) => moment !== undefined)
  .transform((moment) => formatTimestamp(moment))
  .describe('a UTC timestamp such as 2026-11-22T08:00:00Z');

export const line = () =>
  createLine('export')
    .description(
      'Writes the whole listing, private outfits too, from the database that DATABASE_URL or DATA_DIR names, in a form that "outfit-gateway import" reads. All of it is one snapshot: writes meanwhile are not in it.',
    )
    .argument(
      '<TARGET>',
      `FILE: one record per line, its name ends in .ndjson or .jsonl, also with .gz
FOLDER: pages, byte for byte as GET answers with them, page-1.json and so on, PAGE_SIZE records each, links below --base or PUBLIC_URL
-: standard output, one record per line (in a checkout "npm run -s export -- -")`,
    )
    .option(
      '--since <TIMESTAMP>',
      'only what was created or modified after it, such as 2026-11-22T08:00:00Z; for lines, not for pages',
      as(timestamp),
    )
    .option(
      '--base <URL>',
      'base of the links of pages, such as https://shop.example.com',
      as(baseUrl),
    )
    .addOption(
      new Option('--likes', 'write who likes what instead, for import --likes').conflicts([
        'users',
        'since',
      ]),
    )
    .addOption(
      new Option('--users', 'write the users instead, for import --users').conflicts('since'),
    )
    .option('--overwrite', 'replace what an earlier export has written there')
    .addHelpText(
      'after',
      `
The file or folder is there once it is whole, and not before. Records have likes as their number: --likes
says who gave them, and --users has users without outfits. Keys of repeatable requests stay behind.`,
    );

interface Values {
  readonly likes?: boolean;
  readonly users?: boolean;
  readonly since?: string;
  readonly base?: string;
  readonly overwrite?: boolean;
}

export async function run(io: Io, values: Values, [target = '']: readonly string[]) {
  const config = readConfig(io.env);
  const request = readRequest(target, values, config);
  return withDatabase(config, async (database) => {
    const reporter = new Reporter(io.stderr);
    const start = performance.now();
    const written = await writeExport(database, config, request, io, reporter).finally(() =>
      reporter.finish(),
    );
    const seconds = (performance.now() - start) / 1000;
    const [place, output] =
      request.form === 'stream' ? ['standard output', io.stderr] : [target, io.stdout];
    const rate = formatNumber(written / seconds);
    output.write(
      `${formatNumber(written)} records written to ${place} in ${seconds.toFixed(1)} s (${rate} per second).\n`,
    );
    return 0;
  });
}

type Request = ReturnType<typeof readRequest>;

/** @throws ConfigError for options that do not go together */
function readRequest(target: string, values: Values, { publicUrl }: Config) {
  const { since, overwrite = false } = values;
  const form =
    target === '-' ? 'stream' : /\.(?:ndjson|jsonl)(?:\.gz)?$/i.test(target) ? 'lines' : 'pages';
  const base = values.base ?? publicUrl ?? '';
  const rows = values.likes ? 'likes' : values.users ? 'users' : undefined;
  const wrong =
    form === 'pages'
      ? (rows && `--${rows} needs lines, such as ${rows}.ndjson.`) ||
        (/\.(?:json|gz|zip|tar|csv|txt)$/i.test(target) &&
          `${target} may end in .ndjson or .jsonl (or .gz of these), or be the name of a folder.`) ||
        (since !== undefined &&
          '--since needs lines, such as changes.ndjson: pages have the count and links of a whole listing.') ||
        (base === '' &&
          'Pages need a base for their links: add --base https://shop.example.com, or set PUBLIC_URL.')
      : values.base !== undefined && '--base is for pages: lines have no links.';
  if (wrong) throw new ConfigError(wrong);
  return { target, form, since, base, overwrite, rows } as const;
}

async function writeExport(
  database: Database,
  config: Config,
  { target, form, since, base, overwrite, rows }: Request,
  { signal, data }: Io,
  reporter: Reporter,
): Promise<number> {
  let written = 0;
  const writeFrom = (write: (records: Records, count: number) => Promise<void>) =>
    readOneSnapshot(database.pool, signal, async (read) => {
      const count = rows ? 0 : await createOutfitList(read, { private: 'all' }).count();
      const total = since === undefined ? count : undefined;
      const source = rows ? readTable(read, rows) : readRecords(database, read, config, since);
      const records = withProgress(source, signal, (number) => {
        written = number;
        reporter.progress(number, total);
      });
      await write(records, count);
    });

  if (form === 'stream') {
    if (!data) throw new TypeError('The output is not a stream.');
    await writeFrom((records) => streamLines(records, data));
  } else {
    const compressed = target.toLowerCase().endsWith('.gz');
    const { pageSize } = config;
    await writeWhole(target, overwrite, async (path) => {
      await writeFrom((records, count) =>
        form === 'lines'
          ? writeLines(records, path, { name: target, compressed })
          : writePages(records, path, { name: target, base, pageSize, count }),
      );
      if (written > 0 || since !== undefined || !overwrite || !existsSync(target)) return;
      throw new OperatorError(
        `There is no record to export, so ${target} stays as it is: remove it for an empty export.`,
      );
    });
  }
  return written;
}

type Records = AsyncGenerator<readonly Buffer[]>;

/** Passes records on until the signal, and reports their number so far. */
async function* withProgress(
  source: Records,
  signal: AbortSignal,
  onRead: (number: number) => void,
): Records {
  let number = 0;
  for await (const records of source) {
    signal.throwIfAborted();
    yield records;
    number += records.length;
    onRead(number);
  }
}
