// npm run bench: builds, installs what only the benchmark needs on first use, then measures.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { readOptions, UsageError, usage } from './options.js';

const folder = fileURLToPath(new URL('.', import.meta.url));

try {
  const options = readOptions(process.argv.slice(2));
  if (options.help) {
    console.log(usage);
  } else {
    npm(['run', '--silent', 'build'], '..');
    if (!isInstalled()) {
      console.log('installing the peers of the benchmark ...');
      npm(['ci', '--no-audit', '--no-fund'], '.');
    }
    const { run } = await import('./run.js');
    await run(options);
  }
} catch (error) {
  const isUsage = error instanceof UsageError;
  console.error(isUsage ? `${error.message} "npm run bench -- --help" lists the options.` : error);
  process.exitCode = isUsage ? 2 : 1;
}

/**
 * @param {string[]} args
 * @param {string} where relative to this folder
 */
function npm(args, where) {
  const { status } = spawnSync('npm', args, {
    cwd: `${folder}${where}`,
    stdio: 'inherit',
    shell: process.platform === 'win32',
  });
  if (status !== 0) process.exit(1);
}

/** Whether the installed versions are those of bench/package.json, which names them exactly. */
function isInstalled() {
  const { dependencies } = JSON.parse(readFileSync(`${folder}package.json`, 'utf8'));
  return Object.entries(dependencies).every(([name, version]) => {
    const file = `${folder}node_modules/${name}/package.json`;
    return existsSync(file) && JSON.parse(readFileSync(file, 'utf8')).version === version;
  });
}
