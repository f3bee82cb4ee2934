// npm run package: a folder with the runtime files only, and an archive of it. It needs Node.js, and no npm ci.
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const target = resolve(process.argv[2] ?? join(root, 'package'));
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const name = `${manifest.name}-${manifest.version}`;
const folder = join(target, name);

if (!existsSync(join(root, 'dist/server.js'))) {
  throw new Error('dist/ is missing: run "npm run build".');
}
rmSync(folder, { recursive: true, force: true });
// What npm pack takes, too; only a checkout runs .ci/prepare.js.
for (const name of [...manifest.files, 'LICENSE', 'README.md']) {
  // The build of an image has no documents.
  if (name !== '.ci/prepare.js' && existsSync(join(root, name)))
    cpSync(join(root, name), join(folder, name), { recursive: true });
}
writeFileSync(join(folder, 'package.json'), `${JSON.stringify(reduceManifest(), null, 2)}\n`);

const archive = `${folder}.tar.gz`;
const owner = ['--owner=0', '--group=0', '--numeric-owner'];
const tar = spawnSync('tar', ['-czf', archive, ...owner, '-C', target, name], { stdio: 'inherit' });
if (tar.status !== 0) throw new Error(`tar could not make ${archive}.`, { cause: tar.error });

const bytes = listFiles(folder).reduce((sum, file) => sum + statSync(join(folder, file)).size, 0);
console.log(`${folder}: ${inMegabytes(bytes)} MB`);
console.log(`${archive}: ${inMegabytes(statSync(archive).size)} MB`);

/** package.json without the fields for installing, building and testing. */
function reduceManifest() {
  const { name, version, description, keywords, license, type, engines, bin, exports } = manifest;
  const scripts = Object.entries(manifest.scripts).filter(([, script]) =>
    /^node\b[^&|;]* dist\//.test(String(script)),
  );
  const kept = { name, version, description, keywords, license, type, engines, bin, exports };
  return { ...kept, scripts: Object.fromEntries(scripts) };
}

/** @param {string} path */
function listFiles(path) {
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(path.length + 1));
}

/** @param {number} bytes */
function inMegabytes(bytes) {
  return (bytes / 1e6).toFixed(1);
}
