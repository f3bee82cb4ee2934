// With --import: SIGUSR2 makes the process throw an error that nothing catches, and SIGWINCH rejects a promise that
// nothing handles.
process.on('SIGUSR2', () => {
  throw new Error('thrown by a test');
});
process.on('SIGWINCH', () => {
  Promise.reject(new Error('rejected by a test'));
});
