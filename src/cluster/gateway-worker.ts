// The entry of a worker, which its parent starts. What it runs is imported late, after the signals that
// are meant for the parent: a terminal and systemd send them to all processes of a gateway.
process.setSourceMapsEnabled(true);
process.on('SIGINT', () => {});
process.on('SIGHUP', () => {});
// Whoever sends it to one worker alone wants another one in its place.
process.on('SIGTERM', () => process.send?.({ type: 'replace' }));

const { serve } = await import('./serve.ts');
serve({
  tell: (message) => process.send?.(message),
  listen: (hear) => process.on('message', hear),
  exit: (code) => process.exit(code),
});

export {};
