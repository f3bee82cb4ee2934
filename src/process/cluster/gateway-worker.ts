// Entry point of a worker process. Signal handlers come before the imports: a terminal and systemd send the signals
// meant for the parent to all processes.
import type { ToParent } from './messages.ts';

process.on('SIGINT', () => {});
process.on('SIGHUP', () => {});
// Without a parent there is no channel; node:cluster then ends the worker.
const send = (message: ToParent) => void process.send?.(message, undefined, undefined, () => {});
// SIGTERM to a single worker asks for its replacement.
process.on('SIGTERM', () => send({ type: 'replace' }));

const { WorkerProcess } = await import('./worker-process.ts');
new WorkerProcess(process, send).start();
