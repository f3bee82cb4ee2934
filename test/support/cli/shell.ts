// A shell of its own, for commands as a person types them: what one exports, the next one has.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';

export class Shell {
  readonly #bash: ChildProcess;
  readonly #lines: Interface;
  readonly #folder: string;
  readonly #ended: Promise<never>;
  #commands = 0;

  /**
   * @param folder where it works
   * @param scratch a folder for what commands print
   * @param prelude commands before the first
   */
  constructor(folder: string, scratch: string, env: Record<string, string>, prelude = '') {
    this.#folder = scratch;
    this.#bash = spawn('bash', ['--noprofile', '--norc'], {
      cwd: folder,
      env: { PATH: process.env['PATH'], HOME: scratch, ...env },
      // It reports jobs that were ended there.
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    if (!this.#bash.stdout) throw new Error('The shell has no output.');
    this.#lines = createInterface({ input: this.#bash.stdout });
    this.#ended = once(this.#lines, 'close').then(() =>
      Promise.reject(new Error('The shell ended.')),
    );
    this.#ended.catch(() => {});
    // Each background job gets a process group of its own, which can be ended as a whole.
    this.#bash.stdin?.write(`set -m\n${prelude}\n`);
  }

  /** Runs commands to their end: what they print, and the first one that failed. */
  async run(command: string): Promise<{ output: string; failed: string }> {
    const file = this.#nextFile();
    const failed = await this.#ask(
      `failed=; trap 'failed=\${failed:-$BASH_COMMAND}' ERR
      eval ${quote(command)} > ${file} 2>&1 < /dev/null
      trap - ERR; echo "\${failed//$'\\n'/ }"`,
    );
    return { output: readFileSync(file, 'utf8'), failed };
  }

  /** Starts what goes on until it is ended. */
  async start(command: string): Promise<{ output(): string; end(): Promise<void> }> {
    const file = this.#nextFile();
    const pid = await this.#ask(
      `eval ${quote(`${command} &`)} > ${file} 2>&1 < /dev/null; echo $!`,
    );
    return {
      output: () => readFileSync(file, 'utf8'),
      end: async () => {
        await this.#ask(`kill -INT -- -${pid} 2> /dev/null; wait ${pid}; echo`);
      },
    };
  }

  async close(): Promise<void> {
    const ended = once(this.#bash, 'exit');
    this.#bash.stdin?.end(
      'for pid in $(jobs -p); do kill -KILL -- -$pid; done 2> /dev/null\nexit\n',
    );
    await ended;
  }

  #nextFile(): string {
    this.#commands += 1;
    return join(this.#folder, `output-${this.#commands}`);
  }

  async #ask(line: string): Promise<string> {
    const answer = Promise.race([once(this.#lines, 'line'), this.#ended]);
    this.#bash.stdin?.write(`${line}\n`);
    return String((await answer)[0]);
  }
}

const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
