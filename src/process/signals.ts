// SIGTERM and SIGINT, heard before what takes long to load is imported: the first process of a container is not ended
// by a signal that it does not listen to. Errors that nothing catches end the process in the same order.

/** Why a process ends: a signal, or an error that nothing has caught. */
export type EndReason = NodeJS.Signals | Error;

type Close = (reason: EndReason) => Promise<void>;

let close: Close | undefined;
let isReceived = false;
let exitCode = 0;

/** Milliseconds that a process has to close after an error that nothing has caught. */
const failureLimit = 5_000;

/** Milliseconds in which another SIGINT is the same Ctrl-C: the terminal sends it to npm too, which passes it on. */
const echo = 1_000;

/** Calls `first` on the first signal, and `again` when somebody does not want to wait. */
function hear(
  first: (signal: NodeJS.Signals) => Promise<void>,
  again: (signal: NodeJS.Signals) => void,
): void {
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
  hear(end, () => process.exit(1));
  onUncaught((error) => {
    exitCode = 1;
    end(error);
  });
}

async function end(reason: EndReason): Promise<void> {
  // Closing goes on: begun twice it would fail, and cut what it waits for.
  if (isReceived) {
    if (reason instanceof Error) writeError(reason);
    return;
  }
  isReceived = true;
  try {
    // With nothing open, a start can be cut short.
    if (close) await close(reason);
    else if (reason instanceof Error) throw reason;
    process.exit(exitCode);
  } catch (error) {
    writeError(error);
    process.exit(1);
  }
}

function writeError(error: unknown): void {
  process.stderr.write(`${error instanceof Error ? error.stack : error}\n`);
}

/** From now on, an error that nothing catches calls `close` once; when that takes too long, the process ends with 1. */
export function onUncaught(close: (error: Error) => void): void {
  let isFailing = false;
  process.on('uncaughtException', (error) => {
    if (isFailing) return;
    isFailing = true;
    setTimeout(() => process.exit(1), failureLimit);
    close(error instanceof Error ? error : new Error(String(error)));
  });
}

/** From now on, a signal calls `next` instead of what was given before, and then ends the process. */
export function closeOnSignal(next: Close): void {
  close = next;
}

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
