// Runs the command that the command line names, as this process.
import { abortOnSignal, endOnSignal } from '../signals.ts';
import { version } from '../version.ts';
import type { Command } from './command.ts';
import { didYouMean } from './did-you-mean.ts';

/** Loaded when asked for: most need little of what the others do. */
const commands: Readonly<Record<string, () => Promise<Command>>> = {
  start: () => import('./start.ts'),
  migrate: () => import('./migrate.ts'),
  import: () => import('./import.ts'),
  verify: () => import('./verify.ts'),
  replay: () => import('./replay.ts'),
  export: () => import('./export.ts'),
  token: () => import('./token.ts'),
  counts: () => import('./counts.ts'),
};

const help = `Usage: outfit-gateway [COMMAND] [options]

Commands
  start    starts the gateway; this is what happens without a command
  migrate  brings the database to the current migrations
  import   reads an existing listing into the database
  verify   compares a listing with what this service answers
  replay   asks the old service and this one what apps have asked, and compares
  export   writes the whole listing in the forms that the import reads
  token    prints a bearer token for local use
  counts   checks or repairs the counts that pages are found by

Each says more with --help; "outfit-gateway start --help" lists the settings. A setting is an option
such as --port 8080, a variable such as PORT=8080, or a line in the file .env, and wins in this order.

  -h, --help   prints this
  --version    prints the version

In a checkout of the sources, "npm start" and "npm run COMMAND -- ..." do the same.
`;

await main(process.argv.slice(2));

async function main(words: readonly string[]): Promise<void> {
  const [first = 'start'] = words;
  if (first === '--help' || first === '-h') {
    process.stdout.write(help);
  } else if (first === '--version') {
    process.stdout.write(`${version}\n`);
  } else if (first.startsWith('-')) {
    await runNamed('start', words);
  } else if (Object.hasOwn(commands, first)) {
    await runNamed(first, words.slice(1));
  } else {
    const near = didYouMean(first, Object.keys(commands));
    process.stderr.write(`There is no command ${JSON.stringify(first)}${near}: see --help.\n`);
    process.exitCode = 2;
  }
}

async function runNamed(name: string, args: readonly string[]): Promise<void> {
  const isService = name === 'start';
  if (isService) endOnSignal();
  const signal = isService ? new AbortController().signal : abortOnSignal();
  const [command, { runCommand }, { loadEnvFile }] = await Promise.all([
    commands[name]?.(),
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
