// Prints faults and progress of a long reading.

export interface Output {
  readonly isTTY?: boolean;
  write(text: string): unknown;
  /** Erases the line of the cursor, on a terminal. */
  eraseLine?(): unknown;
}

const maxLine = 2_000;

/**
 * An output for text that quotes files, logs and services: on a terminal, their control characters would move the cursor,
 * name the window, or hide what follows. They are escaped, and endless lines cut.
 */
export function quoting(output: Output): Output {
  const show = (line: string) =>
    escapeControls(line.length > maxLine ? `${line.slice(0, maxLine)}…` : line);
  return {
    isTTY: output.isTTY ?? false,
    write: (text) => output.write(text.split('\n').map(show).join('\n')),
    eraseLine: () => output.write('\r\u001b[K'),
  };
}

const control = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

export function escapeControls(line: string): string {
  const encode = (character: string) =>
    `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return line.replace(control, encode);
}

const maxFaults = 100;

/** Prints faults and progress of one reading. On a terminal the progress is one line that is rewritten. */
export class Reporter {
  readonly #start = performance.now();
  readonly #interval: number;
  #shown = this.#start;
  #line = '';
  #faults = 0;

  /** @param already records that an interrupted run has read */
  constructor(
    private readonly output: Output,
    private readonly already = 0,
  ) {
    this.#interval = output.isTTY ? 200 : 5_000;
  }

  note(text: string): void {
    this.#print(text);
  }

  /** Prints a fault, up to a limit. @param _key identifies it, without its place in the source */
  fault(text: string, _key: string): void {
    this.#faults++;
    if (this.#faults <= maxFaults) this.#print(text);
    if (this.#faults === maxFaults) this.#print('More will be counted, but not printed.');
  }

  /** @param total undefined when it is unknown */
  progress(read: number, total: number | undefined): void {
    if (performance.now() - this.#shown < this.#interval) return;
    this.#shown = performance.now();
    const rate = formatNumber(((read - this.already) * 1000) / (this.#shown - this.#start));
    const percent = total ? `, ${Math.min(100, Math.floor((read * 100) / total))} %` : '';
    const text = `${formatNumber(read)} records read, ${rate} per second${percent}`;
    if (this.output.isTTY) {
      this.#line = text;
      this.output.eraseLine?.();
      this.output.write(text);
    } else this.#print(text);
  }

  finish(): void {
    if (this.#line) this.output.write('\n');
    this.#line = '';
    if (this.#faults > maxFaults) {
      this.#print(`${formatNumber(this.#faults - maxFaults)} more are not printed.`);
    }
  }

  #print(text: string): void {
    if (this.#line) this.output.eraseLine?.();
    this.output.write(`${text}\n${this.#line}`);
  }
}

/** Faults of a round that are compared with the next: a broken source may have one per record. */
const maxCompared = 1_000;

/** Prints only what the round before did not print, where a source is read again and again. */
export class RoundReporter {
  #lines = { before: new Set<string>(), now: new Set<string>() };
  #faults: RoundFaults = { before: new Set(), now: new Set(), isFailing: false };

  constructor(
    private readonly output: Output,
    private readonly errors: Output,
  ) {}

  startRound(already: number): Reporter {
    this.#lines = { before: this.#lines.now, now: new Set() };
    this.#faults = { ...this.#faults, before: this.#faults.now, now: new Set() };
    return new NewFaultsReporter(this.#faults, this.errors, already);
  }

  printIfNew(line: string): void {
    this.#lines.now.add(line);
    if (!this.#lines.before.has(line)) this.output.write(`${line}\n`);
  }
}

interface RoundFaults {
  readonly before: ReadonlySet<string>;
  readonly now: Set<string>;
  /** Whether a failed attempt was printed since the last progress: the retries after it are not. */
  isFailing: boolean;
}

class NewFaultsReporter extends Reporter {
  constructor(
    private readonly faults: RoundFaults,
    output: Output,
    already: number,
  ) {
    super(output, already);
  }

  override note(text: string): void {
    if (!this.faults.isFailing) super.note(text);
    this.faults.isFailing = true;
  }

  override fault(text: string, key: string): void {
    const { before, now } = this.faults;
    if (now.size === maxCompared) return;
    now.add(key);
    if (!before.has(key)) super.fault(text, key);
  }

  override progress(read: number, total: number | undefined): void {
    this.faults.isFailing = false;
    super.progress(read, total);
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
