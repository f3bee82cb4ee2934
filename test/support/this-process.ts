// This process, in which most gateways of the tests run: its clocks, and its warnings.
import { onTestFinished, vi } from 'vitest';

/** Stops clocks for the running test: only what this returns lets time pass on them. */
export function stopClocks(...clocks: readonly { now(): number }[]): (seconds: number) => void {
  let passed = 0;
  for (const clock of clocks) {
    const start = clock.now();
    const stopped = vi.spyOn(clock, 'now').mockImplementation(() => start + passed);
    onTestFinished(() => stopped.mockRestore());
  }
  return (seconds) => {
    passed += seconds * 1000;
  };
}

/** The warnings of the running test. */
export function keepWarnings(): Error[] {
  const warnings: Error[] = [];
  const keep = (warning: Error) => warnings.push(warning);
  process.on('warning', keep);
  onTestFinished(() => void process.off('warning', keep));
  return warnings;
}

/** The uncaught errors of the running test, which fail it no more. */
export function takeUncaught(): unknown[] {
  const errors: unknown[] = [];
  const others = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', (error) => errors.push(error));
  onTestFinished(() => {
    process.removeAllListeners('uncaughtException');
    for (const listener of others) process.on('uncaughtException', listener);
  });
  return errors;
}
