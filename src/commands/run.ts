// Runs the command that the command line names, with the environment and the file .env.
import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { allSettings, ConfigError } from '../config/config.ts';
import { messageOf } from '../errors.ts';
import { abortOnSignal, endOnSignal } from '../process/signals.ts';
import type { Command } from './command.ts';
import { createLine, parseLine } from './options/command-line.ts';

/** Each is imported on demand: most need few of the modules. */
const commands: Readonly<Record<string, readonly [summary: string, () => Promise<Command>]>> = {
  start: ['starts the gateway; this is what happens without a command', () => import('./start.ts')],
  migrate: ['brings the database to the current migrations', () => import('./migrate.ts')],
  check: ['tries all settings, and changes nothing', () => import('./check.ts')],
  import: ['reads an existing listing into the database', () => import('./import.ts')],
  verify: ['compares a listing with what this service answers', () => import('./verify.ts')],
  replay: [
    'sends the requests of apps to the old service and this one, and compares',
    () => import('./replay.ts'),
  ],
  export: [
    'writes the complete listing in the formats that the import reads',
    () => import('./export.ts'),
  ],
  token: ['prints a bearer token for local use', () => import('./token.ts')],
  forget: ['erases a user from the database', () => import('./forget.ts')],
  attach: [
    'lets the outfits here follow the tables of an old service',
    () => import('./attach.ts'),
  ],
  detach: ['ends what attach began', () => import('./detach.ts')],
  counts: ['checks or repairs the counts that pages are found by', () => import('./counts.ts')],
};

const after = `
Each says more with --help; "outfit-gateway start --help" lists the settings. A setting is an option
such as --port 8080, a variable such as PORT=8080, or a line in the file .env, and wins in this order.

In a checkout of the sources, "npm start" and "npm run COMMAND -- ..." do the same.

Exit code: 0 it is done, 1 it failed, 2 the command line or a setting is wrong, 130 it was interrupted.
Where 1 is an answer, such as "something differs", 2 is also what failed: the help of the command says so.`;

async function main(words: readonly string[]): Promise<void> {
  // A full disk, a closed reader: what cannot be said ends nothing half way. The exit code of a command tells it.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
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
  const [command, { runCommand }] = await Promise.all([
    commands[name]?.[1](),
    import('./command.ts'),
  ]);
  if (!command) return;
  const { env, stdin, stdout, stderr } = process;
  const io = { args, env, stdin, stdout, stderr, signal };
  const code = await runCommand(command, io, loadEnvFile);
  // A pending request or an open standard input would keep the process running.
  process.exit(code);
}

/** `NAME=value`; a value in quotes may go over lines. */
const assignment =
  /^[ \t]*(?:export[ \t]+)?[A-Za-z_][\w.-]*[ \t]*=[ \t]*(?:"[^"]*"|'[^']*'|`[^`]*`|(?!["'`])[^\n]*?)[ \t]*(?:#[^\n]*)?$/gm;

/** Variables of other programs: Compose, PostgreSQL, Node.js and OpenTelemetry. */
const foreign = /^(?:COMPOSE_|POSTGRES_|PG|NODE_|OTEL_)|^(?:TZ|NO_PROXY|HTTPS?_PROXY)$/i;

/** Reads `.env`, if it exists. Variables of the environment win. @throws ConfigError */
function loadEnvFile(): void {
  try {
    const text = readFileSync('.env', 'utf8')
      .replace(/^\uFEFF/, '')
      .replaceAll('\r\n', '\n');
    if (text.includes('\0')) throw new ConfigError('The file .env is not UTF-8: save it as UTF-8.');
    // Node.js ignores lines that it cannot parse, so that a setting would be missing.
    const rest = text.replace(assignment, (lines) => lines.replace(/[^\n]/g, ''));
    const wrong = rest.split('\n').findIndex((line) => /^\s*[^\s#]/.test(line));
    if (wrong !== -1) {
      throw new ConfigError(
        `Line ${wrong + 1} of .env is not NAME=value: correct it, or begin it with # to leave it out.`,
      );
    }
    for (const [name, value] of Object.entries(parseEnv(text))) {
      process.env[name] ??= value;
      if (foreign.test(name) || allSettings.some((one) => one.name === name)) continue;
      process.stderr.write(`.env sets ${name}, which is not a setting.\n`);
    }
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return;
    throw new ConfigError(
      `The file .env cannot be read (${messageOf(error)}): correct or remove it.`,
    );
  }
}

await main(process.argv.slice(2));
