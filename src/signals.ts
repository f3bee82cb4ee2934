// Hears SIGTERM and SIGINT from the first moment on: it is imported before what takes long to load.
// The first process of a container is not ended by a signal that it does not listen to.

/** What a signal closes. */
type Close = (signal: NodeJS.Signals) => Promise<void>;

let close: Close | undefined;
let isReceived = false;

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => {
    // A second one is from somebody who does not want to wait. With nothing open there is nothing
    // to wait for: whatever a start does can be cut short.
    if (isReceived || !close) process.exit(isReceived ? 1 : 0);
    isReceived = true;
    close(signal).then(
      () => process.exit(0),
      (error) => {
        process.stderr.write(`${error instanceof Error ? error.stack : error}\n`);
        process.exit(1);
      },
    );
  });
}

/** From now on, a signal calls `next` instead of what was given before, and then ends the process. */
export function closeOnSignal(next: Close): void {
  close = next;
}

/** Whether the process is about to end: what fails now, fails because things are being closed. */
export function isEnding(): boolean {
  return isReceived;
}
