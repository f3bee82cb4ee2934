// The entry of a worker, which its parent starts. What it runs is imported late, after the signals that
// are meant for the parent: a terminal and systemd send them to all processes of a gateway.
import type { ToParent } from './messages.ts';

process.on('SIGINT', () => {});
process.on('SIGHUP', () => {});
// A parent that has gone hears nothing more, and its workers end by themselves.
const tell = (message: ToParent) => void process.send?.(message, undefined, undefined, () => {});
// Whoever sends it to one worker alone wants another one in its place.
process.on('SIGTERM', () => tell({ type: 'replace' }));

const { serve } = await import('./serve.ts');
serve(process, tell);
