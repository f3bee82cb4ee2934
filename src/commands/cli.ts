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
// Kept: V8 creates the objects of nextTick slowly once a full collection found none, 6 % of an answer from memory.
process.nextTick(() => Object.assign(process, { firstTick: executionAsyncResource() }));
import('./run.ts');
