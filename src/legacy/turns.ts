// Which comparisons are made: few at a time, and no more than a tenth of the processor's time.

/** Most at a time; each may hold the bytes of two answers. */
const maxUnderWay = 4;
/** Most in a second: more would tell no more. */
const maxPerSecond = 50;
/** How much longer than a comparison it is until the next one may begin. */
const rest = 10;
/** Milliseconds of rest that may be owed before the next one has to wait. */
const credit = 500;

export interface Turns {
  /** Whether one more may be made; then it must be given back. */
  take(): boolean;
  giveBack(): void;
  /** Runs what holds up everything else meanwhile, and has others wait for it. */
  time<Result>(work: () => Result): Result;
}

export function createTurns(): Turns {
  let underWay = 0;
  let secondEnds = 0;
  let taken = 0;
  let restUntil = 0;
  return {
    take() {
      const now = performance.now();
      if (now >= secondEnds) {
        secondEnds = now + 1_000;
        taken = 0;
      }
      if (underWay >= maxUnderWay || taken >= maxPerSecond || now < restUntil) return false;
      underWay += 1;
      taken += 1;
      return true;
    },
    giveBack() {
      underWay -= 1;
    },
    time(work) {
      const begun = performance.now();
      try {
        return work();
      } finally {
        const now = performance.now();
        restUntil = Math.max(restUntil, now - credit) + rest * (now - begun);
      }
    },
  };
}
