// Imported first by each entry: on a Node.js that is too old, what is imported next fails with words that
// blame another (Node.js 18 blamed the folder of the embedded database).
const { node } = process.versions;
const [major = 0, minor = 0] = node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(`Node.js ${node} is too old: use 20.19 or newer.\n`);
  process.exit(1);
}
