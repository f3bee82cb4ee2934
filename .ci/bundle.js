// A step of npm run build: dist/, of what runs. Packages are bundled with it, since a start would
// otherwise find, read and link 1,700 files, which took more than half of its time.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));

const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: [
    'src/server.ts',
    'src/commands/cli.ts',
    'src/cluster/gateway-worker.ts',
    'src/database/embedded-worker.ts',
  ],
  outbase: 'src',
  outdir: 'dist',
  chunkNames: 'chunks/[name]-[hash]',
  bundle: true,
  // What is imported late is loaded late.
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  // They read files beside them, or are large and seldom asked for.
  external: ['@electric-sql/*', 'pg-native'],
  // Older packages ask for Node's own modules by require.
  banner: {
    js: "import { createRequire } from 'node:module';\nconst require = createRequire(import.meta.url);",
  },
  metafile: true,
  logLevel: 'warning',
});
// GraphiQL, for browsers.
const browser = await build({
  absWorkingDir: root,
  entryPoints: ['src/pages/graphiql/main.jsx'],
  outdir: 'dist/graphiql',
  entryNames: '[name]-[hash]',
  bundle: true,
  minify: true,
  format: 'iife',
  target: 'es2022',
  define: { 'process.env.NODE_ENV': '"production"' },
  metafile: true,
  logLevel: 'warning',
});
const of = (/** @type {'inputs' | 'outputs'} */ kind) =>
  [metafile, browser.metafile].flatMap((file) => Object.keys(file[kind]));
writeFileSync(join(root, 'dist/licences.txt'), collectLicences(of('inputs')));
removeOthers(['dist/licences.txt', ...of('outputs')]);

/**
 * Removes what an earlier build has made, now that all is there: a gateway may run from it.
 * @param {readonly string[]} outputs paths below the root
 */
function removeOthers(outputs) {
  const kept = new Set(outputs.map((path) => join(root, path)));
  for (const entry of readdirSync(join(root, 'dist'), { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile() && !kept.has(path)) rmSync(path);
  }
}

/**
 * The licences of the packages that files belong to: they ask to be handed on with them.
 * @param {readonly string[]} files
 */
function collectLicences(files) {
  const packages = files.map((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0]);
  return [...new Set(packages)]
    .filter((path) => path !== undefined)
    .toSorted()
    .map((path) => {
      const { name, version, license } = JSON.parse(
        readFileSync(join(root, path, 'package.json'), 'utf8'),
      );
      const texts = readdirSync(join(root, path))
        .filter((file) => /^(?:licen[cs]e|copying|notice)/i.test(file))
        .map((file) => readFileSync(join(root, path, file), 'utf8').trim());
      return [`${name} ${version}: ${license}`, ...texts].join('\n\n');
    })
    .join(`\n\n${'-'.repeat(80)}\n\n`);
}
