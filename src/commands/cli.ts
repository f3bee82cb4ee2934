#!/usr/bin/env node
// The entry: outfit-gateway COMMAND, also as dist/server.js. What it runs is imported late: an old Node.js fails while it
// links all of that, with words that blame another (Node.js 18 blamed the folder of the embedded database).
const { node } = process.versions;
const [major = 0, minor = 0] = node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(`Node.js ${node} is too old: use 20.19 or newer.\n`);
  process.exit(1);
}
import('./run.ts');
