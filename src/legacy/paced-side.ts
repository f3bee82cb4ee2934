// A side that is asked no more often than its owner allows, whoever asks and however often again.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Side } from './side.ts';

/** Lets one request begin at a time, at equal distances. @param rate requests a second at most */
export function paceSide(side: Side, rate: number): Side {
  let next = 0;
  return {
    ...side,
    async ask(method, target, signal) {
      signal.throwIfAborted();
      const now = performance.now();
      const begin = Math.max(now, next);
      next = begin + 1000 / rate;
      if (begin > now) await sleep(begin - now, undefined, { signal });
      return side.ask(method, target, signal);
    },
  };
}
