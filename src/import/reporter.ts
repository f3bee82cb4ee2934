// What a long reading says to whoever waits for it: faults, and how far it has come.

/** The terminal or file that messages go to. */
export interface Output {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

export interface Reporter {
  /** Prints a line of its own. */
  note(line: string): void;
  /**
   * Prints a record's or line's fault, up to a limit; the rest is only counted.
   * @param key tells it from other faults, wherever in the source it comes
   */
  fault(line: string, key: string): void;
  /** Shows how far the work has come. @param total undefined when nobody knows */
  progress(read: number, total: number | undefined): void;
  /** Ends the progress line and says how many faults were not printed. */
  finish(): void;
}

const maxFaults = 100;

/**
 * Progress is one line that is rewritten in place on a terminal, and a line every few seconds
 * elsewhere; a rate counts what was read since the reporter was made.
 * @param already records that an earlier run had read
 */
export function createReporter(output: Output, already = 0): Reporter {
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
    fault(text) {
      faults++;
      if (faults <= maxFaults) print(text);
      if (faults === maxFaults) print('More will be counted, but not printed.');
    },
    progress(read, total) {
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

/** A whole number with its thousands set apart. */
export function formatNumber(value: number): string {
  return Math.round(value).toLocaleString('en');
}
