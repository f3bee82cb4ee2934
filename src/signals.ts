// SIGTERM and SIGINT, heard from the first moment on: before what takes long to load is imported. The
// first process of a container is not ended by a signal that it does not listen to.

/** What a signal closes. */
type Close = (signal: NodeJS.Signals) => Promise<void>;

let close: Close | undefined;
let isReceived = false;

/**
 * Milliseconds in which another SIGINT is the same Ctrl-C: the terminal sends it to npm and to this
 * process, and npm passes its own on.
 */
const echo = 1_000;

/** Calls `first` on the first signal, and `again` when somebody does not want to wait. */
function hear(first: Close, again: (signal: NodeJS.Signals) => void): void {
  let heard: { readonly name: NodeJS.Signals; readonly at: number } | undefined;
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    process.on(name, () => {
      const at = performance.now();
      if (!heard) {
        heard = { name, at };
        first(name);
      } else if (name !== 'SIGINT' || heard.name !== 'SIGINT' || at - heard.at > echo) again(name);
    });
  }
}

/** From now on, a signal ends the process in order: with what `closeOnSignal` was last given. */
export function endOnSignal(): void {
  hear(
    async (signal) => {
      // With nothing open there is nothing to wait for: whatever a start does can be cut short.
      if (!close) process.exit(0);
      isReceived = true;
      try {
        await close(signal);
        process.exit(0);
      } catch (error) {
        process.stderr.write(`${error instanceof Error ? error.stack : error}\n`);
        process.exit(1);
      }
    },
    () => process.exit(1),
  );
}

/** From now on, a signal calls `next` instead of what was given before, and then ends the process. */
export function closeOnSignal(next: Close): void {
  close = next;
}

/** From now on, a SIGHUP calls `restart`, where it would end the process. */
export function restartOnHangUp(restart: () => void): void {
  process.on('SIGHUP', restart);
}

/** Whether the process is about to end: what fails now, fails because things are being closed. */
export function isEnding(): boolean {
  return isReceived;
}

/** A signal of Node's that is aborted by the first one of the system; a second one ends the process. */
export function abortOnSignal(): AbortSignal {
  const stop = new AbortController();
  hear(
    async () => stop.abort(),
    (signal) => {
      process.removeAllListeners(signal);
      process.kill(process.pid, signal);
    },
  );
  return stop.signal;
}
