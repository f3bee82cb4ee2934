// What the imports of outfits, users and likes share: a source is read batch by batch, to its end or to the signal.
import type pg from 'pg';
import type { SourceRecord } from '../../old-listing/page.ts';
import type { SaveResult } from '../../outfits/writes/bulk.ts';
import { formatNumber, type Reporter } from '../reporter.ts';
import type { CheckedRow } from '../source/record.ts';
import { readSource, type SourceBatch, type SourceOptions } from '../source/source.ts';

export interface RunOptions extends Omit<SourceOptions, 'from' | 'notify' | 'onShortened'> {
  /** Whether to remove at the end what the source does not have; of likes, those of earlier imports. */
  readonly replace: boolean;
  /** Whether to save and remove nothing. */
  readonly isDry: boolean;
}

export interface RunOutcome {
  readonly lines: readonly string[];
  /** Exit code. */
  readonly code: number;
  /** Whether it continued where an interrupted run had stopped. */
  readonly isResumed?: boolean;
}

export abstract class Run<Options extends RunOptions> {
  protected readonly totals = { read: 0, created: 0, updated: 0, unchanged: 0, broken: 0 };
  /** `count` of the first page, and of the last one. */
  protected firstCount: number | undefined;
  protected count: number | undefined;
  /** How the source ended before its end, as a clause. */
  protected shortened: string | undefined;
  protected isInterrupted = false;
  /** What to do after an interruption. */
  protected next = 'Run it again for the rest.';
  #seconds = 0;

  constructor(
    protected readonly pool: pg.Pool,
    protected readonly options: Options,
    protected readonly reporter: Reporter,
  ) {}

  protected add({ created, updated, unchanged }: SaveResult): void {
    this.totals.created += created;
    this.totals.updated += updated;
    this.totals.unchanged += unchanged;
  }

  /** @param begin called before a batch is read, while the one before it is saved */
  protected async readAll<Begun>(
    from: string | undefined,
    begin: () => Promise<Begun>,
    save: (batch: SourceBatch, begun: Begun) => Promise<void>,
  ): Promise<void> {
    this.reporter.begin(this.totals.read);
    const started = performance.now();
    const reading = new AbortController();
    const batches = readSource({
      ...{ ...this.options, from },
      signal: AbortSignal.any([this.options.signal, reading.signal]),
      notify: (sentence) => this.reporter.note(sentence),
      onShortened: (reason) => {
        this.shortened = reason;
      },
    });
    const read = async () => ({ begun: await begin(), result: await batches.next() });
    try {
      let coming = read();
      for (let current = await coming; !current.result.done; current = await coming) {
        coming = read();
        // A rejection counts when it is awaited, after the current batch.
        coming.catch(() => {});
        const batch = current.result.value;
        this.firstCount = batch.firstCount;
        this.count = batch.count;
        this.totals.read += batch.parts.length;
        await save(batch, current.begun);
        this.reporter.progress(this.totals.read, this.count);
      }
    } catch (error) {
      const { signal, isDry } = this.options;
      const isAbort = error instanceof Error && error.name === 'AbortError';
      if (!signal.aborted || !isAbort || isDry) throw error;
      this.isInterrupted = true;
    } finally {
      // After a failure to save, the next batch is still being read.
      reading.abort();
      this.reporter.finish();
      this.#seconds = (performance.now() - started) / 1000;
    }
  }

  /** The valid records of a batch; the others are reported. @param nameOf what a broken record is called */
  protected check<Row>(
    { parts }: SourceBatch,
    check: (record: unknown) => CheckedRow<Row>,
    nameOf: (value: unknown) => string,
  ): (SourceRecord & { readonly row: Row })[] {
    const valid = parts.flatMap((part) => {
      if ('reason' in part) {
        this.reporter.fault(`${part.where}: ${part.reason}`, part.reason);
        return [];
      }
      const { row, reasons } = check(part.value);
      if (reasons === undefined) return [{ ...part, row }];
      const [name, why] = [nameOf(part.value), reasons.join('; ')];
      this.reporter.fault(`${name} (${part.where}): ${why}`, `${name}: ${why}`);
      return [];
    });
    this.totals.broken += parts.length - valid.length;
    return valid;
  }

  /** Why nothing may be removed because it did not come, as a clause: the source may have more. @param ending how it ended */
  protected reasonAgainstRemoval(
    ending: string | false | undefined,
    count: number,
    came: number,
  ): string | undefined {
    if (ending) return ending;
    if (count > came) return 'the listing counts more than were read';
    const { firstCount = 0, count: lastCount = firstCount } = this;
    // Deletions while it is read explain ten records, or one of a hundred.
    if (2 * lastCount < firstCount || came < firstCount - Math.max(10, firstCount / 100))
      return 'the listing lost many of its records while it was read';
    return came === 0 ? 'the source is empty' : undefined;
  }

  /** @param kept numbers by what became of the records @param already records that an interrupted run has read */
  protected summarize(what: string, kept: readonly string[], already = 0): string[] {
    const { read } = this.totals;
    const rate = formatNumber((read - already) / this.#seconds);
    const dry = this.options.isDry ? ', nothing is saved' : '';
    return [
      `${formatNumber(read)} ${what} read in ${this.#seconds.toFixed(1)} s (${rate} per second)${dry}: ${kept.join(', ')}.`,
      ...(already > 0
        ? [`${formatNumber(already)} of them were read by the interrupted import.`]
        : []),
      ...(this.isInterrupted ? [`Interrupted; what was read is saved. ${this.next}`] : []),
    ];
  }

  /** @param lacking how many more the listing counts than were read @param isFlawed whether it is not as it should be */
  protected conclude(
    what: string,
    lines: readonly string[],
    lacking: number,
    isFlawed: boolean,
  ): RunOutcome {
    const isWrong =
      isFlawed || lacking > 0 || this.totals.broken > 0 || this.shortened !== undefined;
    const sentence = `The listing counts ${formatNumber(lacking)} more ${what} than were read: import it again, or find the missing page.`;
    return {
      lines: lacking > 0 ? [...lines, sentence] : lines,
      code: this.isInterrupted ? 130 : isWrong ? 1 : 0,
    };
  }
}
