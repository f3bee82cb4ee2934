// Commands called as functions, with what they print.
import { Readable, Writable } from 'node:stream';
import { type Command, runCommand } from '../../../src/commands/command.ts';

export interface CommandRun {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Printed every five seconds: only a busy machine takes so long. */
const progress = /^[\d,]+ records read, [\d,]+ per second(?:, \d+ %)?\n$/;

class Printed extends Writable {
  text = '';
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    if (!progress.test(chunk.toString())) this.text += chunk;
    done();
  }
  /** Resolves when it matches so many times. */
  async until(pattern: RegExp, times = 1): Promise<void> {
    while ((this.text.match(new RegExp(pattern, 'g')) ?? []).length < times) {
      await new Promise((settle) => setTimeout(settle, 20));
    }
  }
}

/** @param input what comes from standard input */
export function startCommand(
  command: Command,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  input: string | Buffer = '',
) {
  const [stdout, stderr, stopping] = [new Printed(), new Printed(), new AbortController()];
  const stdin = Readable.from([Buffer.from(input)], { objectMode: false });
  const { signal } = stopping;
  const ended = runCommand(command, { args, env, stdin, stdout, stderr, signal });
  return { stdout, stderr, ended, stop: () => stopping.abort() };
}

export async function callCommand(
  ...started: Parameters<typeof startCommand>
): Promise<CommandRun> {
  const { stdout, stderr, ended } = startCommand(...started);
  return { code: await ended, stdout: stdout.text, stderr: stderr.text };
}
