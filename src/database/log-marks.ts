// When the primary was seen to be how far, to tell how late its standbys are.
import type { LogPosition } from './snapshots.ts';

interface Mark {
  readonly position: LogPosition;
  /** By `performance.now()`. */
  readonly at: number;
}

/** Milliseconds between two marks, and most marks: a standby that is later than all of them is late enough. */
const spacing = 100;
const maxMarks = 600;

export class LogMarks {
  readonly #marks: Mark[] = [];

  add(position: LogPosition): void {
    const at = performance.now();
    const last = this.#marks.at(-1);
    if (last && at - last.at < spacing) return;
    this.#marks.push({ position, at });
    if (this.#marks.length > maxMarks) this.#marks.shift();
  }

  /** Milliseconds since the oldest mark that has not been reached; 0 when the newest has. */
  ageOf(hasReached: (position: LogPosition) => boolean): number {
    const behind = this.#marks.findLastIndex(({ position }) => hasReached(position)) + 1;
    const oldest = this.#marks[behind];
    return oldest ? performance.now() - oldest.at : 0;
  }
}
