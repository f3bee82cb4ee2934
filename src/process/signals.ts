// Signals: SIGTERM and SIGINT. Handlers are set before slow imports: a signal without a handler does not end
// process 1 of a container. Uncaught errors shut the process down in the same way.
import type { Logger } from 'pino';

/** A signal, or an uncaught error. */
export type ShutdownReason = NodeJS.Signals | Error;

type Close = (reason: ShutdownReason) => Promise<void>;

let close: Close | undefined;
let isReceived = false;
let exitCode = 0;

/** Milliseconds that a process has to close after an uncaught error. */
const failureTimeout = 5_000;

/** The same after a signal, within the five seconds that are promised. */
const shutdownTimeout = 4_800;

/** Milliseconds in which a second SIGINT is the same Ctrl-C: the terminal sends it to npm too, which forwards it. */
const sameInterrupt = 1_000;

/** Calls `first` on the first signal, and `again` on later ones, which ask not to wait. */
function onTermination(
  first: (signal: NodeJS.Signals) => Promise<void>,
  again: (signal: NodeJS.Signals) => void,
): void {
  let received: { readonly name: NodeJS.Signals; readonly at: number } | undefined;
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    process.on(name, () => {
      const at = performance.now();
      if (!received) {
        received = { name, at };
        void first(name);
      } else if (
        name !== 'SIGINT' ||
        received.name !== 'SIGINT' ||
        at - received.at > sameInterrupt
      )
        again(name);
    });
  }
}

/** Sets the handlers: a signal or an uncaught error calls what was last passed to `closeOnSignal`, then exits. */
export function endOnSignal(): void {
  onTermination(shutDown, () => process.exit(1));
  // What cannot be said must not end the service: this is for `ulimit -f`.
  process.on('SIGXFSZ', () => {});
  process.once('uncaughtException', (error) => {
    // What else fails meanwhile must not end the process before it has closed.
    process.on('uncaughtException', () => {});
    setTimeout(() => process.exit(1), failureTimeout);
    exitCode = 1;
    void shutDown(error instanceof Error ? error : new Error(String(error)));
  });
}

async function shutDown(reason: ShutdownReason): Promise<void> {
  // The shutdown continues: a second one would fail, and cut the connections that the first waits for.
  if (isReceived) {
    if (reason instanceof Error) writeError(reason);
    return;
  }
  isReceived = true;
  setTimeout(() => process.exit(exitCode), shutdownTimeout);
  try {
    // Nothing is open yet: the start is simply cut short.
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

/** Replaces the function that a signal calls before the process exits. */
export function closeOnSignal(next: Close): void {
  close = next;
}

/** SIGUSR2 switches the log to debug, and back; SIGUSR1 belongs to the debugger of Node.js. */
export function switchLevelOnSignal(log: Logger): void {
  const { level } = log;
  process.on('SIGUSR2', () => {
    log.level = log.level === 'debug' ? level : 'debug';
    log.warn(`SIGUSR2: the log level is ${log.level}`);
  });
}

/** Whether the process shuts down: errors from now on come from resources that are being closed. */
export function isShuttingDown(): boolean {
  return isReceived;
}

/** An AbortSignal that the first SIGTERM or SIGINT aborts; a second one ends the process. */
export function abortOnSignal(): AbortSignal {
  const stop = new AbortController();
  onTermination(
    async () => stop.abort(),
    (signal) => {
      process.removeAllListeners(signal);
      process.kill(process.pid, signal);
    },
  );
  return stop.signal;
}
