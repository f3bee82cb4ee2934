// Commands called as functions, with what they print.
import { Readable } from 'node:stream';
import { type Command, runCommand } from '../src/commands/command.ts';

export interface CommandRun {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

class Printed {
  text = '';
  write(text: string): void {
    this.text += text;
  }
}

/** @param input what comes from standard input */
export async function callCommand(
  command: Command,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  input: string | Buffer = '',
): Promise<CommandRun> {
  const [stdout, stderr] = [new Printed(), new Printed()];
  const code = await runCommand(command, {
    args,
    env,
    stdin: Readable.from([Buffer.from(input)], { objectMode: false }),
    stdout,
    stderr,
    signal: new AbortController().signal,
  });
  return { code, stdout: stdout.text, stderr: stderr.text };
}
