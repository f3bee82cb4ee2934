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
    { in: 'src/commands/cli.ts', out: 'server' },
    { in: 'src/commands/cli.ts', out: 'commands/cli' },
    { in: 'src/cluster/gateway-worker.ts', out: 'cluster/gateway-worker' },
    { in: 'src/database/embedded-worker.ts', out: 'database/embedded-worker' },
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
  external: ['@electric-sql/*', '@graphql-yoga/render-graphiql', 'pg-native'],
  // Older packages ask for Node's own modules by require.
  banner: {
    js: "import { createRequire } from 'node:module';\nconst require = createRequire(import.meta.url);",
  },
  metafile: true,
  logLevel: 'warning',
});
writeFileSync(join(root, 'dist/licences.txt'), collectLicences(Object.keys(metafile.inputs)));
removeOthers(['dist/licences.txt', ...Object.keys(metafile.outputs)]);

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
