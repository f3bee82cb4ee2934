// npm run package: a folder of only what runs, and an archive of it. It needs Node.js and nothing else,
// no npm ci either. What runs is dist/ and what it reaches: 50 MB, where npm ci --omit=dev leaves 430.
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nodeFileTrace } from '@vercel/nft';

const root = fileURLToPath(new URL('..', import.meta.url));
const target = resolve(process.argv[2] ?? join(root, 'package'));
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const name = `${manifest.name}-${manifest.version}`;
const folder = join(target, name);

rmSync(folder, { recursive: true, force: true });
const files = await traceFiles();
for (const file of files) copy(file);
for (const file of listLicences(files)) copy(file);
cpSync(join(root, 'dist'), join(folder, 'dist'), { recursive: true });
cpSync(join(root, 'prisma/migrations'), join(folder, 'prisma/migrations'), { recursive: true });
const texts = ['.env.example', 'CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md', 'docs'];
for (const name of texts) {
  // An image is built without what is only to be read.
  if (existsSync(join(root, name)))
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

/** What is not bundled, and dist/ reaches: paths below the root. */
async function traceFiles() {
  const scripts = listFiles(join(root, 'dist')).filter((file) => file.endsWith('.js'));
  if (!scripts.includes('server.js')) throw new Error('dist/ is missing: run "npm run build".');
  const { fileList } = await nodeFileTrace(
    scripts.map((file) => join(root, 'dist', file)),
    // Some versions of Node.js load a package's `module-sync` file, where others load another one.
    { base: root, moduleSyncCatchall: true },
  );
  return [...fileList];
}

/**
 * The licences of the packages that files belong to: they ask to be handed on with them.
 * @param {readonly string[]} files
 */
function listLicences(files) {
  const packages = files.map((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0]);
  return [...new Set(packages)].flatMap((path) =>
    path === undefined
      ? []
      : readdirSync(join(root, path))
          .filter((file) => /^(?:licen[cs]e|copying|notice)/i.test(file))
          .map((file) => join(path, file)),
  );
}

/** package.json without what only installing, building and testing need. */
function reduceManifest() {
  const { version, private: isPrivate, description, license, type, engines, bin } = manifest;
  const scripts = Object.entries(manifest.scripts).filter(([, script]) =>
    /^node\b[^&|;]* dist\//.test(String(script)),
  );
  return {
    name: manifest.name,
    version,
    private: isPrivate,
    description,
    license,
    type,
    engines,
    bin,
    scripts: Object.fromEntries(scripts),
  };
}

/** @param {string} file below the root, for the same place below the folder */
function copy(file) {
  mkdirSync(dirname(join(folder, file)), { recursive: true });
  copyFileSync(join(root, file), join(folder, file));
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
