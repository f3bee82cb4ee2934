// The budget of comparisons: a limit of concurrency, of rate, and of processor time.
/** Concurrent comparisons; each may hold the bytes of two answers. */
const maxConcurrent = 4;
/** Rate limit: a larger sample would find nothing more. */
const maxPerSecond = 50;
/** Pause after a comparison, as a multiple of its duration: a tenth of the processor time. */
const restFactor = 10;
/** Milliseconds of pause that may accumulate before a comparison is refused. */
const burst = 500;

/** Drops comparisons under load: they run on the thread that answers requests. */
export class ComparisonBudget {
  #running = 0;
  #secondEnds = 0;
  #startedInSecond = 0;
  #pauseUntil = 0;

  /** Whether a comparison may begin; then `release()` must follow. */
  tryAcquire(): boolean {
    const now = performance.now();
    if (now >= this.#secondEnds) {
      this.#secondEnds = now + 1_000;
      this.#startedInSecond = 0;
    }
    if (this.#running >= maxConcurrent || this.#startedInSecond >= maxPerSecond) return false;
    if (now < this.#pauseUntil) return false;
    this.#running += 1;
    this.#startedInSecond += 1;
    return true;
  }

  release(): void {
    this.#running -= 1;
  }

  /** Runs synchronous work, and charges its duration to the budget. */
  charge<Result>(work: () => Result): Result {
    const begun = performance.now();
    try {
      return work();
    } finally {
      const now = performance.now();
      this.#pauseUntil = Math.max(this.#pauseUntil, now - burst) + restFactor * (now - begun);
    }
  }
}
