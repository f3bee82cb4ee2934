// Says only what is news, where the same work is done round after round.
import { createReporter, type Output, type Reporter } from './reporter.ts';

export interface News {
  /** A reporter for one round. @param already records that an earlier run had read */
  startRound(already: number): Reporter;
  /** Prints a line, unless the round before has printed it too. */
  say(line: string): void;
}

/** Faults of a round that are remembered: a source may have nothing else. */
const maxFaults = 1_000;

/** @param prompt where notes, faults and progress go */
export function createNews(output: Output, prompt: Output): News {
  let before = new Set<string>();
  let said = new Set<string>();
  let faultsBefore = new Set<string>();
  let faults = new Set<string>();
  /** A source that does not answer is tried many times: its first failure is the news. */
  let isInTrouble = false;
  return {
    startRound(already) {
      before = said;
      said = new Set();
      faultsBefore = faults;
      faults = new Set();
      const reporter = createReporter(prompt, already);
      return {
        ...reporter,
        note(line) {
          if (!isInTrouble) reporter.note(line);
          isInTrouble = true;
        },
        fault(line, key) {
          if (faults.size === maxFaults) return;
          faults.add(key);
          if (!faultsBefore.has(key)) reporter.fault(line, key);
        },
        progress(read, total) {
          isInTrouble = false;
          reporter.progress(read, total);
        },
      };
    },
    say(line) {
      said.add(line);
      if (!before.has(line)) output.write(`${line}\n`);
    },
  };
}
