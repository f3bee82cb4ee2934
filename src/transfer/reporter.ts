// Prints faults and progress of a long reading.

export interface Output {
  write(text: string): unknown;
}

const maxLine = 2_000;

/**
 * An output for text that quotes files, logs and services: on a terminal, their control characters would move the cursor,
 * name the window, or hide what follows. They are escaped, and endless lines cut.
 */
export function quoting(output: Output): Output {
  const show = (line: string) =>
    escapeControls(line.length > maxLine ? `${line.slice(0, maxLine)}…` : line);
  return { write: (text) => output.write(text.split('\n').map(show).join('\n')) };
}

const control = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

export function escapeControls(line: string): string {
  const encode = (character: string) =>
    `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return line.replace(control, encode);
}

/** Milliseconds between two lines of progress. */
const progressInterval = 5_000;
const maxFaults = 100;
/** Faults of a reading that are compared with the next: a broken source may have one per record. */
const maxCompared = 1_000;

/**
 * Prints faults, progress and results of a reading. Where a source is read again and again, it prints only what the reading
 * before did not.
 */
export class Reporter {
  #begun = performance.now();
  #shown = this.#begun;
  #already = 0;
  #faults = 0;
  #seen = { before: new Set<string>(), now: new Set<string>() };
  /** Whether a failed attempt was printed since the last progress: the retries after it are not. */
  #isFailing = false;

  constructor(
    private readonly output: Output,
    private readonly results: Output = output,
    private readonly isRepeated = false,
  ) {}

  /** @param already records that an interrupted run has read */
  begin(already: number): void {
    this.#begun = performance.now();
    this.#shown = this.#begun;
    this.#already = already;
    if (this.isRepeated) this.#seen = { before: this.#seen.now, now: new Set() };
    if (already === 0) return;
    this.#print(
      `Continuing after the ${formatNumber(already)} records that an interrupted import has read (--restart starts again).`,
    );
  }

  note(text: string): void {
    if (!this.isRepeated || !this.#isFailing) this.#print(text);
    this.#isFailing = true;
  }

  /** Prints a fault, up to a limit. @param key identifies it, without its place in the source */
  fault(text: string, key: string): void {
    const { before, now } = this.#seen;
    if (now.size < maxCompared) now.add(key);
    else if (before.size > 0) return;
    if (before.has(key)) return;
    this.#faults++;
    if (this.#faults <= maxFaults) this.#print(text);
    if (this.#faults === maxFaults) this.#print('More will be counted, but not printed.');
  }

  /** @param total undefined when it is unknown */
  progress(read: number, total: number | undefined): void {
    this.#isFailing = false;
    if (performance.now() - this.#shown < progressInterval) return;
    this.#shown = performance.now();
    const rate = formatNumber(((read - this.#already) * 1000) / (this.#shown - this.#begun));
    const percent = total ? `, ${Math.min(100, Math.floor((read * 100) / total))} %` : '';
    this.#print(`${formatNumber(read)} records read, ${rate} per second${percent}`);
  }

  finish(): void {
    if (this.#faults > maxFaults) {
      this.#print(`${formatNumber(this.#faults - maxFaults)} more are not printed.`);
    }
    this.#faults = 0;
  }

  /** A result, after `finish`. */
  result(line: string): void {
    this.#seen.now.add(line);
    if (!this.#seen.before.has(line)) this.results.write(`${line}\n`);
  }

  #print(text: string): void {
    this.output.write(`${text}\n`);
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
