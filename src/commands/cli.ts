// The process of every command: node dist/commands/cli.js NAME ... runs the one of that name.
import '../node-version.ts';
import { type Command, runCommand } from './command.ts';

/** Loaded when asked for: most need little of what the others do. */
const commands: Readonly<Record<string, () => Promise<Command>>> = {
  import: () => import('./import.ts'),
  verify: () => import('./verify.ts'),
  migrate: () => import('./migrate.ts'),
  counts: () => import('./counts.ts'),
  token: () => import('./token.ts'),
};

const help = `Usage: npm run COMMAND -- ...

Commands: ${Object.keys(commands).join(', ')}. Each says more with --help.
`;

const [name = '', ...args] = process.argv.slice(2);
const load = Object.hasOwn(commands, name) ? commands[name] : undefined;

// Once each: a second signal ends the process at once.
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());

if (load) {
  const { env, stdin, stdout, stderr } = process;
  const io = { args, env, stdin, stdout, stderr, signal: stop.signal };
  process.exitCode = await runCommand(await load(), io);
} else if (name === '--help' || name === '-h') {
  process.stdout.write(help);
} else {
  process.stderr.write(`There is no command ${JSON.stringify(name)}: see --help.\n`);
  process.exitCode = 2;
}
// A page that is still being fetched, or a standard input that stays open, would keep it running.
process.exit();
