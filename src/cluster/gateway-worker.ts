// The entry of a worker, which its parent starts. What it runs is imported late, after the signals that
// are meant for the parent: a terminal and systemd send them to all processes of a gateway.
import type { ToParent } from './messages.ts';

process.on('SIGINT', () => {});
process.on('SIGHUP', () => {});
// A parent that has gone hears nothing more, and its workers end by themselves: nobody is to be told.
const tell = (message: ToParent) => {
  process.send?.(message, undefined, undefined, () => {});
};
// Whoever sends it to one worker alone wants another one in its place.
process.on('SIGTERM', () => tell({ type: 'replace' }));

const [{ serve }, { onUncaught }] = await Promise.all([
  import('./serve.ts'),
  import('../signals.ts'),
]);
serve({
  onUncaught,
  tell,
  listen: (hear) => process.on('message', hear),
  exit: (code) => process.exit(code),
});
