// A step of npm run build: bundles dist/, which runs without node_modules. Resolving, reading and linking 1,700 files
// of node_modules took more than half of the start.
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { listComponents } from './sbom.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const outputs = ['dist/licences.txt', 'dist/sbom.cdx.json'];
const inputs = [];

/** @param {import('esbuild').BuildOptions} options */
async function bundle(options) {
  const { metafile } = await build({
    absWorkingDir: root,
    outbase: 'src',
    outdir: 'dist',
    chunkNames: 'chunks/[name]-[hash]',
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    external: ['pg-native'],
    // Older packages require built-in modules of Node.js.
    banner: {
      js: "import { createRequire } from 'node:module';\nconst require = createRequire(import.meta.url);",
    },
    metafile: true,
    logLevel: 'warning',
    ...options,
  });
  outputs.push(...Object.keys(metafile.outputs));
  inputs.push(...Object.keys(metafile.inputs));
}

await bundle({
  entryPoints: [
    { in: 'src/commands/cli.ts', out: 'server' },
    { in: 'src/commands/cli.ts', out: 'commands/cli' },
  ],
  // Dynamic imports stay separate files.
  splitting: true,
});
// Not split: PGlite resolves its files beside its code.
await bundle({
  entryPoints: [
    { in: 'src/database/embedded/embedded-worker.ts', out: 'database/embedded-worker' },
  ],
});
// GraphiQL, for browsers.
await bundle({
  entryPoints: ['src/pages/graphiql/main.jsx'],
  outbase: 'src/pages',
  entryNames: '[dir]/[name]-[hash]',
  platform: 'browser',
  minify: true,
  format: 'iife',
  target: 'es2022',
  define: { 'process.env.NODE_ENV': '"production"' },
  external: [],
  banner: {},
});
const pglite = 'node_modules/@electric-sql/pglite/dist';
copy(pglite, 'dist/database', ['pglite.wasm', 'pglite.data', 'initdb.wasm']);
copy('src/process/demo', 'dist/demo', ['outfits.ndjson', 'pictures.ndjson']);

const packages = listPackages(inputs);
writeFileSync(join(root, 'dist/licences.txt'), collectLicences(packages));
writeFileSync(join(root, 'dist/sbom.cdx.json'), `${JSON.stringify(listComponents(packages))}\n`);
removeOthers();

/**
 * Copies files that are read at run time.
 * @param {string} from
 * @param {string} to
 * @param {readonly string[]} names
 */
function copy(from, to, names) {
  mkdirSync(join(root, to), { recursive: true });
  for (const name of names) copyFileSync(join(root, from, name), join(root, to, name));
  inputs.push(...names.map((name) => `${from}/${name}`));
  outputs.push(...names.map((name) => `${to}/${name}`));
}

/** Removes files of an earlier build, at the end: a gateway may run from them. */
function removeOthers() {
  const kept = new Set(outputs.map((path) => join(root, path)));
  for (const entry of readdirSync(join(root, 'dist'), { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile() && !kept.has(path)) rmSync(path);
  }
}

/**
 * The packages that files are of.
 * @param {readonly string[]} files
 */
function listPackages(files) {
  const paths = files.map((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0]);
  return [...new Set(paths)]
    .filter((path) => path !== undefined)
    .toSorted()
    .map((path) => {
      const manifest = JSON.parse(readFileSync(join(root, path, 'package.json'), 'utf8'));
      const { name, version, license } = manifest;
      return { path, name: String(name), version: String(version), license: String(license) };
    });
}

/**
 * Licences of bundled packages, which must be distributed with them.
 * @param {ReturnType<typeof listPackages>} bundled
 */
function collectLicences(bundled) {
  return bundled
    .map(({ path, name, version, license }) => {
      const texts = readdirSync(join(root, path))
        .filter((file) => /^(?:licen[cs]e|copying|notice)/i.test(file))
        .map((file) => readFileSync(join(root, path, file), 'utf8').trim());
      return [`${name} ${version}: ${license}`, ...texts].join('\n\n');
    })
    .join(`\n\n${'-'.repeat(80)}\n\n`);
}
