// Runs the command that the command line names, as this process.
import { abortOnSignal, endOnSignal } from '../signals.ts';
import type { Command } from './command.ts';
import { createLine, parseLine } from './options.ts';

/** Loaded when asked for: most need little of what the others do. */
const commands: Readonly<Record<string, readonly [summary: string, () => Promise<Command>]>> = {
  start: ['starts the gateway; this is what happens without a command', () => import('./start.ts')],
  migrate: ['brings the database to the current migrations', () => import('./migrate.ts')],
  import: ['reads an existing listing into the database', () => import('./import.ts')],
  verify: ['compares a listing with what this service answers', () => import('./verify.ts')],
  replay: [
    'asks the old service and this one what apps have asked, and compares',
    () => import('./replay.ts'),
  ],
  export: [
    'writes the whole listing in the forms that the import reads',
    () => import('./export.ts'),
  ],
  token: ['prints a bearer token for local use', () => import('./token.ts')],
  counts: ['checks or repairs the counts that pages are found by', () => import('./counts.ts')],
};

const after = `
Each says more with --help; "outfit-gateway start --help" lists the settings. A setting is an option
such as --port 8080, a variable such as PORT=8080, or a line in the file .env, and wins in this order.

In a checkout of the sources, "npm start" and "npm run COMMAND -- ..." do the same.

Exit code: 0 it is done, 1 it failed, 2 the command line is wrong, 130 it was interrupted. Where 1 is
an answer, such as "something differs", 2 is also what failed: the help of the command says so.`;

await main(process.argv.slice(2));

async function main(words: readonly string[]): Promise<void> {
  const [first = 'start'] = words;
  const isOfProgram = ['--help', '-h', '--version'].includes(first);
  if (Object.hasOwn(commands, first)) await runNamed(first, words.slice(1));
  else if (first.startsWith('-') && !isOfProgram) await runNamed('start', words);
  else {
    const program = createLine('').usage('[COMMAND] [options]').addHelpText('after', after);
    for (const [name, [summary]] of Object.entries(commands)) {
      program.command(name).helpOption(false).summary(summary);
    }
    process.exitCode = parseLine(program, [first], process) ?? 0;
  }
}

async function runNamed(name: string, args: readonly string[]): Promise<void> {
  const isService = name === 'start';
  if (isService) endOnSignal();
  const signal = isService ? new AbortController().signal : abortOnSignal();
  const [command, { runCommand }, { loadEnvFile }] = await Promise.all([
    commands[name]?.[1](),
    import('./command.ts'),
    import('../env-file.ts'),
  ]);
  if (!command) return;
  const { env, stdin, stdout, stderr } = process;
  const io = { args, env, stdin, stdout, stderr, signal };
  const code = await runCommand(command, io, loadEnvFile);
  // A page that is still being fetched, or a standard input that stays open, would keep it running.
  process.exit(code);
}
