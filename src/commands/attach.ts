// outfit-gateway attach: lets users, outfits and likes follow the tables of an old service. See docs/attach.md.
import { Argument } from 'commander';
import { attach, installScripts } from '../attach/attach.ts';
import { attachedMapping } from '../attach/attachment.ts';
import { type Comparison, checkTriggers, compare } from '../attach/compare.ts';
import { readMapping } from '../attach/mapping.ts';
import { makeStatements } from '../attach/statements.ts';
import { ConfigError, readConfig } from '../config/config.ts';
import type { Database } from '../database/database.ts';
import { OperatorError } from '../errors.ts';
import { formatNumber, listFirst, type Output } from '../transfer/reporter.ts';
import { type Io, requireSession, untilAborted, withDatabase } from './command.ts';
import { createLine, flag, type ValuesOf } from './options/command-line.ts';

const options = {
  print: flag('--print', 'print the SQL, and run nothing'),
  prune: flag('--prune', 'remove the outfits here that the old tables do not have'),
};

export const line = () =>
  createLine('attach', options)
    .description(
      `Lets users, outfits and likes here follow the tables of an old service in the same PostgreSQL database: what a transaction of the old service changes is here when it commits. Nothing of its schema is altered but triggers. Run it again to mend what differs.

The mapping says how these tables are read; docs/attach.md has one for Django.`,
    )
    .addArgument(
      new Argument(
        '<MAPPING>',
        'file of the mapping, or check: compares both sides, and writes nothing',
      ),
    )
    .addHelpText(
      'after',
      `
Exit code: 0 both sides are equal, 1 something differs or cannot be represented here, 2 it failed,
130 it was interrupted: run it again, it goes on.`,
    );

export const failureCode = 2;

const progressInterval = 5_000;

export async function run(
  io: Io,
  { print, prune = false }: ValuesOf<typeof options>,
  [file = '']: readonly string[],
): Promise<number> {
  const config = readConfig(io.env);
  refuseEmbedded(config.databaseUrl);
  requireSession(config);
  const { stdout, signal, data } = io;
  return withDatabase(config, async ({ pool, description }: Database) => {
    if (file === 'check') {
      const mapping = await attachedMapping(pool);
      if (!mapping) throw new OperatorError(`Nothing is attached to the ${description}.`);
      const triggers = await checkTriggers(pool, mapping);
      for (const sentence of triggers) stdout.write(`${sentence}.\n`);
      const compared = compare(pool, await makeStatements(pool, mapping));
      return conclude(await untilAborted(compared, signal), stdout) + triggers.length && 1;
    }
    const mapping = readMapping(file);
    if (print) {
      const statements = await makeStatements(pool, mapping);
      for (const script of await installScripts(pool, mapping, statements)) {
        data.write(`BEGIN;\n${script}\nCOMMIT;\n\n`);
      }
      return 0;
    }
    let shown = performance.now();
    const comparison = await attach(pool, mapping, {
      signal,
      prune,
      onCopied(kind, rows, total) {
        if (performance.now() - shown < progressInterval) return;
        shown = performance.now();
        stdout.write(`${formatNumber(rows)} of about ${formatNumber(total)} ${kind} copied\n`);
      },
      onMended: (kind, rows) =>
        void stdout.write(`${formatNumber(rows)} ${kind} differed, and are mended\n`),
    });
    return conclude(comparison, stdout);
  });
}

export function refuseEmbedded(databaseUrl: string | undefined): void {
  if (databaseUrl !== undefined) return;
  throw new ConfigError(
    'The embedded database cannot have the tables of another service: set DATABASE_URL to the PostgreSQL database that has them.',
  );
}

function conclude(comparison: Comparison, stdout: Output): number {
  const { differences, problems } = comparison;
  for (const { kind, problem, rows, first } of problems) {
    stdout.write(
      problem === null
        ? `${formatNumber(rows)} ${kind} wait for a user or outfit that is not here.\n`
        : `${formatNumber(rows)} ${kind} cannot be carried over (${listFirst(first.map(String), rows, 3)}): ${problem}.\n`,
    );
  }
  const kinds = [...new Set(differences.map(({ kind }) => kind))];
  for (const kind of kinds) {
    const wrong = differences.filter((one) => one.kind === kind);
    const named = wrong.map(({ id, userId, found, columns }) =>
      [id, ...(kind === 'likes' ? ['by user', userId] : []), found, ...columns].join(' '),
    );
    stdout.write(
      `${formatNumber(wrong.length)} ${kind} differ: ${listFirst(named.slice(0, 5), wrong.length, 5)}.\n`,
    );
  }
  if (differences.length === 0) stdout.write('Both sides are equal.\n');
  return differences.length === 0 && problems.every(({ problem }) => problem === null) ? 0 : 1;
}
