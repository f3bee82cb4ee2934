#!/usr/bin/env node
// The entry point: outfit-gateway COMMAND, also as dist/server.js. The import of run.ts is late, after the check of the
// version: an old Node.js fails while it links the modules, with a misleading error.
import { executionAsyncResource } from 'node:async_hooks';

const { node } = process.versions;
const [major = 0, minor = 0] = node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(`Node.js ${node} is too old: use 20.19 or newer.\n`);
  process.exit(1);
}
// One object of process.nextTick is kept: once a full garbage collection finds none, V8 creates all later ones slowly,
// which is 6 % of the processor time of an answer from memory.
process.nextTick(() => Object.assign(process, { firstTick: executionAsyncResource() }));
void import('./run.ts');
