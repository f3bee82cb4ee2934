// What a long reading says while it lasts: faults, and how far it has come.

export interface Output {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

export type Reporter = ReturnType<typeof createReporter>;

const maxFaults = 100;

/** @param already records that an earlier run had read */
export function createReporter(output: Output, already = 0) {
  const start = Date.now();
  const interval = output.isTTY ? 200 : 5_000;
  let shown = start;
  let line = '';
  let faults = 0;

  const print = (text: string) => {
    output.write(`${line && '\r\u001b[K'}${text}\n${line}`);
  };
  return {
    note: print,
    /** Prints a fault, up to a limit; its key tells it from others, wherever in the source it comes. */
    fault(text: string, _key: string) {
      faults++;
      if (faults <= maxFaults) print(text);
      if (faults === maxFaults) print('More will be counted, but not printed.');
    },
    /** @param total undefined when it is not known */
    progress(read: number, total: number | undefined) {
      if (Date.now() - shown < interval) return;
      shown = Date.now();
      const rate = formatNumber(((read - already) * 1000) / (shown - start));
      const percent = total ? `, ${Math.min(100, Math.floor((read * 100) / total))} %` : '';
      const text = `${formatNumber(read)} records read, ${rate} per second${percent}`;
      if (!output.isTTY) return print(text);
      line = text;
      output.write(`\r\u001b[K${line}`);
    },
    finish() {
      if (line) output.write('\n');
      line = '';
      if (faults > maxFaults) print(`${formatNumber(faults - maxFaults)} more are not printed.`);
    },
  };
}

/** Faults of a round that are remembered: a source may have nothing else. */
const maxRemembered = 1_000;

/** Prints only what is new, where the same work is done round after round. */
export class RoundReporter {
  #lines = { before: new Set<string>(), now: new Set<string>() };
  #faults = { before: new Set<string>(), now: new Set<string>() };
  /** A source that does not answer is tried many times: only its first failure is new. */
  #isInTrouble = false;

  constructor(
    private readonly output: Output,
    private readonly prompt: Output,
  ) {}

  startRound(already: number): Reporter {
    this.#lines = { before: this.#lines.now, now: new Set() };
    const faults = { before: this.#faults.now, now: new Set<string>() };
    this.#faults = faults;
    const reporter = createReporter(this.prompt, already);
    return {
      ...reporter,
      note: (line) => {
        if (!this.#isInTrouble) reporter.note(line);
        this.#isInTrouble = true;
      },
      fault: (line, key) => {
        if (faults.now.size === maxRemembered) return;
        faults.now.add(key);
        if (!faults.before.has(key)) reporter.fault(line, key);
      },
      progress: (read, total) => {
        this.#isInTrouble = false;
        reporter.progress(read, total);
      },
    };
  }

  printIfNew(line: string): void {
    this.#lines.now.add(line);
    if (!this.#lines.before.has(line)) this.output.write(`${line}\n`);
  }
}

export function formatNumber(value: number): string {
  return Math.round(value).toLocaleString('en');
}

export function listFirst(names: Iterable<string | number>, size: number, most: number): string {
  const first: (string | number)[] = [];
  for (const name of names) {
    if (first.length === most) break;
    first.push(name);
  }
  const more = size > first.length ? ` and ${formatNumber(size - first.length)} more` : '';
  return first.join(', ') + more;
}
